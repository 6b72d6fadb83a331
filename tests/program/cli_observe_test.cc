// infer observe and infer compare as programs: files, pages, inputs, and what they refuse. Their
// numbers are tested at the measures, and what they show at the renderers (tests/infer).
#include "tests/program/program.h"
#include "tests/support/sanitizer.h"

namespace phasor {
namespace {

const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";
const std::string kText = "Tom bit a dog.";
const std::string kOther = "The old man gave the boy a book.";

/// What a run prints that must succeed and has nothing to note.
std::string shown(Words arguments, const ProgramOptions& options = {}) {
  arguments.insert(arguments.begin() + 1, "-q");
  const ProgramResult result = succeed(arguments, options);
  EXPECT_EQ(result.err, "");
  return result.out;
}

TEST(CliObserveTest, BeforeIsTheRunWithoutInterventionsAndAfterTheOneWith) {
  const json alone = infer_json({"observe", kText}).at(0);
  const json runs = infer_json({"observe", "--edit", "shift=1", "--edit", "scale=2",
                                "--cut-residual", "3", kText})
                        .at(0)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["label"], "before");
  EXPECT_EQ(runs[0]["views"], alone["views"]);
  EXPECT_EQ(runs[0]["edits"], json::array());
  EXPECT_EQ(runs[1]["label"], "after");
  EXPECT_EQ(runs[1]["edits"], (json{"shift=1", "scale=2"}));
  EXPECT_EQ(runs[1]["cut_residuals"], json::array({"3"}));
  EXPECT_GT(runs[1]["views"]["moved"][6]["distance"], 0.01);
}

TEST(CliObserveTest, UntrainedModelsStandBesideEachRun) {
  const json alone = infer_json({"observe", kText}).at(0);
  const json runs = infer_json({"observe", "--baseline", "random:2", kText}).at(0)["runs"];
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["label"], "trained");
  EXPECT_EQ(runs[0]["views"], alone["views"]);
  EXPECT_FALSE(runs[0].contains("untrained"));
  EXPECT_EQ(runs[1]["label"], "untrained");
  EXPECT_EQ(runs[1]["untrained"], 2);
  const json& layer = runs[1]["views"]["effect"][3];
  EXPECT_LT(layer["effect_low"], layer["effect"]);
  EXPECT_LT(layer["effect"], layer["effect_high"]);
  EXPECT_TRUE(contains(shown({"observe", "--baseline", "random", kText}),
                       "means over 3 models of the same architecture"));

  const json four = infer_json({"observe", "--edit", "reverse", "--baseline", "random:1", "--only",
                                "effect", kText})
                        .at(0)["runs"];
  Words labels;
  for (const json& run : four) labels.push_back(run["label"]);
  EXPECT_EQ(labels, (Words{"before", "after", "before (untrained)", "after (untrained)"}));
  EXPECT_EQ(four[3]["edits"], json::array({"reverse"}));
}

TEST(CliObserveTest, ATextWithoutATokenizerIsShownByItsIds) {
  const TempFolder folder;
  for (const char* file : {"config.json", "model.safetensors"}) {
    fs::copy_file(bundled_model("none") / file, folder.path() / file);
  }
  const std::string text =
      shown({"observe", "-m", folder.path().string(), "--ids", "2 1042 839 3"});
  expect_contains(text, {"Attention pattern of a head\n", "\n   839 "});
}

TEST(CliObserveTest, OnlyPicksWhatIsShownInEveryFormat) {
  const std::string text = shown({"observe", "--only", "effect", kText});
  EXPECT_TRUE(contains(text, "Effect of positions\n"));
  for (const char* other : {"What explains", "Reach", "Order", "scores"}) {
    EXPECT_FALSE(contains(text, other)) << other;
  }
  const json object = infer_json({"observe", "--only", "effect,entropy", kText}).at(0);
  EXPECT_EQ(object["views"].size(), 2u);
  EXPECT_EQ(object["views"]["effect"].size(), 7u);
  const Words csv = lines_of(shown({"observe", "--csv", "--only", "pooled", kText, kOther}));
  ASSERT_EQ(csv.size(), 3u);
  EXPECT_EQ(csv[0], "text,run,layer,head,measure,value");
  EXPECT_TRUE(csv[2].starts_with("2,,,,pooled.pooled.effect,0.")) << csv[2];
}

