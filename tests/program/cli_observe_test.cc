// infer observe and infer compare as programs: files, pages, inputs, and what they refuse. Their
// numbers are tested at the measures, and what they show at the renderers (tests/infer).
#include "tests/program/program.h"

namespace phasor {
namespace {

const std::string kText = "Tom bit a dog.";
const std::string kQuoted = "'" + kText + "'";
const std::string kOther = "'The old man gave the boy a book.'";

std::string shown(const std::string& line) { return printed(line + " -q"); }

TEST(CliObserveTest, RunsSayWhatTheyAre) {
  const std::string only = " --only norm 'Tom bit'";
  expect_json(
      {{"observe --edit shift=1 --edit scale=2 --cut-residual 3" + only,
        R"({"runs": [{"label": "before", "edits": []},
                    {"label": "after", "edits": ["shift=1", "scale=2"], "cut_residuals": ["3"]}]})"},
       {"observe --baseline random:2" + only,
        R"({"runs": [{"label": "trained"}, {"label": "untrained", "untrained": 2}]})"},
       {"observe --edit reverse --baseline random:1" + only,
        R"json({"runs": [{"label": "before"}, {"label": "after"}, {"label": "before (untrained)"},
                    {"label": "after (untrained)", "edits": ["reverse"]}]})json"},
       {"compare none none" + only,
        R"json({"runs": [{"label": "none (1)"}, {"label": "none (2)"}]})json"},
       {"compare learned --positions own --positions none" + only,
        R"({"runs": [{"model": "learned", "label": "own", "positions": "learned"},
                    {"model": "learned", "label": "none", "positions": "none"}]})"},
       {"compare learned --precision f32,int8" + only,
        R"({"runs": [{"model": "learned", "label": "f32", "precision": "f32"},
                    {"model": "learned", "label": "int8", "precision": "int8"}]})"},
       {"compare none learned --precision int8" + only,
        R"({"runs": [{"label": "none", "precision": "int8"},
                    {"label": "learned", "precision": "int8"}]})"},
       {"compare none --mask none --mask causal" + only,
        R"({"runs": [{"label": "mask none"}, {"positions": "none, causal mask"}]})"},
       {"compare sinusoidal learned --only norm '" + repeat("dog ", 200) + "'",
        R"({"runs": [{"tokens": 128}, {"tokens": 128}]})"}});
}

TEST(CliObserveTest, ATextWithoutATokenizerIsShownByItsIds) {
  const TinyModel folder("none");
  fs::remove(folder / "tokenizer.model");
  expect_contains(shown("observe -m " + folder.path() + " --ids '2 1042 839 3'"),
                  {"Attention pattern of a head\n", "\n   839 "});
}

TEST(CliObserveTest, OnlyAndHeadPickWhatIsShown) {
  struct Row {
    std::string line;
    Words has, lacks = {};
  };
  for (const Row& row :
       {Row{"observe --only effect",
            {"Effect of positions\n"},
            {"What explains", "Reach", "Order"}},
        Row{"observe --baseline random", {"means over 3 models of the same architecture"}},
        Row{"compare sinusoidal learned --only heads", {"\n  2.1 (L1H0)"}},
        Row{"compare sinusoidal learned --only heads --head L1H2",
            {"\n  2.3 (L1H2)"},
            {"\n  2.1 (L1H0)"}},
        Row{"compare sinusoidal none", {"  --only NAME or --only all"}, {"Norm of the states"}},
        Row{"compare none sinusoidal --only norm",
            {"Norm of the states"},
            {"Effect of positions"}}}) {
    const std::string text = shown(row.line + " " + kQuoted);
    expect_contains(text, row.has);
    for (const std::string& part : row.lacks)
      EXPECT_FALSE(contains(text, part)) << row.line << part;
  }
  const json object = json_of("observe --only effect,attention " + kQuoted);
  EXPECT_EQ(object["views"].size(), 2u);
  EXPECT_EQ(object["views"]["effect"].size(), 7u);
  const Words csv = lines_of(shown("observe --csv --only effect Tom " + kOther));
  ASSERT_EQ(csv.size(), 1u + 2 * 7 * 2);
  EXPECT_EQ(csv[0], "text,run,layer,head,measure,value");
  EXPECT_TRUE(csv[15].starts_with("2,,0,,effect.effect,0.")) << csv[15];
  EXPECT_TRUE(csv[16].starts_with("2,,0,,effect.degrees,")) << csv[16];
}

