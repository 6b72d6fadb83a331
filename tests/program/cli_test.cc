// The command line as its users meet it: texts in, tables and JSON out; other models' tokenizers,
// and infer positions.
#include "tests/program/program.h"
#include "tests/support/family_files.h"

namespace phasor {
namespace {

TEST(CliTest, ATextGivesTokensAndALineForEveryLayer) {
  const ProgramResult result = succeed({"Tom bit a dog."});
  const Words lines = lines_of(result.out);
  // Text, 3 rows, blank, a sentence in 2 lines, blank, header, embed, 6 layers.
  ASSERT_EQ(lines.size(), 16u) << result.out;
  EXPECT_EQ(lines[0], "Tom bit a dog.");
  EXPECT_TRUE(lines[5].starts_with("  Positions turn the tokens' states most in layer 1"))
      << lines[5];
  EXPECT_TRUE(lines[15].starts_with("      6  ") && lines[15].ends_with(" tokens")) << lines[15];
  EXPECT_TRUE(result.err.starts_with("note: model sinusoidal: 6 layers")) << result.err;
  EXPECT_EQ(succeed({"tokenize", "Tom", "a"}).out, R"(Tom
  token  [CLS]  ▁Tom  [SEP]
  id     2      1042  3

a
  token  [CLS]  ▁a  [SEP]
  id     2      12  3
)");
}

TEST(CliTest, AMaskGetsItsLikeliestFillers) {
  EXPECT_EQ(json_of("'Tom [MASK] a dog.'")["masks"][0]["fillers"].size(), 5u);
  const json fillers = json_of("--top-k 2 'Tom [MASK] a dog.'")["masks"].at(0)["fillers"];
  ASSERT_EQ(fillers.size(), 2u);
  for (const char* key : {"id", "piece", "probability"}) EXPECT_TRUE(fillers[0].contains(key));
  expect_contains(run_infer({"-q", "Tom [MASK] a dog."}).out, {fillers[0]["piece"]});
}

TEST(CliTest, JsonHoldsWhatWasRun) {
  expect_json(
      {{"[a,b] [MASK]", R"([{"text": "[a,b]"}, {"pieces": ["[CLS]", "[MASK]", "[SEP]"]}])"},
       {"Tom info tokenize", R"([{"text": "Tom"}, {"text": "info"}, {"text": "tokenize"}])"},
       {"-- tokenize", R"({"text": "tokenize"})"},
       {"-q -- -m --ids", R"([{"text": "-m"}, {"text": "--ids"}])"},
       {"'Tom [MASK] a dog.'", R"({"masks": [{"token": 2}]})"},
       {"'a [SEP] b'",
        R"({"pieces": ["[CLS]", "▁a", "▁", "[", "S", "E", "P", "]", "▁b", "[SEP]"]})"},
       {"--ids '5 17,9'", R"({"text": null, "ids": [5, 17, 9], "position_ids": [0, 1, 2]})"},
       {"--ids 4", R"({"masks": [{"token": 0}]})"},  // 4 is the mask
       {"-m learned --positions sinusoidal Tom", R"({"position_ids": [0, 1, 2]})"},
       {"-m learned --positions sinusoidal:fairseq Tom", R"({"position_ids": [2, 3, 4]})"},
       {"-m learned --positions sinusoidal:opennmt Tom", R"({"position_ids": [1, 2, 3]})"},
       {"tokenize [x]", R"({"text": "[x]"})"},
       {"tokenize 'a [MASK]'",
        R"({"pieces": ["[CLS]", "▁a", "▁", "[", "M", "A", "S", "K", "]", "[SEP]"]})"},
       {"tokenize --special 'a [MASK]'", R"({"pieces": ["[CLS]", "▁a", "[MASK]", "[SEP]"]})"},
       {"tokenize --prefix 'query: ' Tom", R"({"text": "query: Tom"})"},
       {"tokenize --prefix '-x=1 ' Tom", R"({"text": "-x=1 Tom"})"},
       {"tokenize -q --prefix --json= Tom", R"({"text": "--json=Tom"})"},
       {"tokenize --prefix -- Tom", R"({"text": "--Tom"})"},
       {"tokenize --prefix=-m=x -q Tom", R"({"text": "-m=xTom"})"},
       {"tokenize --offsets 'É dog'", R"({"pieces": ["[CLS]", "▁", "É", "▁dog", "[SEP]"],
                                         "offsets": [[0, 0], [0, 0], [0, 1], [1, 5], [0, 0]]})"},
       {"info none", R"({"position": {"kind": "none", "trained_length": 128}, "notes": []})"},
       {"info", R"({"classifier": false, "position": {"kind": "sinusoidal", "layout": "paper",
                   "base": 10000, "first_position": 0, "trained_length": 128}})"}});
  const json tokens = json_of("tokenize 'Tom bit a dog.'");
  EXPECT_EQ(tokens.size(), 3u);  // text, ids, pieces
  EXPECT_EQ(tokens["ids"].size(), tokens["pieces"].size());
}

TEST(CliTest, WhatIsAskedForInTwoWaysIsPrintedAlike) {
  const std::string text = "Tom bit a dog.\n";
  expect_alike({{"-m learned --positions learned --json Tom", "-m learned --json Tom"},
                {"--positions sinusoidal:paper --json Tom", "--json Tom"},
                {"--positions marian --json Tom", "--positions sinusoidal:marian --json Tom"},
                {"positions marian --csv", "positions sinusoidal:marian --csv"},
                {"observe --only pattern --head 2.1 'Tom bit a dog.'",
                 "observe --only pattern --head L1H0 'Tom bit a dog.'"},
                {"embed -q Tom", "embed -q -o - Tom"},
                {"tokenize --json -q", "tokenize --json -q -", text},
                {"tokenize --json -q", "tokenize --json -q 'Tom bit a dog.'", text},
                {"tokenize --json --prefix 'query: ' Tom -",
                 "tokenize --json 'query: Tom' 'query: Tom bit a dog.'", text},
                {"--json --prefix '[x] ' Tom", "--json '[x] Tom'"},
                {"help", "--help"},
                {"help observe", "observe --help"},
                {"tokenize [y] ++ -- -x", "tokenize -- [y] ++ -x"}});
}

TEST(CliTest, ATextTooLongForTheTableNeedsAPolicy) {
  const std::string text = repeat("the ", 300);
  expect_infer_fails({"-m", "learned", text}, 3, {"128", "truncate", "window"});
  EXPECT_EQ(json_of("-m learned --overflow truncate '" + text + "'")["dropped"], 174);
}

TEST(CliTest, WhatMayNotBeMeantIsNoted) {
  const TempFolder folder;
  const std::string file = folder.write("lines.txt", "a\nb\n");
  expect_noted(
      {{"'" + repeat("the ", 200) + "'", {"trained on at most 128"}},
       {"observ Tom", {"note: did you mean the command infer observe?"}},
       {file, {"infer - < " + file}},
       {"embed " + file, {"-i " + file + " reads its lines"}},
       {"observe " + file, {"-i " + file + " reads its lines"}},
       {"learned none", {"'learned' is also a model's name"}},
       {"observe --only norm Tom none", {"'none' is also a model's name"}},
       {"compare --only norm learned learned none", {"'none' is also a model's name"}},
       {"compare --only norm learned --precision f32,int8 Tom none", {"'none' is also a model's"}},
       {"compare none learned --only norm", {"no text was given"}},
       {"compare sinusoidal learned --only norm '" + repeat("dog ", 200) + "'",
        {"cut to 128 tokens"}}});
  EXPECT_TRUE(succeed({"emebd", "x"}).err.starts_with("note: did you mean the command infer emb"));
  EXPECT_FALSE(contains(succeed({"compare", "learned", "none"}).err, "is also"));
  EXPECT_FALSE(contains(succeed({"--positions", "none", "Tom"}).err, "did you mean"));
}

TEST(CliTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_FALSE(contains(run_infer({"red \033[31m\a\r\n text"}).out, "\033"));
  EXPECT_EQ(lines_of(run_infer({"-q", "a\nb"}).out)[0], "a b");
  // DEL, CSI, a line's end, and what turns the direction of writing, in JSON
  const std::string text = "a\x7f\u009b\u061c\u200e\u200f\u2028\u202e\u2066é\u200d";
  const std::string out = run_infer({"tokenize", "--json", text}).out;
  expect_contains(out, {R"(a\u007f\u009b\u061c\u200e\u200f\u2028\u202e\u2066é)"
                        "\u200d"});
  EXPECT_EQ(json::parse(out)["text"], text);
}

TEST(CliTest, WideCharactersKeepColumnsAligned) {
  const Words lines = lines_of(run_infer({"-q", "日本語の文 and x"}).out);
  // Both rows put the closing token in the same column: 5 characters that are 2 wide, 3 bytes each.
  const size_t token = lines[2].find("[SEP]"), id = lines[3].rfind(' ') + 1;
  const std::string before = lines[2].substr(0, token);
  const auto characters =
      std::ranges::count_if(before, [](unsigned char byte) { return (byte & 0xc0) != 0x80; });
  EXPECT_EQ(characters + 5, static_cast<int>(id)) << lines[2];
}

TEST(CliTest, StandardInputHasATextALine) {
  std::string lines, words;  // more than one batch holds
  for (int i = 0; i < 70; ++i) {
    lines += std::to_string(i) + "\n";
    words += std::to_string(i) + " ";
  }
  expect_alike({{"--json before - after", "--json before " + words + "after", lines}});
}

TEST(CliTest, HelpAndVersionGoToStandardOutput) {
  EXPECT_EQ(printed("info -h"), printed("info --help"));
  expect_contains(printed("--version"), {"phasor " PHASOR_VERSION ", oneDNN "});
}

/// A folder with the small fairseq model as a tokenizer of this class.
void make_tokenizer(const TempFolder& folder, const std::string& tokenizer_class) {
  fs::copy_file(fixture("fairseq.model"), folder / "sentencepiece.bpe.model");
  folder.write("tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
}

TEST(CliTokenizerTest, NeedsNoWeights) {
  const TinyModel copy("sinusoidal");
  fs::remove(copy / "model.safetensors");
  EXPECT_EQ(json_of("tokenize Tom -m " + copy.path()), json_of("tokenize Tom"));
  fs::remove(copy / "tokenizer.model");
  expect_infer_fails({"tokenize", "-m", copy.path(), "Tom"}, 4, {"tokenizer"});
}

TEST(CliTokenizerTest, ALanguageIsATokenOfTheTextAndInfoShowsIt) {
  json config = json::parse(read_text_file(bundled_model("none") / "config.json"));
  config.erase("tokenizer");
  const TinyModel folder("none", {{"config.json", config}});
  make_tokenizer(folder, "NllbTokenizer");
  const std::string at = " -m " + folder.path();
  expect_json({{"tokenize Tom" + at, R"({"pieces": ["eng_Latn", "▁Tom", "</s>"]})"},
               {"tokenize Tom --lang fra_Latn" + at, R"({"pieces": ["fra_Latn", "▁Tom", "</s>"]})"},
               {"info", R"({"tokenizer": {"frame": "[CLS] … [SEP]"}})"},
               {"info" + at, R"({"tokenizer": {"frame": "eng_Latn … </s>"}})"},
               {"info --lang fra_Latn" + at, R"({"tokenizer": {"frame": "fra_Latn … </s>"}})"}});
  expect_refused({{3, "tokenize --lang fr Tom" + at, {"'fr'", "fra_Latn", "202"}}});
}

TEST(CliTokenizerTest, WhatWasAssumedIsSaidUnlessQuiet) {
  const TempFolder folder;
  make_tokenizer(folder, "");
  expect_noted({{"tokenize Tom -m " + folder.path().string(), {"XLM-R's is assumed"}}});
}

TEST(CliPositionsTest, AComputedTableTakesTheSizeOfTheOther) {
  expect_json({{"positions paper learned --only properties,against",
                R"({"tables": [{"name": "paper", "length": 128, "width": 128},
                               {"name": "learned", "length": 128, "width": 128}]})"},
               {"positions learned paper --only properties",
                R"({"tables": [{"name": "learned", "length": 128, "width": 128},
                               {"name": "paper", "length": 128, "width": 128}]})"}});
  const json cka = json_of("positions paper learned --only against")["against"]["linear_cka"];
  EXPECT_GT(cka["value"], cka["random"]);
  EXPECT_LT(cka["value"], 1);
}

