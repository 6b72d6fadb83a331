// infer info, and what it says of files that other commands note before a run; --precision: what it
// changes, what it costs, and what is said about it.
#include "infer/cli/options.h"
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(CliInfoTest, SaysWhatABundledModelIs) {
  // Packed are six blocks' matrices and biases; layouts may pad them, though not these sizes.
  const json expected = json::parse(R"json({
      "family": "phasor",
      "sizes": {"layers": 6, "d_model": 128, "heads": 4, "head_dim": 32, "d_ff": 512,
                "vocabulary": 8192},
      "embedding": {"width": 128, "scale": 11.313708},
      "norm": {"order": "post", "kind": "layer_norm", "eps": 1e-5, "after_embedding": false,
               "at_end": false},
      "linear": {"bias": true, "scaled_scores": true},
      "attention": {"kv_heads": 4, "causal": false, "qk_norm": false, "branch_norms": false,
                    "score_cap": 0.0},
      "mlp": {"activation": "gelu", "gated": false},
      "position": {"kind": "learned", "first_position": 0, "table_rows": 128,
                   "usable_positions": 128, "trained_length": 128},
      "tokenizer": {"kind": "phasor (SentencePiece, tokenizer.model)", "frame": "[CLS] … [SEP]"},
      "text": {"special_tokens": true},
      "sentence": {"pooling": "mean, not normalised", "width": 128, "similarity": "cosine",
                   "source": "default"},
      "sparse": false, "token_vectors": false, "mlm_head": true, "classifier": false, "parameters": 2279552,
      "disk": {"F16_bytes": 4559104},
      "memory": {"packed_bytes": 4746240, "mapped_bytes": 2129920},
      "unused_tensors": [], "unused_keys": [], "notes": []})json");
  json learned = json_of("info -m learned");
  for (const char* const elsewhere : {"folder", "precision", "versions"})
    EXPECT_EQ(learned.erase(elsewhere), 1u);
  EXPECT_EQ(learned, expected);
}

TEST(CliInfoTest, TextHoldsTheSameFactsAGroupALine) {
  const std::string text = run_infer({"info", "none"}).out;
  const json info = json_of("info none");
  for (const auto& [group, facts] : info.items())
    EXPECT_TRUE(text.starts_with(group + " ") || contains(text, "\n" + group + " ")) << group;
  expect_contains(text,
                  {"\nsizes           layers 6, d_model 128, heads 4, head_dim 32, d_ff 512,"
                   " vocabulary 8192\n",
                   "\nnorm            order post, kind layer_norm, eps 1e-05,"
                   " after_embedding no, at_end no\n",
                   "\nposition        kind none, trained_length 128\n", "\nmlm_head        yes\n",
                   "\nunused_keys     none\n", "\nmemory          mapped 2.1 MB, packed 4.7 MB\n"});
}

TEST(CliInfoTest, LongListsAreCutAndLongLinesWrappedBesideTheirLabels) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = small_tensors();
  for (char name = 'a'; name <= 'j'; ++name) tensors.push_back({{name}, {2, 2}});
  write_checkpoint(folder, small_config_json(), tensors);
  const ProgramResult result = run_infer({"info", folder.path().string()});
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 100u + 2) << line;
  expect_contains(result.out, {"\ntokenizer       problem ", "\n                (vocab.txt)",
                               " a; b; c; d; e; f; g; h; … (10 in all; --json lists them)\n"});
  const json info = json_of("info " + folder.path().string());
  EXPECT_EQ(info["unused_tensors"].size(), 10u);
  EXPECT_EQ(info["tokenizer"].size(), 1u);
}

TEST(CliInfoTest, ShowsWhatSentenceTransformersFilesSay) {
  const SentenceFolder folder(64, "query");
  const std::string copy = folder.path();
  const json info = json_of("info " + copy);
  EXPECT_EQ(info["sentence"], (json{{"pooling", "cls, normalised"},
                                    {"width", 128},
                                    {"similarity", "cosine"},
                                    {"source", "1_Pooling/config.json"}}));
  EXPECT_EQ(info["text"], (json{{"max_tokens", 64},
                                {"special_tokens", true},
                                {"prompt", "query: "},
                                {"prompts", {{"query", "query: "}}},
                                {"query_prompt", "query: "}}));
  folder.write("config_sentence_transformers.json", R"({"prompts": {"a_bytes": "b"}})");
  succeed({"info", copy});
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "attention"})");
  EXPECT_TRUE(json_of("info " + copy)["sentence"].contains("problem"));
}

