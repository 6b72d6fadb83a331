// infer observe: files of activations, corpora, unusual texts and models, and what it refuses.
#include <gtest/gtest.h>

#include <cmath>

#include "phasor/phasor.h"
#include "phasor/safetensors.h"
#include "tests/support/family_files.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kSentences = std::string(PHASOR_SOURCE_DIR) + "/examples/sentences.txt";
const std::string kText = "Tom bit a dog.";

json observe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "observe");
  return infer_json(std::move(arguments)).at(0);
}

/// Expects a saved tensor to hold these values.
void expect_saved(const SafetensorsFile& file, const std::string& name,
                  const std::vector<int64_t>& shape, std::span<const float> want) {
  ASSERT_TRUE(file.contains(name)) << name;
  const Tensor tensor = file.tensor(name);
  EXPECT_EQ(tensor.shape, shape) << name;
  const std::vector<float> got = tensor.to_float();
  ASSERT_EQ(got.size(), want.size()) << name;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-5) << name << " " << i;
}

TEST(CliObserveDataTest, SavedHooksAreThoseOfATrace) {
  const TempFolder folder;
  const std::string path = (folder.path() / "all.safetensors").string();
  const json object =
      observe({"--save", path, "--hooks", "all", "--only", "split", "--only", "effect", kText});
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
  const std::vector<Split> splits = latin_square_split(encoder, ids, places);
  for (int64_t l = 0; l <= 6; ++l) {
    const std::vector<double>& means = splits[l].position_means;
    expect_saved(*file, "0.split.position." + std::to_string(l), {5, 128},
                 std::vector<float>(means.begin(), means.end()));
  }
  const std::vector<float> vectors = encoder.model().position_vectors(7);
  expect_saved(*file, "0.position_vectors", {7, 128}, vectors);
}

TEST(CliObserveDataTest, HooksAreNamedByTheirPathsOrTheEndsOfThem) {
  const TempFolder folder;
  const std::string path = (folder.path() / "some.safetensors").string();
  const ProgramResult result =
      run_infer({"-q", "--save", path, "--hooks", "pattern,blocks.1.hook_mlp_out", "--hooks",
                 "attn.hook_q", kText, "Tom."});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto file = SafetensorsFile::open(path);
  EXPECT_TRUE(file->contains("0.blocks.0.attn.hook_pattern"));
  EXPECT_TRUE(file->contains("1.blocks.5.attn.hook_pattern"));
  EXPECT_TRUE(file->contains("0.blocks.1.hook_mlp_out"));
  EXPECT_FALSE(file->contains("0.blocks.0.hook_mlp_out"));
  EXPECT_TRUE(file->contains("0.blocks.3.attn.hook_q"));
  EXPECT_TRUE(file->contains("1.token_ids"));
  EXPECT_EQ(file->entries().size(), 2u * (2 + 6 + 1 + 6));
}

TEST(CliObserveDataTest, InterventionsSaveBothRuns) {
  const TempFolder folder;
  const std::string path = (folder.path() / "both.safetensors").string();
  observe({"--save", path, "--edit", "reverse", "--only", "moved", kText});
  const auto file = SafetensorsFile::open(path);
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  const Encoding before = encoder.encode(kText);
  const Encoding after = encoder.encode(kText, {.positions = Positions().reversed()});
  expect_saved(*file, "0.before.last_hidden_state", {7, 128}, before.hidden(0));
  expect_saved(*file, "0.after.last_hidden_state", {7, 128}, after.hidden(0));
  expect_saved(*file, "0.after.hidden_states.6", {7, 128}, after.hidden(0));
}