TEST(CliObserveTest, TwoOrdersOfTheSameTokensBeginWithWhatTellsThemApart) {
  const TempFolder folder;
  const std::string orders = " 'Tom bit a dog a' 'a dog bit a Tom'";
  const std::string page = "observe --html " + (folder.path() / "page.html").string();
  for (const std::string& command : {std::string(), std::string("observe"), page}) {
    const std::string text = shown(command + orders);
    EXPECT_TRUE(text.starts_with("  Without positions both texts are the same")) << text;
    EXPECT_LT(text.find("°.\n\nTom bit"), text.find("a dog bit a Tom\n")) << text;
    EXPECT_EQ(text.find("  Without pos"), text.rfind("  Without pos")) << "once";
  }
  const Words lines = lines_of(shown("observe --json --only effect" + orders));
  EXPECT_FALSE(json::parse(lines.at(0)).contains("pair"));
  EXPECT_TRUE(contains(json::parse(lines.at(1))["pair"], "the same words"));
  EXPECT_TRUE(shown("observe --only effect Tom bit").starts_with("Tom\n"));
}

TEST(CliObserveTest, SavedHooksAreThoseOfATrace) {
  const TempFolder folder;
  const std::string path = (folder / "all.safetensors").string();
  const json object =
      json_of("observe --save " + path + " --hooks all --only split,effect " + kQuoted);
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const std::vector<int32_t> ids = object["ids"];
  Trace trace = Trace::everything();
  encoder.encode_ids(ids, {.observer = &trace});
  int64_t saved = 0;
  for (int h = 0; h < kNumHooks; ++h) {
    const Hook hook = static_cast<Hook>(h);
    for (int64_t layer = is_block_hook(hook) ? 0 : -1; layer < (is_block_hook(hook) ? 6 : 0);
         ++layer) {
      const std::string name = "0." + hook_path(hook, layer);
      EXPECT_EQ(file->contains(name), trace.has(hook, layer)) << name;
      if (!trace.has(hook, layer)) continue;
      ++saved;
      const Trace::Entry& entry = trace.at(hook, layer);
      expect_saved(*file, name, entry.shape, entry.values);
    }
  }
  EXPECT_GT(saved, 80);
  EXPECT_FALSE(file->contains("0.hidden_states.0"));
  const std::vector<int64_t> places = object["text_tokens"];
  const std::vector<TokenSplit> splits = latin_square_split(encoder, ids, places);
  for (int64_t l = 0; l <= 6; ++l) {
    const std::vector<double>& means = splits[l].position_means;
    expect_saved(*file, "0.split.position." + std::to_string(l), {5, 128},
                 std::vector<float>(means.begin(), means.end()));
  }
  const std::vector<float> vectors = encoder.model().position_vectors(7);
  expect_saved(*file, "0.position_vectors", {7, 128}, vectors);
}

TEST(CliObserveTest, HooksAreNamedByTheirPathsOrTheEndsOfThem) {
  const TempFolder folder;
  const std::string path = (folder / "some.safetensors").string();
  shown("--save " + path + " --hooks pattern,blocks.1.hook_mlp_out --hooks attn.hook_q Tim Tom.");
  const auto file = SafetensorsFile::open(path);
  for (const char* const name :
       {"0.blocks.0.attn.hook_pattern", "1.blocks.5.attn.hook_pattern", "0.blocks.1.hook_mlp_out",
        "0.blocks.3.attn.hook_q", "1.token_ids"})
    EXPECT_TRUE(file->contains(name)) << name;
  EXPECT_EQ(file->entries().size(), 2u * (2 + 6 + 1 + 6));
}