TEST(CliInfoTest, SaysThatDamagedWeightsCannotBeRun) {
  const TempFolder folder;
  std::vector<TestTensor> tensors = small_tensors();
  tensors[2].bytes.replace(0, 4, float_bytes({NAN}));
  tensors.push_back({"decoder.weight", {2, 2}});
  write_checkpoint(folder, small_config_json(), tensors);
  const json info = json_of("info " + folder.path().string());
  EXPECT_FALSE(info["memory"].contains("packed_bytes"));
  ASSERT_EQ(info["notes"].size(), 1u);
  EXPECT_TRUE(contains(info["notes"][0], "cannot be run: the model's block 0 q weight holds nan"))
      << info["notes"];
  EXPECT_EQ(info["unused_tensors"], json{"decoder.weight"});
}

TEST(CliInfoTest, NotesOnTheFilesAreShownThereAndBeforeARun) {
  json config = json::parse(std::ifstream(bundled_model("none") / "config.json"));
  config["final_nrom"] = true;  // a slip that changes nothing and must not pass unseen
  const TinyModel copy("none", {{"config.json", config}});
  EXPECT_EQ(json_of("info " + copy.path())["notes"].size(), 1u);
  expect_contains(run_infer({"info", copy.path()}).out, {"final_nrom"});
  expect_noted({{"Tom -m " + copy.path(), {"final_nrom"}}});
}

TEST(CliPrecisionTest, ARunComputesInThePrecisionAskedFor) {
  const json f32 = json_of("embed 'Tom bit a dog.'");
  for (const std::string name : {"f32", "bf16", "int8", "auto"}) {
    const json line = json_of("embed 'Tom bit a dog.' --precision " + name);
    Encoder encoder(Model::load("sinusoidal"), {.precision = parse<Precision>(name)});
    const Vectors vectors = encoder.embed("Tom bit a dog.");
    expect_close<float, float>(line["embedding"].get<std::vector<float>>(), vectors[0], 1e-5,
                               name.c_str());
    EXPECT_EQ(line == f32, encoder.precision() == Precision::kFloat32) << name;
    EXPECT_EQ(json_of("Tom --precision " + name)["views"]["norm"].size(), 7u);
  }
}

TEST(CliPrecisionTest, AskingForASlowOneSaysSoOnce) {
  for (const std::string name : {"auto", "bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    for (const std::string line :
         {"Tom Tim", "embed Tom Tim", "compare none learned --only effect Tom"}) {
      const Words words = words_of(line + " --precision " + name);
      const Words notes = lines_of(succeed(words).err);
      EXPECT_EQ(std::ranges::count(notes, "note: " + why), why.empty() ? 0 : 1) << line << name;
      EXPECT_EQ(succeed(words + Words{"-q"}).err, "") << line << name;
    }
  }
}

TEST(CliPrecisionTest, WhichPrecisionsAreFasterIsSaidWhereNoneWasChosen) {
  infer::CommonOptions options;
  EXPECT_EQ(infer::faster_note(options).empty(), precision_gains().empty());
  options.kernels = KernelLibrary::kOneDnn;
  EXPECT_EQ(infer::faster_note(options), "") << "measured with phasor's own";
  options = {};
  options.precision = Precision::kFloat32;
  EXPECT_EQ(infer::faster_note(options), "");
  const std::string err = run_infer({"embed"}, {.input = "Tom\n"}).err;
  EXPECT_FALSE(contains(err, "--precision")) << "a short run is over before a choice pays";
}

TEST(CliPrecisionTest, InfoSaysWhatAutoIsAndWhatIsSlowHere) {
  const json precision = json_of("info")["precision"];
  EXPECT_EQ(precision["auto"], to_string(fastest_precision()));
  const json slow = precision.value("slow", json::object());
  EXPECT_FALSE(slow.contains(precision["auto"]));
  for (const char* name : {"bf16", "int8"}) {
    const std::string why = why_slow(parse<Precision>(name));
    EXPECT_EQ(slow.value(name, ""), why);
  }
}

}  // namespace
}  // namespace phasor