TEST(CliPositionsTest, ASavedTableIsTheSameTable) {
  const TempFolder folder;
  const json saved = json_of("positions learned --only values")["tables"][0];
  for (const std::string name : {"t.npy", "t.safetensors"}) {
    const std::string file = (folder / name).string();
    printed("positions learned --only values --save " + file);
    const json table = json_of("positions --only values " + file)["tables"][0];
    EXPECT_EQ(table["values"], saved["values"]) << name;
    EXPECT_EQ(table["kind"], "file");
    EXPECT_EQ(table["name"], name);
  }
  const auto file = SafetensorsFile::open(folder / "t.safetensors");
  EXPECT_EQ(file->metadata().at("first_position"), "0");
  // The longer of two is cut, and it says so.
  const std::string shorter = (folder / "a.npy").string();
  printed("positions --length 20 --width 8 --save " + shorter);
  expect_noted({{"positions learned --only against " + shorter,
                 {"note: learned: the first 20 of 128 positions"}}});
}

TEST(CliPositionsTest, ThePageHasEverySectionAndChangesNothingElse) {
  const TempFolder folder;
  const std::string file = (folder / "page.html").string();
  const std::string line = "positions paper learned --only map";
  expect_alike({{line, line + " --html " + file}});
  expect_noted({{line + " --html " + file, {"note: wrote " + file + " ("}}});
  const json data = data_of_page(file);
  EXPECT_EQ(data["tables"], json_of("positions paper learned"));
  EXPECT_TRUE(data["version"].is_string());
}

TEST(CliPositionsTest, OfARelativeBiasItSaysWhatItIs) {
  const FamilyCase family = t5_case(false);
  const TempFolder folder;
  write_checkpoint(folder, family.config, tensors_of(family));
  expect_infer_fails({"positions", folder.path().string()}, 3,
                     {"no position vectors", "are bias (buckets)", "--only relative"});
}

}  // namespace
}  // namespace phasor