TEST(CliObserveTest, InterventionsSaveBothRuns) {
  const TempFolder folder;
  const std::string path = (folder / "both.safetensors").string();
  shown("observe --save " + path + " --edit reverse --only moved " + kQuoted);
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const Encoding before = encoder.encode(kText);
  const Encoding after = encoder.encode(kText, {.positions = Positions().reversed()});
  expect_saved(*file, "0.before.last_hidden_state", {7, 128}, before[0].hidden);
  expect_saved(*file, "0.after.last_hidden_state", {7, 128}, after[0].hidden);
  expect_saved(*file, "0.after.hidden_states.6", {7, 128}, after[0].hidden);
}

/// The same but for float32's rounding: a page's texts are run one by one, others in batches, which
/// without AVX-512 moves the last bits.
void expect_same(const json& got, const json& want) {
  const json a = got.flatten(), b = want.flatten();
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [path, value] : b.items()) {
    ASSERT_TRUE(a.contains(path)) << path;
    if (value.is_number_float()) {
      const double number = value;
      EXPECT_NEAR(a[path].get<double>(), number, 1e-5 * (1 + std::abs(number))) << path;
    } else {
      EXPECT_EQ(a[path], value) << path;
    }
  }
}

TEST(CliHtmlTest, ThePageOfTextsAndAFileHasTheNumbersOfTheJson) {
  const TempFolder folder;
  const std::string lines =
      repeat("Tom bit a dog, and the old man gave the boy a book.\n", 20);  // enough for "longer"
  const std::string page = (folder / "page.html").string();
  const std::string observe =
      fmt::format("observe --json --cut-residual 1.attn {} {} -i {}", kQuoted, kOther,
                  folder.write("lines.txt", lines).string());
  const ProgramResult made = succeed(words_of(observe + " --html " + page));
  expect_contains(made.err, {"note: wrote " + page + " ("});
  EXPECT_EQ(made.out, succeed(words_of(observe)).out);
  std::vector<json> observed;
  for (const std::string& line : lines_of(made.out)) observed.push_back(json::parse(line));
  const json texts = data_of_page(page)["texts"];
  ASSERT_EQ(texts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t side = 0; side < 2; ++side) {
      json run = texts[i]["runs"].at(side);
      EXPECT_EQ(run["label"], side == 0 ? "before" : "after");
      EXPECT_EQ(run.contains("patterns"), i < 2);
      if (i < 2) {
        EXPECT_EQ(run["patterns"]["cells"], run["ids"].size());
      }
      for (const char* figure : {"patterns", "profiles", "vectors", "turns"}) run.erase(figure);
      expect_same(run, observed[i]["runs"][side]);
    }
  }
}

TEST(CliHtmlTest, TextsBeyondTheMostAreLeftOutWithANote) {
  const TempFolder folder;
  const std::string file = (folder / "page.html").string();
  expect_noted({{"observe --only effect --html " + file + repeat(" Tom", 20),
                 {"the first 16 texts, not the other 4"}}});
  EXPECT_EQ(data_of_page(file)["texts"].size(), 16u);
}

TEST(CliHtmlTest, ThePageOpensOnTheHeadThatIsAskedFor) {
  const TempFolder folder;
  const std::string file = (folder / "page.html").string();
  shown("compare sinusoidal learned --only heads --head L1H2 --html " + file + " Tom");
  EXPECT_EQ(data_of_page(file)["opens_on"], (json{{"layer", 2}, {"head", 3}}));
}

