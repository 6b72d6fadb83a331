// infer verify: models that agree with their reference, and where those differ that do not.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"
#include "tests/support/shared_files.h"

namespace phasor {
namespace {

/// A copy of a bundled model, whose reference a test changes.
class CliVerifyTest : public testing::Test {
 protected:
  void change_golden(const std::function<void(json&)>& change) const {
    json golden = json::parse(read_text_file(copy_ / "golden.json"));
    change(golden);
    folder_.write("none/golden.json", golden.dump());
  }
  /// Changes the bytes of a safetensors file, whose header is `header` and ends at `data`.
  void change_tensors(const std::string& file,
                      const std::function<void(std::string& bytes, const json& header,
                                               size_t data)>& change) const {
    std::string bytes = read_text_file(copy_ / file);
    uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data(), 8);
    change(bytes, json::parse(bytes.substr(8, header_size)), 8 + header_size);
    folder_.write("none/" + file, bytes);
  }
  void expect_differs(const Words& said, const Words& options = {}) const {
    const ProgramResult result = run_infer(Words{"verify", "-q", copy_.string()} + options);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    expect_contains(result.out, said);
  }

  const TempFolder folder_;
  const fs::path copy_ = copy_of_bundled(folder_, "none");
};

TEST_F(CliVerifyTest, TheBundledModelsAgreeWithTheirTraining) {
  EXPECT_EQ(succeed({"verify", "sinusoidal", "learned", "none"}).err, "");
  const json objects = json_of("verify sinusoidal learned none");
  ASSERT_EQ(objects.size(), 3u);
  for (const json& object : objects) {
    EXPECT_EQ(object["ok"], true);
    EXPECT_GT(object["texts"], 0);
    EXPECT_EQ(object["tensors"].size(), 7u + 6 + 1);
  }
}

TEST_F(CliVerifyTest, NamesTheFirstLayerThatDiffers) {
  change_golden([](json& golden) {
    golden["atol"] = golden["rtol"] = 0;
    golden["items"][0]["ids"].push_back(7);
  });
  expect_differs({"first difference: the ids of item 0", "hidden_states.0"});
  // Without a text only the layers can differ.
  change_golden([](json& golden) { golden["items"][0]["text"] = nullptr; });
  expect_differs({"first difference: hidden_states.0 of item 0 has shape"});
}

TEST_F(CliVerifyTest, AnInfiniteReferenceIsNotMetByAnything) {
  change_tensors("golden.safetensors", [](std::string& bytes, const json&, size_t data) {
    const float infinite = std::numeric_limits<float>::infinity();
    for (size_t at = data; at + 4 <= bytes.size(); at += 4) std::memcpy(&bytes[at], &infinite, 4);
  });
  expect_differs({});
}

TEST_F(CliVerifyTest, AChangedWeightShowsWhereItActs) {
  change_tensors("model.safetensors", [](std::string& bytes, const json& header, size_t data) {
    std::string name;  // of the last bias in the last block
    for (const auto& [key, value] : header.items()) {
      if (contains(key, "5") && contains(key, "bias") && contains(key, "norm")) name = key;
    }
    ASSERT_FALSE(name.empty());
    const size_t at = data + header[name]["data_offsets"][0].get<size_t>();
    bytes[at] = 0, bytes[at + 1] = 0x44;  // 4.0 as float16
  });
  expect_differs({"first difference: hidden_states.6 of item 0"});
}

TEST_F(CliVerifyTest, GoesOnAfterAFolderThatCannotBeRead) {
  const ProgramResult result = run_infer({"verify", "--json", "no-such-model", "none"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
}

TEST_F(CliVerifyTest, ReferenceFilesThatAreMissingOrBrokenAreNamed) {
  const auto fails = [&](int exit_code, const std::string& word) {
    expect_infer_fails({"verify", copy_.string()}, exit_code, {word});
  };
  folder_.write("none/golden.json", R"({"atol": 1, "rtol": 1, "items": [{"ids": ["x"]}]})");
  fails(3, "golden.json");
  folder_.write("none/golden.json", R"({"atol": 1, "rtol": 1, "items": [{"ids": [5]}]})");
  folder_.write("none/golden.safetensors", safetensors_bytes(std::vector<TestTensor>{}));
  fails(3, "0.hidden_states.0");
  fs::remove(copy_ / "golden.safetensors");
  fails(4, "golden.safetensors");
  fs::remove(copy_ / "golden.json");
  fails(3, "golden.json");
}

TEST_F(CliVerifyTest, EachTensorSaysWhatThePrecisionCosts) {
  double cosine = 1;  // of the last state, falling from precision to precision
  for (const std::string name : {"f32", "bf16", "int8"}) {
    const json object = json_of("verify -q sinusoidal --precision " + name);
    EXPECT_EQ(object["ok"], true);
    EXPECT_EQ(object["precision"], name);
    ASSERT_EQ(object["tensors"].size(), 7u + 6 + 1);
    const json &first = object["tensors"][0], &last = object["tensors"][12];
    EXPECT_EQ(last["tensor"], "hidden_states.6");
    EXPECT_LT(last["mean_cosine"], cosine);
    cosine = last["mean_cosine"];
    EXPECT_GT(cosine, object["least_mean_cosine"]);
    EXPECT_LE(first["max_diff"], 1e-6) << "embeddings are float32 in every precision";
  }
}

TEST_F(CliVerifyTest, BelowTheBoundTheCheckFailsAndSaysWhy) {
  change_golden([](json& golden) {
    for (json& item : golden["items"]) {  // other inputs of the same length than the reference's
      for (size_t t = 1; t < item["ids"].size(); ++t) item["ids"][t] = 500 + 7 * t;
      item["text"] = nullptr;
    }
  });
  expect_differs(
      {"mean cosine >= 0.99", "the mean cosine of hidden_states.6 is 0.", ", below 0.99"},
      {"--precision", "int8"});
}

TEST_F(CliVerifyTest, LogitsAreComparedWithoutHiddenStates) {
  const BertFolder model({"relevant"});
  const double logit = json_of("rank a b -m " + model.path())["ranking"][0]["logit"];
  const auto verify = [&](const json& more, const Words& options = {}) {
    json item = {{"text", "a"},
                 {"text_pair", "b"},
                 {"ids", {2, 4, 3, 6, 3}},
                 {"token_type_ids", {0, 0, 0, 1, 1}},
                 {"logits", {logit}}};
    item.update(more);
    const json golden = {{"atol", 1e-5}, {"rtol", 0}, {"items", json::array({item})}};
    model.folder().write("golden.json", golden.dump());
    return run_infer(Words{"verify", model.path()} + options);
  };
  const json good = json::parse(verify(json::object(), {"--json"}).out);
  EXPECT_TRUE(holds(good, json::parse(R"({"ok": true, "tensors": [{"tensor": "logits"}]})")))
      << good;
  EXPECT_EQ(verify(json::object(), {"--precision", "bf16"}).exit_code, 0);
  const ProgramResult opposite = verify({{"logits", {-logit}}}, {"--precision", "bf16"});
  EXPECT_EQ(opposite.exit_code, 1);
  expect_contains(opposite.out, {"the mean cosine of logits is -1"});
  const ProgramResult other = verify({{"logits", {logit + 1e-3}}});
  EXPECT_EQ(other.exit_code, 1);
  expect_contains(other.out, {"logits of item 0 ('a') differs"});
  const auto with_last_type = [&](int type) {
    return verify({{"token_type_ids", {0, 0, 0, 0, type}}});
  };
  expect_contains(with_last_type(1).out, {"token types of item 0"});
  EXPECT_EQ(with_last_type(7).exit_code, 3);
  expect_contains(with_last_type(7).err, {"token type 7", "0 to 1"});
}

TEST_F(CliVerifyTest, OtherFrameworksActivationsAreReached) {
  PHASOR_SHARED_OR_SKIP(golden, "golden");
  PHASOR_SHARED_OR_SKIP(real, "real");
  PHASOR_SHARED_OR_SKIP(newer, "golden2");
  Words folders;
  size_t older = 0;  // of which some have ids alone
  for (const fs::path& group : {golden, real, newer}) {
    if (group == newer) older = folders.size();
    for (const auto& folder : fs::directory_iterator(group)) {
      const bool has_states = fs::exists(folder.path() / "golden.safetensors");
      if (has_states || group != newer) folders.push_back(folder.path().string());
    }
  }
  for (const std::string precision : {"f32", "bf16", "int8"}) {
    const std::vector<json> objects =
        infer_json(Words{"verify", "-q", "--precision", precision} + folders);
    ASSERT_EQ(objects.size(), folders.size());
    std::set<std::string> families;
    for (size_t i = 0; i < objects.size(); ++i) {
      const json& object = objects[i];
      EXPECT_EQ(object["ok"], true) << precision << object;
      EXPECT_TRUE(i < older || object["texts"] > 0) << object;
      families.insert(object["family"]);
    }
    EXPECT_GE(families.size(), 11u);
  }
}

TEST_F(CliVerifyTest, TodaysArchitecturesAreRightWithBothLibrariesOfKernels) {
  PHASOR_SHARED_OR_SKIP(golden, "golden3");
  for (const std::string name :
       {"eurobert", "eurobert-classifier-bos", "eurobert-classifier-mean",
        "eurobert-classifier-late", "qwen3-embedding", "qwen3-bidirectional",
        "qwen3-bidirectional-flag", "embeddinggemma", "t5gemma", "mmbert", "granite-o200k",
        "modernbert-gpt4"}) {
    for (const char* const kernels : {"own", "onednn"}) {
      const std::string folder = (golden / name).string();
      for (const json& object : infer_json({"verify", "-q", "--kernels", kernels, folder}))
        EXPECT_EQ(object["ok"], true) << name << " " << kernels << object;
    }
  }
}

TEST_F(CliVerifyTest, ReferenceClassifiersAreRight) {
  for (const char* const name : {"bert-cross-encoder", "xlm-roberta-reranker",
                                 "distilbert-classifier", "modernbert-classifier"}) {
    PHASOR_SHARED_OR_SKIP(folder, std::string("golden2/") + name);
    expect_contains(succeed({"verify", folder}).out, {"logits"});
  }
}

}  // namespace
}  // namespace phasor