TEST(CliObserveTest, SavedHooksAreThoseOfATrace) {
  const TempFolder folder;
  const std::string path = (folder.path() / "all.safetensors").string();
  const json object =
      infer_json({"observe", "--save", path, "--hooks", "all", "--only", "split,effect", kText})
          .at(0);
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
  const std::string path = (folder.path() / "some.safetensors").string();
  succeed({"-q", "--save", path, "--hooks", "pattern,blocks.1.hook_mlp_out", "--hooks",
           "attn.hook_q", kText, "Tom."});
  const auto file = SafetensorsFile::open(path);
  EXPECT_TRUE(file->contains("0.blocks.0.attn.hook_pattern"));
  EXPECT_TRUE(file->contains("1.blocks.5.attn.hook_pattern"));
  EXPECT_TRUE(file->contains("0.blocks.1.hook_mlp_out"));
  EXPECT_FALSE(file->contains("0.blocks.0.hook_mlp_out"));
  EXPECT_TRUE(file->contains("0.blocks.3.attn.hook_q"));
  EXPECT_TRUE(file->contains("1.token_ids"));
  EXPECT_EQ(file->entries().size(), 2u * (2 + 6 + 1 + 6));
}

TEST(CliObserveTest, InterventionsSaveBothRuns) {
  const TempFolder folder;
  const std::string path = (folder.path() / "both.safetensors").string();
  shown({"observe", "--save", path, "--edit", "reverse", "--only", "moved", kText});
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const Encoding before = encoder.encode(kText);
  const Encoding after = encoder.encode(kText, {.positions = Positions().reversed()});
  expect_saved(*file, "0.before.last_hidden_state", {7, 128}, before.hidden(0));
  expect_saved(*file, "0.after.last_hidden_state", {7, 128}, after.hidden(0));
  expect_saved(*file, "0.after.hidden_states.6", {7, 128}, after.hidden(0));
}

/// Runs infer with --html; the texts on the page. What is printed, and put into `printed`, may not
/// change but for a note.
json texts_on_page(Words arguments, std::string* printed = nullptr) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  const ProgramResult without = run_infer(arguments);
  arguments.insert(arguments.begin() + 1, {"--html", file});
  const ProgramResult result = succeed(arguments);
  EXPECT_EQ(result.out, without.out);
  if (printed != nullptr) *printed = result.out;
  EXPECT_TRUE(contains(result.err, "note: wrote " + file + " (")) << result.err;
  return data_of_page(file)["texts"];
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

/// A run on the page as --json prints it.
json without_figures(json run) {
  for (const char* figure : {"patterns", "profiles", "vectors"}) run.erase(figure);
  return run;
}

TEST(CliHtmlTest, ThePageOfTextsAndAFileHasTheNumbersOfTheJson) {
  const TempFolder folder;
  const std::string lines =
      repeat("Tom bit a dog, and the old man gave the boy a book.\n", 20);  // enough for "longer"
  const Words arguments = {"observe",
                           "--json",
                           "--cut-residual",
                           "1.attn",
                           kText,
                           kOther,
                           "-i",
                           folder.write("lines.txt", lines).string()};
  std::string printed;
  const json texts = texts_on_page(arguments, &printed);
  std::vector<json> observed;
  for (const std::string& line : lines_of(printed)) observed.push_back(json::parse(line));
  ASSERT_EQ(texts.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t side = 0; side < 2; ++side) {
      const json& run = texts[i]["runs"].at(side);
      EXPECT_EQ(run["label"], side == 0 ? "before" : "after");
      EXPECT_EQ(run.contains("patterns"), i < 2);
      if (i < 2) {
        EXPECT_EQ(run["patterns"]["cells"], run["ids"].size());
      }
      expect_same(without_figures(run), observed[i]["runs"][side]);
    }
  }
}

TEST(CliHtmlTest, AComparisonHasTheTextsInBothRunsAndTheViewsThatAreNamed) {
  const json texts = texts_on_page(
      {"compare", "--only", "effect", "--seed", "3", "sinusoidal", "none", kText, kOther});
  ASSERT_EQ(texts.size(), 3u);  // the last are the means
  EXPECT_EQ(texts[2]["runs"][1]["texts"], 2);
  for (size_t side = 0; side < 2; ++side) {
    const std::string model = side == 0 ? "sinusoidal" : "none";
    const std::vector<json> observed = infer_json(
        {"observe", "-q", "--only", "effect", "--seed", "3", "-m", model, kText, kOther});
    for (size_t i = 0; i < 2; ++i) {
      const json& run = texts[i]["runs"][side];
      EXPECT_EQ(run["label"], model);
      expect_same(run["views"], observed[i]["views"]);
      EXPECT_EQ(run.contains("vectors"), model != "none");
    }
  }
}

TEST(CliHtmlTest, TextsBeyondTheMostAreLeftOutWithANote) {
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  Words arguments = {"observe", "--only", "effect", "--html", file};
  arguments.insert(arguments.end(), 20, "Tom");
  const ProgramResult result = succeed(arguments);
  EXPECT_TRUE(contains(result.err, "the first 16 texts, not the other 4")) << result.err;
  EXPECT_EQ(data_of_page(file)["texts"].size(), 16u);
  shown(arguments);
}