TEST(CliObserveDataTest, ACorpusHasTheMeansOfItsTexts) {
  const TempFolder folder;
  const std::string file =
      folder.write("two.txt", "Tom bit a dog.\nThe old man gave the boy a book.\n").string();
  const std::vector<std::string> views = {"--only", "effect", "--only", "attention",
                                          "--only", "split",  "--only", "order"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), views.begin(), views.end());
    return observe(arguments);
  };
  const json corpus = with({"-i", file});
  const json a = with({kText});
  const json b = with({"--seed", "2", "The old man gave the boy a book."});
  EXPECT_EQ(corpus["texts"], 2);
  EXPECT_EQ(corpus["file"], file);
  const double m = a["ids"].size(), n = b["ids"].size();
  EXPECT_EQ(corpus["tokens"], m + n);
  for (size_t l = 0; l <= 6; ++l) {
    const auto expect_mean = [&](const json::json_pointer& path) {
      const double mean =
          (m * a["layers"][l].at(path).get<double>() + n * b["layers"][l].at(path).get<double>()) /
          (m + n);
      EXPECT_NEAR(corpus["layers"][l].at(path), mean, 1e-5) << path.to_string() << l;
    };
    expect_mean(json::json_pointer("/norm"));
    expect_mean(json::json_pointer("/position_effect"));
    expect_mean(json::json_pointer("/split/position"));
    expect_mean(json::json_pointer("/order_sensitivity/shuffle"));
    if (l == 0) continue;
    expect_mean(json::json_pointer("/attention/distance"));
    expect_mean(json::json_pointer("/attention/by_offset/-1"));
    expect_mean(json::json_pointer("/attention/heads/2/first"));
    // Only the longer text reaches so far.
    const double far = b["layers"][l]["attention"]["by_offset"]["9"];
    EXPECT_NEAR(corpus["layers"][l]["attention"]["by_offset"]["9"], n * far / (m + n), 1e-6);
  }
}

TEST(CliObserveDataTest, TheProbeIsTheLibrarysOnTextsItHasNotSeen) {
  const json corpus = observe({"-i", kSentences, "--only", "probe", "--seed", "3"});
  Encoder encoder(Model::load(bundled_model("sinusoidal")));
  std::vector<ProbeText> train, held_out;
  size_t number = 0;
  for (const std::string& line : lines_of(read_text_file(kSentences))) {
    ProbeText text{.token_ids = encoder.model().tokenizer().encode(line).ids, .places = {}};
    for (int64_t t = 1; t + 1 < std::ssize(text.token_ids); ++t) text.places.push_back(t);
    (number++ % 4 == 1 ? held_out : train).push_back(text);
  }
  const std::vector<ProbeReport> want = probe_positions(encoder, train, held_out, {}, 3);
  EXPECT_EQ(corpus["probe"]["train_texts"], train.size());
  EXPECT_EQ(corpus["probe"]["held_out_texts"], held_out.size());
  for (size_t l = 0; l <= 6; ++l) {
    const json& probe = corpus["layers"][l]["probe"];
    EXPECT_NEAR(probe["held_out"]["r2"], want[l].held_out.r2, 1e-3);
    EXPECT_NEAR(probe["shuffled"]["r2"], want[l].shuffled.r2, 1e-3);
    EXPECT_NEAR(probe["mean"]["mean_absolute_error"], want[l].mean.mean_absolute_error, 1e-6);
    EXPECT_EQ(probe["num_train"], want[l].num_train);
  }
  EXPECT_GT(corpus["layers"][0]["probe"]["held_out"]["r2"], 0.9);
}

TEST(CliObserveDataTest, ACorpusOfOneTextSaysWhatItCannotTell) {
  const TempFolder folder;
  const std::string file = folder.write("one.txt", kText + "\n").string();
  const json corpus = observe({"-i", file});
  EXPECT_TRUE(corpus["missing"].contains("probe"));
  EXPECT_TRUE(corpus["missing"].contains("corpus_split"));
  EXPECT_FALSE(corpus["layers"][2].contains("probe"));
}

TEST(CliObserveDataTest, ATextOfOneTokenHasNoOrder) {
  for (const std::vector<std::string>& text :
       {std::vector<std::string>{"--ids", "5"}, {"--ids", "2 3"}, {"dog"}}) {
    const json object = observe(text);
    EXPECT_TRUE(object["missing"].contains("order")) << text.back();
    EXPECT_TRUE(object["missing"].contains("split"));
    EXPECT_TRUE(object["layers"][1]["split"].is_null());
    EXPECT_TRUE(object["layers"][1]["direct_position"]["norm"].is_number());
    EXPECT_EQ(run_infer({"observe", text.front(), text.back()}).exit_code, 0);
  }
}