TEST(CliCompareTest, TwoModelsAreSeenAsEachByItself) {
  const std::string compare = "compare sinusoidal learned " + kQuoted;
  const json runs = json_of(compare)["runs"];
  const json with_baseline = json_of(compare + " --baseline random:1")["runs"];
  for (const json& run : runs) {
    const std::string model = run["model"];
    const json alone = json_of("observe -m " + model + " " + kQuoted);
    EXPECT_EQ(run["label"], model);
    EXPECT_EQ(run["tokens"], alone["ids"].size());
    json views = run["views"];
    views.erase("moved");
    expect_same(views, alone["views"]);
  }
  ASSERT_EQ(with_baseline.size(), 4u);
  EXPECT_EQ(with_baseline[1]["views"], runs[1]["views"]);
  EXPECT_EQ(with_baseline[2]["label"], "sinusoidal (untrained)");
  EXPECT_TRUE(runs[1]["views"].contains("moved"));
}

TEST(CliCompareTest, LabelsAreFieldsOfCsv) {
  const TempFolder folder;
  const fs::path model = folder / "a,\"b";
  fs::create_directory_symlink(bundled_model("none"), model);
  expect_contains(shown("compare none " + model.string() + " --csv --only norm Tom"),
                  {"\n1,none,0,,norm.norm,", "\n1,\"a,\"\"b\",0,,norm.norm,"});
}

TEST(CliCompareTest, ACausalMaskIsAnEditAndAnOptionToo) {
  const std::string only = " --only order " + kQuoted;
  const json causal = json_of("compare none --mask none --mask causal" + only)["runs"][1]["views"];
  EXPECT_GT(causal["order"].back()["shuffle"], 1e-2);
  const json edited = json_of("observe -m none --edit mask=causal" + only)["runs"][1];
  EXPECT_EQ(edited["views"]["order"], causal["order"]);
  EXPECT_EQ(json_of("observe -m none --mask causal" + only)["views"]["order"], causal["order"]);
}

TEST(CliCompareTest, TextsComeFromArgumentsStandardInputIdsOrAFile) {
  const json tokens = json_of("tokenize " + kQuoted);
  std::string ids;
  for (const json& id : tokens["ids"]) ids += id.dump() + " ";
  const std::string compare = "compare sinusoidal none --csv --only effect ";
  expect_alike({{compare + kQuoted, compare + "-", kText + "\n"},
                {compare + kQuoted, compare + "-i -", "\n" + kText + "\r\n \n"},
                {compare + kQuoted, compare + "--ids '" + ids + "'"}});
}

/// A model of 6 layers with 12 · 512² weights each, all 0.
void write_wide_model(const TempFolder& folder) {
  json config = small_config_json();
  config.update({{"d_model", 512}, {"d_ff", 4 * 512}, {"num_layers", 6}});
  std::vector<TestTensor> tensors;
  for (TestTensor tensor : small_tensors()) {
    tensor.dtype = "F16", tensor.bytes.clear();
    for (int64_t& size : tensor.shape) size = size == 4 ? 512 : size == 6 ? 4 * 512 : size;
    do {
      tensors.push_back(tensor);
    } while (tensor.name.starts_with("blocks.") && (tensor.name[7] += 2) < '6');
  }
  write_checkpoint(folder, config, tensors);
}

TEST(CliCompareTest, OneModelIsPackedOnceForTwoKindsOfPositions) {
  if (HAS_ADDRESS_SANITIZER) GTEST_SKIP() << "the sanitizer has memory of its own";
  const TempFolder folder;
  write_wide_model(folder);
  const std::string model = folder.path().string();
  const auto peak = [](const std::string& line) {
    return succeed(words_of(line + " --ids '1 2 3' --only norm -t 1")).peak_bytes;
  };
  const int64_t packed = Encoder(Model::load(model), {.threads = 1}).packed_bytes();
  const int64_t before_and_after = peak("observe --edit reverse -m " + model);
  EXPECT_GT(before_and_after, packed);
  const std::string compare = "compare " + model;
  EXPECT_LT(peak(compare + " --positions own --positions none"), before_and_after + packed / 2);
  EXPECT_LT(peak(compare + " " + model), before_and_after + packed / 2);
  EXPECT_GT(peak(compare + " --precision f32,bf16"), before_and_after + packed / 3);
}

}  // namespace
}  // namespace phasor