TEST(CliCompareTest, TwoModelsAreSeenAsEachByItself) {
  const json runs = infer_json({"compare", "sinusoidal", "learned", kText}).at(0)["runs"];
  for (const json& run : runs) {
    const std::string model = run["model"];
    const json alone = infer_json({"observe", "-m", model, kText}).at(0);
    EXPECT_EQ(run["label"], model);
    EXPECT_EQ(run["tokens"], alone["ids"].size());
    json views = run["views"];
    views.erase("moved");
    expect_same(views, alone["views"]);
  }
  const json with_baseline =
      infer_json({"compare", "sinusoidal", "learned", "--baseline", "random:1", kText})
          .at(0)["runs"];
  ASSERT_EQ(with_baseline.size(), 4u);
  EXPECT_EQ(with_baseline[1]["views"], runs[1]["views"]);
  EXPECT_EQ(with_baseline[2]["label"], "sinusoidal (untrained)");
  EXPECT_TRUE(runs[1]["views"].contains("moved"));
}

TEST(CliCompareTest, AHeadChoosesRowsAndWhatThePageOpensOn) {
  const Words arguments = {"compare", "sinusoidal", "learned", "--only", "heads", kText};
  Words of_one = arguments;
  of_one.insert(of_one.begin() + 3, {"--head", "L1H2"});
  expect_contains(shown(arguments), {"\n  2.1 (L1H0)"});
  const std::string text = shown(of_one);
  expect_contains(text, {"\n  2.3 (L1H2)"});
  EXPECT_FALSE(contains(text, "\n  2.1 (L1H0)")) << text;
  const TempFolder folder;
  const std::string file = (folder.path() / "page.html").string();
  of_one.insert(of_one.begin() + 3, {"--html", file});
  succeed(of_one);
  EXPECT_EQ(data_of_page(file)["opens_on"], (json{{"layer", 2}, {"head", 3}}));
  EXPECT_EQ(run_infer({"compare", "sinusoidal", "learned", "--head", "7.1", kText}).exit_code, 3);
}

TEST(CliCompareTest, LabelsDifferAndAreFieldsOfCsv) {
  const TempFolder folder;
  const fs::path model = folder.path() / "a,\"b";
  fs::create_directory(model);
  for (const fs::directory_entry& entry : fs::directory_iterator(bundled_model("none"))) {
    fs::copy_file(entry, model / entry.path().filename());
  }
  const std::string csv =
      shown({"compare", "none", model.string(), "--csv", "--only", "norm", kText});
  expect_contains(csv, {"\n1,none,0,,norm.norm,", "\n1,\"a,\"\"b\",0,,norm.norm,"});
  const json runs = infer_json({"compare", "none", "none", "--only", "norm", kText}).at(0)["runs"];
  EXPECT_EQ(runs[0]["label"], "none (1)");
  EXPECT_EQ(runs[1]["label"], "none (2)");
}

TEST(CliCompareTest, OneModelWithTwoKindsOfPositionsOrInTwoPrecisions) {
  const json positions = infer_json({"compare", "learned", "--positions", "own", "--positions",
                                     "none", "--only", "effect", kText})
                             .at(0)["runs"];
  const json precisions =
      infer_json({"compare", "learned", "--precision", "f32,int8", "--only", "moved", kText})
          .at(0)["runs"];
  for (size_t side = 0; side < 2; ++side) {
    EXPECT_EQ(positions[side]["model"], "learned");
    EXPECT_EQ(positions[side]["label"], side == 0 ? "own" : "none");
    EXPECT_EQ(positions[side]["positions"], side == 0 ? "learned" : "none");
    EXPECT_EQ(precisions[side]["label"], side == 0 ? "f32" : "int8");
    EXPECT_EQ(precisions[side]["precision"], precisions[side]["label"]);
  }
  EXPECT_EQ(positions[1]["views"]["effect"][3]["effect"], 0.0);
  EXPECT_GT(precisions[1]["views"]["moved"][3]["relative"], 1e-3);
  const json both =
      infer_json({"compare", "none", "learned", "--precision", "int8", "--only", "norm", "Tom"})
          .at(0)["runs"];
  for (const json& run : both) {
    EXPECT_EQ(run["precision"], "int8");
    EXPECT_NE(run["label"], "int8");
  }
}