TEST(CliObserveDataTest, FiveHundredTokensAreMeasuredAndShownInPart) {
  std::string ids;
  for (int i = 0; i < 512; ++i) ids += std::to_string(10 + i % 400) + " ";
  const std::vector<std::string> ask = {"--ids",  ids,       "--only", "direct",
                                        "--only", "pattern", "--only", "scores"};
  const json object = observe(ask);
  EXPECT_EQ(object["layers"][3]["attention"]["heads"][1]["by_offset"].size(), 1023u);
  EXPECT_GT(object["layers"][1]["direct_position"]["norm"], 0.01);
  EXPECT_GT(object["first_layer_scores"]["position_position"], 0.1);
  std::vector<std::string> show = ask;
  show.insert(show.begin(), {"observe", "-q"});
  const ProgramResult result = run_infer(show);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("the first 32 tokens of 512"), std::string::npos);
}

TEST(CliObserveDataTest, OfEqualTokensNothingIsTheTokens) {
  const json object = observe({"--ids", "5,5,5,5,5,5"});
  for (const json& layer : object["layers"]) {
    EXPECT_NEAR(layer["split"]["position"], 1.0, 1e-9);
    EXPECT_NEAR(layer["split"]["token"], 0.0, 1e-9);
  }
}

TEST(CliObserveDataTest, WithoutPositionsNothingIsThePositions) {
  const json object = observe({"--positions", "none", kText});
  EXPECT_EQ(object["positions"], "none");
  for (const json& layer : object["layers"]) {
    EXPECT_NEAR(layer["split"]["position"], 0.0, 1e-9);
    EXPECT_EQ(layer["position_effect"], 0.0);
    EXPECT_EQ(layer["direct_position"]["norm"], 0.0);
  }
  EXPECT_EQ(object["pooled_effect"], 0.0);
  EXPECT_EQ(object["first_layer_scores"]["position_position"], 0.0);
}

TEST(CliObserveDataTest, WhatOverlappingWindowsMakeCannotBeTakenApart) {
  std::string ids;
  for (int i = 0; i < 150; ++i) ids += std::to_string(10 + i % 40) + " ";
  const json object = observe({"-m", "learned", "--ids", ids, "--overflow", "window", "--only",
                               "direct", "--only", "attention", "--only", "scores"});
  for (const char* measure : {"direct", "scores"}) {
    EXPECT_EQ(object["missing"][measure], "the text was run in overlapping windows");
  }
  EXPECT_TRUE(object["first_layer_scores"].is_null());
  EXPECT_TRUE(object["layers"][2]["direct_position"].is_null());
  EXPECT_GT(object["layers"][2]["attention"]["distance"], 1.0);
  EXPECT_TRUE(object["layers"][2]["attention"]["heads"].empty());
  EXPECT_EQ(object["missing"]["attention"],
            "head by head: the text was run in overlapping windows");
}

TEST(CliObserveDataTest, EveryFamilyIsObserved) {
  for (const FamilyCase& family :
       {bert_case(), roberta_case("roberta"), distilbert_case(true), albert_case(), t5_case(true),
        fairseq_case("marian"), fairseq_case("bart"), fairseq_case("m2m_100")}) {
    SCOPED_TRACE(family.config.dump());
    const TempFolder folder;
    const auto model = random_model(family.meaning, 7, family.extras);
    folder.write("config.json", family.config.dump());
    folder.write("model.safetensors", safetensors_bytes(tensors_of(family, *model)));
    const json object =
        observe({"-m", folder.path().string(), "--ids", "3 4 5 6 3", "--cut-residual", "1.mlp"});
    const bool relative = family.meaning.position.kind == PositionKind::kRelativeBias;
    for (const char* run : {"before", "after"}) {
      for (const json& layer : object[run]["layers"]) {
        const json& split = layer["split"];
        EXPECT_NEAR(split["position"].get<double>() + split["token"].get<double>() +
                        split["rest"].get<double>(),
                    1.0, 1e-9);
        EXPECT_EQ(layer["direct_position"].is_null(), relative);
      }
      EXPECT_EQ(object[run]["missing"].contains("direct"), relative);
      double sum = 0;
      for (const auto& [term, share] : object[run]["first_layer_scores"].items()) {
        if (term != "heads") sum += share.get<double>();
      }
      EXPECT_NEAR(sum, 1.0, 1e-6);
    }
  }
}

TEST(CliObserveDataTest, EveryBadInputHasItsOneLine) {
  const auto fails = [](std::vector<std::string> arguments, int code,
                        const std::vector<std::string>& words) {
    arguments.insert(arguments.begin(), "observe");
    expect_infer_fails(arguments, code, words);
  };
  fails({}, 2, {"give a text"});
  fails({"--edit", "twist", kText}, 2, {"--edit twist", "zero, scale=X"});
  fails({"--edit", "scale=much", kText}, 2, {"scale=much", "scale=0.5"});
  fails({"--edit", "scale=nan", kText}, 2, {"scale=nan"});
  fails({"--edit", "shift=1.5", kText}, 2, {"whole number"});
  fails({"--edit", "swap=2", kText}, 2, {"swap=2,5"});
  fails({"--edit", "swap=2,50", kText}, 3, {"50"});
  fails({"--edit", "shift=200", "-m", "learned", kText}, 3, {"200"});
  fails({"--edit", "table=/nowhere.npy", kText}, 3, {"/nowhere.npy"});
  fails({"--cut-residual", "0", kText}, 3, {"1 to 6"});
  fails({"--cut-residual", "7.attn", kText}, 3, {"1 to 6"});
  fails({"--cut-residual", "1.head", kText}, 2, {"1.attn"});
  fails({"--head", "2", kText}, 2, {"2.1"});
  fails({"--head", "2.9", kText}, 3, {"6.4"});
  fails({"--only", "everything", kText}, 2, {"everything", "split"});
  fails({"--only", "moved", kText}, 2, {"--edit"});
  fails({"--only", "probe", kText}, 2, {"-i FILE"});
  fails({"--csv", "--json", kText}, 2, {"--csv and --json"});
  fails({"--hooks", "all", kText}, 2, {"--save"});
  fails({"--save", "x.txt", kText}, 2, {".safetensors"});
  fails({"--save", "/tmp/x.npz", "--hooks", "hook_nothing", kText}, 3, {"hook_nothing"});
  fails({"--save", "/tmp/x.npz", "-i", kSentences}, 2, {"give a text"});
  fails({"-i", "/nowhere.txt"}, 3, {"/nowhere.txt"});
  fails({"--html", "/nowhere/page.html", kText}, 3, {"--html", "/nowhere/page.html"});
  fails({"--max-tokens", "0", kText}, 2, {"--max-tokens"});
  fails({"--ids", "5", kText}, 2, {"exclude"});
}

/// The Python that has numpy; empty where there is none.
std::string python_with_numpy() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (run_program({"/usr/bin/env", python, "-c", "import numpy"}).exit_code == 0) return python;
  }
  return "";
}

TEST(CliObserveDataTest, PythonReadsTheFilesAsTheDocumentationDoes) {
  const std::string python = python_with_numpy();
  if (python.empty()) GTEST_SKIP() << "There is no numpy; install python3-numpy.";
  const TempFolder folder;
  const std::string binary = INFER_BINARY;
  const std::string path = fs::path(binary).parent_path().string();
  size_t scripts = 0;
  std::string script, language;
  for (const std::string& line :
       lines_of(read_text_file(fs::path(PHASOR_SOURCE_DIR) / "docs/reading-in-python.md"))) {
    if (!line.starts_with("```")) {
      if (!language.empty()) script += line + "\n";
      continue;
    }
    if (language == "sh") {
      const auto run = [&](const std::string& command) {
        const ProgramResult result =
            run_program({"/bin/sh", "-c", "PATH='" + path + "':$PATH; " + command},
                        {.directory = folder.path()});
        EXPECT_EQ(result.exit_code, 0) << command << result.err;
      };
      run(script);
      // The last script reads the same from the other format.
      if (const size_t npz = script.find(".npz"); npz != script.npos) {
        run(script.replace(npz, 4, ".safetensors"));
      }
    } else if (language == "python") {
      const ProgramResult result =
          run_program({"/usr/bin/env", python, "-c", script}, {.directory = folder.path()});
      EXPECT_EQ(result.exit_code, 0) << script << result.err;
      EXPECT_NE(result.out, "");
      ++scripts;
    }
    language = language.empty() ? line.substr(3) : "";
    script.clear();
  }
  EXPECT_EQ(scripts, 5u);
}

}  // namespace
}  // namespace phasor