TEST(CliCompareTest, ACausalMaskTellsAModelWithoutPositionsTheOrder) {
  const json object = infer_json({"compare", "none", "--mask", "none", "--mask", "causal", "--only",
                                  "order", "Tom bit a dog."})
                          .at(0);
  const auto order = [&](int side) { return object["runs"][side]["views"]["order"]; };
  EXPECT_EQ(object["runs"][0]["label"], "mask none");
  EXPECT_EQ(object["runs"][1]["positions"], "none, causal mask");
  for (const json& row : order(0)) EXPECT_LT(row["shuffle"], 1e-5);
  EXPECT_EQ(order(1).front()["shuffle"], 0);
  EXPECT_GT(order(1).back()["shuffle"], 1e-2);
  // The same run as an edit, and as an option of the run.
  const json edited = infer_json({"observe", "-m", "none", "--edit", "mask=causal", "--only",
                                  "order", "Tom bit a dog."})
                          .at(0);
  EXPECT_EQ(edited["runs"][1]["views"]["order"], order(1));
  const json masked =
      infer_json({"observe", "-m", "none", "--mask", "causal", "--only", "order", "Tom bit a dog."})
          .at(0);
  EXPECT_EQ(masked["views"]["order"], order(1));
}

TEST(CliCompareTest, TextsComeFromArgumentsStandardInputIdsOrAFile) {
  const auto views = [](const Words& more, const ProgramOptions& options = {}) {
    return infer_json(Words{"compare", "sinusoidal", "none", "--only", "effect"} + more, options)
        .at(0)["runs"][0]["views"];
  };
  const json expected = views({kText});
  EXPECT_EQ(views({"-"}, {.input = kText + "\n"}), expected);
  EXPECT_EQ(views({"-i", "-"}, {.input = "\n" + kText + "\r\n \n"}), expected);
  std::string ids;
  const json tokens = infer_json({"tokenize", kText}).at(0);
  for (const json& id : tokens["ids"]) ids += id.dump() + " ";
  EXPECT_EQ(views({"--ids", ids}), expected);
  EXPECT_TRUE(contains(run_infer({"compare", "none", "learned", "--only", "norm"}).err,
                       "no text was given"));
}

TEST(CliCompareTest, TextsLongerThanTrainedAreCutAndItSaysSo) {
  const std::string text = repeat("dog ", 200);
  const ProgramResult result =
      succeed({"compare", "--json", "sinusoidal", "learned", "--only", "effect", text});
  EXPECT_TRUE(contains(result.err, "cut to 128 tokens")) << result.err;
  const json object = json::parse(result.out);
  for (const json& run : object["runs"]) EXPECT_EQ(run["tokens"], 128);
}

TEST(CliCompareTest, AnOverviewUnlessTablesAreAskedFor) {
  const TempFolder folder;
  const fs::path copy = folder.path() / std::string(60, 'x');
  fs::create_directory_symlink(bundled_model("none"), copy);
  const Words overview = lines_of(shown({"compare", copy.string(), "sinusoidal", kText}));
  EXPECT_EQ(overview.at(0), "              …" + std::string(31, 'x') + "  sinusoidal");
  EXPECT_EQ(overview.back(), "  --only NAME or --only all prints the tables.");
  for (const std::string& line : overview) EXPECT_FALSE(contains(line, "Norm of the states"));
  const std::string norm = shown({"compare", "none", "sinusoidal", "--only", "norm", kText});
  EXPECT_TRUE(contains(norm, "Norm of the states"));
  EXPECT_FALSE(contains(norm, "Effect of positions"));
}

TEST(CliCompareTest, TextsThatAreModelsNamesAreNoted) {
  const std::vector<Words> commands = {
      {"learned", "none"},
      {"observe", "--only", "norm", "Tom", "none"},
      {"compare", "--only", "norm", "learned", "learned", "none"},
      {"compare", "--only", "norm", "learned", "--precision", "f32,int8", "Tom", "none"}};
  for (const Words& command : commands) {
    const ProgramResult result = succeed(command);
    expect_contains(result.err,
                    {command[0] == "learned" ? "'learned'" : "'none'", "is also a model's name"});
  }
  for (const char* const command : {"observe", "compare"}) {
    const std::string err = run_infer({command, "learned", "none"}).err;
    EXPECT_EQ(contains(err, "is also"), std::string(command) == "observe") << err;
  }
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
#if HAS_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  const TempFolder folder;
  write_wide_model(folder);
  const std::string model = folder.path().string();
  const auto peak = [&](Words words) {
    for (const char* const word : {"--ids", "1 2 3", "--only", "norm", "-t", "1"})
      words.emplace_back(word);
    return succeed(words).peak_bytes;
  };
  const int64_t packed = Encoder(Model::load(model), {.threads = 1}).packed_bytes();
  const int64_t before_and_after = peak({"observe", "-m", model, "--edit", "reverse"});
  EXPECT_GT(before_and_after, packed);
  EXPECT_LT(peak({"compare", model, "--positions", "own", "--positions", "none"}),
            before_and_after + packed / 2);
  EXPECT_LT(peak({"compare", model, model}), before_and_after + packed / 2);
  EXPECT_GT(peak({"compare", model, "--precision", "f32,bf16"}), before_and_after + packed / 3);
}

}  // namespace
}  // namespace phasor
