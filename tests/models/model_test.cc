// Model::create, Model::load and find_model: what fits together, and what is said where it does
// not; and that checkpoints compute what another implementation computes.
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/family_files.h"
#include "tests/support/test.h"

namespace phasor {
namespace {

ModelConfig random_config() {
  return {.family = "phasor",
          .d_model = 6,
          .d_ff = 10,
          .num_layers = 2,
          .num_heads = 3,
          .vocab_size = 11,
          .max_positions = 8,
          .position = {.kind = PositionKind::kLearned, .first_position = 2}};
}

/// Writes the small phasor checkpoint after `change` and loads it.
std::shared_ptr<const Model> load_small(
    const std::function<void(json&, std::vector<TestTensor>&)>& change) {
  json config = small_config_json();
  std::vector<TestTensor> tensors = small_tensors();
  change(config, tensors);
  return load_checkpoint(config, tensors);
}

TEST(ModelTest, CreateRefusesWhatDoesNotFit) {
  const auto model = random_model(random_config(), 1);
  EXPECT_TRUE(model->folder().empty());
  EXPECT_REFUSED(model->tokenizer(), {"without a tokenizer"});
  ModelConfig config = random_config();
  config.num_heads = 4;
  EXPECT_INVALID(Model::create(config, model->weights(), model), {"6", "4"});
  const auto expect_refused = [&](const std::function<void(Weights&)>& change,
                                  const std::vector<std::string>& words) {
    Weights weights = model->weights();
    change(weights);
    EXPECT_REFUSED(Model::create(model->config(), weights, model), words);
  };
  expect_refused([](Weights& weights) { weights.blocks[1].k.weight = {}; },
                 {"blocks.1.attn.k.weight", "missing", "[6, 6]"});
  expect_refused([](Weights& weights) { weights.blocks.pop_back(); }, {"1 blocks", "2"});
  expect_refused(
      [](Weights& weights) {
        weights.blocks[0].up.weight.shape = {6, 10};
      },
      {"blocks.0.mlp.up.weight", "[6, 10]", "[10, 6]"});
  expect_refused(
      [](Weights& weights) {
        weights.position_table.shape = {8, 6};
      },
      {"position_embedding.weight", "[8, 6]", "[10, 6]"});
}

TEST(ModelTest, ASmallCheckpointIsLoadedAndTensorsWithoutUseAreListed) {
  const auto model = load_small([](json&, std::vector<TestTensor>& tensors) {
    tensors.push_back({"position_ids", {7}, "I64"});
    tensors.push_back({"decoder.weight", {2}});
  });
  EXPECT_EQ(model->config().d_model, 4);
  EXPECT_EQ(model->weights().token_embedding.to_float()[19], 19.0f);  // counts up from 0
  EXPECT_EQ(model->weights().position_table.to_float()[0], 1.0f);     // the second tensor
  EXPECT_EQ(model->metadata().at("format"), "pt");
  EXPECT_EQ(model->unused_tensors(), (std::vector<std::string>{"decoder.weight", "position_ids"}));
  EXPECT_TRUE(model->notes().empty());
  EXPECT_FALSE(model->weights().mlm_head.has_value());
  EXPECT_REFUSED(model->tokenizer(), {"no tokenizer files", "token ids"});
}

TEST(ModelTest, ATensorThatIsMissingOrOfAnotherShapeOrDtypeIsNamed) {
  struct Row {
    const char* name;
    std::vector<TestTensor> instead;
    std::vector<std::string> words;
  };
  const std::string value = "blocks.0.attn.v.weight", bias = "blocks.0.attn.v.bias";
  for (const Row& row : std::vector<Row>{
           {"blocks.1.mlp_norm.bias",
            {},
            {"model.safetensors", "'blocks.1.mlp_norm.bias'", "missing", "[4]"}},
           {"position_embedding.weight", {}, {"'position_embedding.weight'", "[7, 4]"}},
           {"blocks.0.attn.v.weight", {{value, {2, 8}}}, {value, "[2, 8]", "[4, 4]"}},
           {"blocks.0.attn.v.bias", {{bias, {4}, "I64"}}, {bias, "I64", "F32"}}}) {
    const auto change = [&](json&, std::vector<TestTensor>& tensors) {
      remove_tensor(tensors, row.name);
      tensors.insert(tensors.end(), row.instead.begin(), row.instead.end());
    };
    EXPECT_REFUSED(load_small(change), row.words);
  }
  EXPECT_REFUSED(load_checkpoint(small_config_json(), {}),
                 {"'blocks.0.attn.q.weight'", "phasor model"});
  json config = small_config_json();
  config["vocab_size"] = 6;
  EXPECT_REFUSED(load_checkpoint(config, small_tensors()),
                 {"'token_embedding.weight'", "[5, 4]", "[6, 4]"});
}

TEST(ModelTest, APromisedMlmHeadMustBeThereAndIsTiedToTheEmbedding) {
  const auto promise = [](json& config, std::vector<TestTensor>& tensors) {
    config["mlm_head"] = true;
    for (const char* const name : {"mlm.dense.bias", "mlm.norm.weight", "mlm.norm.bias"})
      tensors.push_back({name, {4}});
    tensors.push_back({"mlm.dense.weight", {4, 4}});
  };
  EXPECT_REFUSED(load_small(promise), {"'mlm.bias'", "missing", "[5]"});
  const auto model = load_small([&](json& config, std::vector<TestTensor>& tensors) {
    promise(config, tensors);
    tensors.push_back({"mlm.bias", {5}});
  });
  ASSERT_TRUE(model->weights().mlm_head.has_value());
  EXPECT_EQ(model->weights().mlm_head->decoder.data, model->weights().token_embedding.data);
  // What is tied counts once.
  ModelConfig config = random_config();
  config.embedding_norm = config.final_norm = true;
  const int64_t block = 4 * (36 + 6) + 2 * 12 + (60 + 10) + (60 + 6), head = (36 + 6) + 12 + 11;
  EXPECT_EQ(random_model(config, 1, {.token_types = 2, .mlm_head = true})->num_parameters(),
            66 + 60 + 12 + 12 + 2 * block + 12 + head);
}

TEST(ModelTest, AStoredSinusoidIsUsedAndNotedWhereItDiffersFromTheFormula) {
  for (const int64_t width : {2, 4, 6}) {  // of the embedding; d_model is 4
    const std::vector<double> exact = sinusoidal_table(SinusoidalLayout::kPaper, 7, width);
    const auto load_with = [&](const std::vector<float>& table) {
      return load_small([&](json& config, std::vector<TestTensor>& tensors) {
        config["position"] = {{"kind", "sinusoidal"}, {"layout", "paper"}};
        tensor_of(tensors, "position_embedding.weight") = {
            "position_embedding.weight", {7, width}, "F32", float_bytes(table)};
        if (width == 4) return;
        config["d_embedding"] = width;
        tensor_of(tensors, "token_embedding.weight") = {"token_embedding.weight", {5, width}};
        tensors.push_back({"embedding_map.weight", {4, width}});
        tensors.push_back({"embedding_map.bias", {4}});
      });
    };
    const std::vector<float> table(exact.begin(), exact.end());
    EXPECT_EQ(load_with(table)->notes(), std::vector<std::string>{}) << width;
    for (const int64_t place : {4 * width + 1, 7 * width - 1}) {
      std::vector<float> changed = table;
      changed[place] += 2e-4f;
      const auto model = load_with(changed);
      expect_one_note(model->notes(), {fmt::format("row {}", place / width), "paper"});
      EXPECT_EQ(model->weights().position_table.to_float(), changed);
    }
  }
}

/// A BERT as old conversions from TensorFlow wrote it, with its head.
std::vector<TestTensor> bert_for_masked_lm() {
  std::vector<TestTensor> tensors = tensors_of(bert_case());
  tensors.push_back({"bert.embeddings.position_ids", {1, 16}, "I64"});
  return tensors;
}

std::shared_ptr<const Model> load_bert(const std::vector<TestTensor>& tensors,
                                       const json& more_keys = json::object()) {
  json config = bert_case().config;
  config.update(more_keys);
  return load_checkpoint(config, tensors);
}

TEST(ModelTest, AnIncompleteHeadIsNotedAndOneThatIsNotTiedNeedsADecoderOfItsOwn) {
  std::vector<TestTensor> tensors = bert_for_masked_lm();
  remove_tensor(tensors, "cls.predictions.bias");
  const auto without_bias = load_bert(tensors);
  EXPECT_FALSE(without_bias->weights().mlm_head.has_value());
  expect_one_note(without_bias->notes(), {"mlm.bias"});
  tensors = bert_for_masked_lm();
  tensors.push_back({"cls.predictions.decoder.weight", {8, 12}});
  EXPECT_FALSE(load_bert(tensors)->weights().mlm_head.has_value());
  const json untied = {{"tie_word_embeddings", false}};
  tensors = bert_for_masked_lm();
  EXPECT_FALSE(load_bert(tensors, untied)->weights().mlm_head.has_value());
  tensors.push_back({"cls.predictions.decoder.weight", {23, 12}});
  const auto model = load_bert(tensors, untied);
  ASSERT_TRUE(model->weights().mlm_head.has_value());
  EXPECT_NE(model->weights().mlm_head->decoder.data, model->weights().token_embedding.data);
}

TEST(ModelTest, TwoEncodersInOneFileOrNoTokenTypesAreRefusedAndADecoderIsNone) {
  std::vector<TestTensor> tensors = bert_for_masked_lm();
  const std::string query = "encoder.layer.0.attention.self.query.weight";
  tensors.push_back({"decoder." + query, {12, 12}});
  EXPECT_EQ(load_bert(tensors)->unused_tensors().size(), 2u);
  tensors.push_back({"passage.bert." + query, {12, 12}});
  EXPECT_REFUSED(load_bert(tensors), {"several encoders", "\"bert.\"", "\"passage.bert.\""});
  std::vector<TestTensor> without_types = bert_for_masked_lm();
  remove_tensor(without_types, "bert.embeddings.token_type_embeddings.weight");
  EXPECT_REFUSED(load_bert(without_types), {"embeddings.token_type_embeddings.weight'", "missing"});
}

/// The variables that say where the hub's cache is, while this lives; others of them are unset.
class HubVariables {
 public:
  using Values = std::map<std::string, std::string>;

  explicit HubVariables(const Values& values) {
    for (const char* const name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME",
                                   "XDG_CACHE_HOME", "HOME", "PLACE", "EMPTY"}) {
      const char* const before = std::getenv(name);
      before_.emplace_back(name, before ? std::optional<std::string>(before) : std::nullopt);
      unsetenv(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  ~HubVariables() {
    for (const auto& [name, value] : before_)
      value ? setenv(name, value->c_str(), 1) : unsetenv(name);
  }

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST(ModelTest, TheHubsCacheIsWhereHuggingfaceHubHasIt) {
  const TempFolder temp;
  const std::string H = temp.path(), other = H + "/other";
  for (const std::string cache : {"/hub", "/huggingface/hub", "/.cache/huggingface/hub"}) {
    const std::string model = cache.substr(1) + "/models--owner--tiny/";
    temp.write(model + "refs/main", "0a1b");
    temp.write(model + "snapshots/0a1b/config.json", "{}");
  }
  const std::string direct = H + "/hub", below = H + "/huggingface/hub";
  const std::pair<HubVariables::Values, std::string> rows[] = {
      {{{"HF_HUB_CACHE", direct}}, direct},
      {{{"HUGGINGFACE_HUB_CACHE", direct}}, direct},
      {{{"HF_HOME", H}}, direct},
      {{{"XDG_CACHE_HOME", H}}, below},
      {{{"HOME", H}}, H + "/.cache/huggingface/hub"},
      // The first that is set and not empty counts.
      {{{"HF_HUB_CACHE", direct}, {"HUGGINGFACE_HUB_CACHE", other}, {"HF_HOME", other}}, direct},
      {{{"HUGGINGFACE_HUB_CACHE", direct}, {"HF_HOME", other}}, direct},
      {{{"HF_HOME", H}, {"XDG_CACHE_HOME", other}, {"HOME", other}}, direct},
      {{{"XDG_CACHE_HOME", H}, {"HOME", other}}, below},
      {{{"HF_HUB_CACHE", ""}, {"HF_HOME", H}}, direct},
      // ~, $NAME and ${NAME} in each of them.
      {{{"HF_HUB_CACHE", "~/hub"}, {"HOME", H}}, direct},
      {{{"HUGGINGFACE_HUB_CACHE", "~/hub"}, {"HOME", H}}, direct},
      {{{"HF_HOME", "~"}, {"HOME", H}}, direct},
      {{{"XDG_CACHE_HOME", "~"}, {"HOME", H}}, below},
      {{{"HF_HUB_CACHE", "$PLACE/hub"}, {"PLACE", H}}, direct},
      {{{"HUGGINGFACE_HUB_CACHE", "${PLACE}/hub"}, {"PLACE", H}}, direct},
      {{{"HF_HOME", "$PLACE"}, {"PLACE", H}}, direct},
      {{{"HF_HOME", H + "/${EMPTY}"}, {"EMPTY", ""}}, H + "//hub"},
      {{{"XDG_CACHE_HOME", "${PLACE}"}, {"PLACE", H}}, below}};
  for (const auto& [values, cache] : rows) {
    const HubVariables set(values);
    EXPECT_EQ(find_model("owner/tiny").string(), cache + "/models--owner--tiny/snapshots/0a1b")
        << testing::PrintToString(values);
  }
  for (const char* const kept :
       {"$NOT_SET/x", "${NOT_SET}", "$", "${", "${PLACE", "x~/y", "~a/b"}) {
    const HubVariables set({{"HF_HUB_CACHE", kept}, {"HOME", H}, {"PLACE", H}});
    EXPECT_REFUSED(find_model("owner/tiny"), {std::string("cache ") + kept + ";"});
  }
}

TEST(ModelTest, WhatIsMissingOfAModelInTheHubsCacheIsNamed) {
  const TempFolder home;
  const HubVariables set({{"HF_HUB_CACHE", home.path()}});
  const std::string advice = "hf download owner/tiny --include";
  const fs::path model = home / "models--owner--tiny", snapshot = model / "snapshots/0a1b";
  const auto load = [] { return Model::load("owner/tiny"); };
  const auto expect_missing = [&](const std::string& what) {
    expect_code(ErrorCode::kNotFound, what, load);
    expect_error<ModelError>(load, {what, advice});
  };
  expect_missing("no model of that name in the Hugging Face hub's cache " + home.path().string());
  fs::create_directories(snapshot);
  expect_missing((model / "refs/main").string());
  for (const char* const commit : {"none", ".", "..", "../..", "/etc", "0a1", ""}) {
    home.write("models--owner--tiny/refs/main", commit);
    expect_missing("snapshot \"" + std::string(commit) + "\", which is not there");
  }
  home.write("models--owner--tiny/refs/main", "0a1b");
  expect_error<ModelError>(load, {snapshot.string() + ": no config.json in it"});
  for (const auto& [name, bytes] :
       {std::pair<const char*, std::string>("config.json", small_config_json().dump()),
        {"model.safetensors", safetensors_bytes(small_tensors())}}) {
    fs::create_symlink("../../blobs/" + std::string(name), snapshot / name);
    expect_error<ModelError>(load, {(snapshot / name).string() + ": a link to a file that is not"});
    home.write("models--owner--tiny/blobs/" + std::string(name), bytes);
  }
  EXPECT_EQ(load()->config().d_model, 4);
}

TEST(ModelTest, NamesThatTheHubDoesNotAllowAreNotLookedUpInItsCache) {
  for (const std::string name :
       {"owner/..", "../model", "owner/.model", "-owner/model", "owner/model-", "owner/a--b",
        "owner/a/b", "/model", "owner/", "owner/a b", "owner/$(a)", "~/model"}) {
    try {
      find_model(name);
      ADD_FAILURE() << name;
    } catch (const ModelError& error) {
      EXPECT_EQ(std::string(error.what()).find("hub's cache"), std::string::npos) << error.what();
    }
  }
}

TEST(ModelTest, FoldersThatAreNoModels) {
  const TempFolder folder;
  EXPECT_REFUSED(Model::load(folder.path()), {folder.path().string(), "no config.json"});
  folder.write("config.json", small_config_json().dump());
  EXPECT_REFUSED(Model::load(folder.path()), {"no model.safetensors"});
  folder.write("model.pt", "\x80\x02}q");
  EXPECT_REFUSED(Model::load(folder.path()), {"model.pt", "pickle", "name it"});
  EXPECT_REFUSED(Model::load(folder / "config.json"), {"not a folder"});
  EXPECT_REFUSED(Model::load(folder / "config.json" / "x"), {"config.json"});
  EXPECT_REFUSED(Model::load(""), {"no model ''"});
  EXPECT_REFUSED(Model::load(std::string(5000, 'x')), {"xxx"});
  const TempFolder other;
  const fs::path file = other.write("bge-small-q8_0.gguf", "GGUF");
  EXPECT_REFUSED(Model::load(other.path()), {"no config.json", "bge-small-q8_0.gguf", "llama.cpp"});
  EXPECT_REFUSED(Model::load(file), {"not a folder", "GGUF"});
}

TEST(ModelTest, AFolderAboveOneOrMoreModelsNamesThem) {
  const TempFolder folder;
  const auto expect_refused = [&](const std::vector<std::string>& words) {
    EXPECT_REFUSED(Model::load(folder.path()), words);
  };
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  folder.write("2_Dense/config.json", R"({"in_features": 4, "out_features": 2})");
  folder.write("2_Dense/model.safetensors", safetensors_bytes(small_tensors()));
  expect_refused({"tokenizer files"});
  folder.write("snapshots/5c38/config.json", small_config_json().dump());
  expect_refused({"in a folder below; give that one: ", folder / "snapshots/5c38"});
  for (const std::string name : {"a", "b", "c", "d", "e"})
    folder.write(name + "/config.json", small_config_json().dump());
  expect_refused({"give one of them: " + (folder / "a").string() + ", ", "(6 in all)"});
  EXPECT_NO_THROW(find_model(folder.path()));
}

/// Without the superuser's rights, who can read everything, until the end of the scope.
class Nobody {
 public:
  Nobody() : user_(geteuid()) {
    if (user_ != 0) return;
    EXPECT_EQ(seteuid(65534), 0);
  }
  ~Nobody() { EXPECT_EQ(seteuid(user_), 0); }

 private:
  const uid_t user_;
};

TEST(ModelTest, AnUnreadableFolder) {
  const TempFolder folder;
  const fs::path config = folder.write("model/config.json", small_config_json().dump());
  fs::permissions(folder.path(), fs::perms(0755));
  fs::permissions(config, fs::perms::none);
  {
    const Nobody nobody;
    EXPECT_REFUSED(Model::load(config.parent_path()), {"config.json", "Permission denied"});
  }
  fs::permissions(config.parent_path(), fs::perms::none);
  {
    const Nobody nobody;
    EXPECT_REFUSED(Model::load(config.parent_path()), {"Permission denied"});
    EXPECT_REFUSED(Model::load(config.parent_path() / "x"), {"Permission denied"});
    EXPECT_REFUSED(Tokenizer::load(config.parent_path()), {"Permission denied"});
  }
  fs::permissions(config.parent_path(), fs::perms(0700));
}

TEST(ModelTest, ABundledModelIsFoundByItsName) {
  const TempFolder folder;
  folder.write("mine/config.json", "{}");
  setenv("PHASOR_MODELS", folder.path().c_str(), 1);
  EXPECT_EQ(find_model("mine"), folder / "mine");
  EXPECT_EQ(find_model(folder.path()), folder.path());
  EXPECT_REFUSED(find_model("yours"), {"'yours'", "mine"});
  unsetenv("PHASOR_MODELS");
}

TEST(ModelTest, ABrokenTokenizerDoesNotKeepTheWeightsFromBeingLoaded) {
  const auto model = load_small([](json& config, std::vector<TestTensor>&) {
    config["tokenizer"] = {{"type", "wordpiece"}};
  });
  EXPECT_REFUSED(model->tokenizer(), {"\"wordpiece\"", "sentencepiece"});
}

/// √(mean x²).
double size_of(const Tensor& tensor) {
  double squares = 0;
  for (const float x : tensor.to_float()) squares += static_cast<double>(x) * x;
  return std::sqrt(squares / static_cast<double>(tensor.num_elements()));
}

TEST(UntrainedModelTest, IsDrawnAsDocumented) {
  const std::shared_ptr<const Model> trained = Model::load(bundled_model("learned"));
  for (const bool own : {false, true}) {
    const auto model = own ? trained->untrained(1, Spread::kOwn) : trained->untrained(1);
    EXPECT_EQ(model->config(), trained->config());
    EXPECT_EQ(&model->tokenizer(), &trained->tokenizer());
    const auto before = trained->parameters(), after = model->parameters();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < after.size(); ++i) {
      const auto& [name, tensor] = after[i];
      SCOPED_TRACE(name);
      ASSERT_EQ(name, before[i].first);
      ASSERT_EQ(tensor.shape, before[i].second.shape);
      const std::vector<float> values = tensor.to_float(), old = before[i].second.to_float();
      // The mean of n squares is known up to √(2/n), its root up to half of that.
      const double error = 4 / std::sqrt(2.0 * static_cast<double>(values.size()));
      const bool is_embedding = name.find("embedding") != name.npos;
      if (is_embedding && own) {
        EXPECT_EQ(values, old);
      } else if (is_embedding || (own && tensor.shape.size() == 2)) {
        EXPECT_NEAR(size_of(tensor) / size_of(before[i].second), 1, error);
        EXPECT_NE(values, old);
      } else if (tensor.shape.size() == 2) {
        const double bound =
            std::sqrt(6.0 / static_cast<double>(tensor.shape[0] + tensor.shape[1]));
        EXPECT_LE(std::abs(*std::ranges::max_element(values)), bound);
        EXPECT_NEAR(size_of(tensor) / bound, std::sqrt(1.0 / 3), 0.01);
      } else {
        EXPECT_EQ(values, std::vector<float>(values.size(), name.ends_with("norm.weight")));
      }
    }
  }
}

TEST(UntrainedModelTest, TheSeedDrawsTheSameAndAnotherDoesNot) {
  const std::shared_ptr<const Model> trained = Model::load(bundled_model("sinusoidal"));
  const auto values = [&](uint64_t seed) {
    return trained->untrained(seed)->weights().blocks[3].up.weight.to_float();
  };
  EXPECT_EQ(values(1), values(1));
  EXPECT_NE(values(1), values(2));
  // What is computed or tied stays so.
  const std::shared_ptr<const Model> model = trained->untrained(1);
  EXPECT_EQ(model->position_vectors(9), trained->position_vectors(9));
  EXPECT_EQ(model->weights().mlm_head->decoder.data, model->weights().token_embedding.data);
}

TEST(UntrainedModelTest, OutlivesTheModelItWasMadeOf) {
  ModelConfig config = random_config();
  config.position.kind = PositionKind::kSinusoidal;
  std::shared_ptr<const Model> trained =
      random_model(config, 1, {.store_position_table = true});  // which is not drawn
  const std::vector<float> stored = trained->position_vectors(5);
  const std::shared_ptr<const Model> model = trained->untrained(1);
  trained.reset();
  EXPECT_EQ(model->position_vectors(5), stored);
}

// Hidden states and attention patterns beside those of another implementation: golden.json has the
// ids and tolerances, golden.safetensors the tensors as `infer --save` names them. The ids of their
// texts are compared in tests/tokenizer/tokenizer_test.cc.
class ReferenceTest : public testing::TestWithParam<std::string> {
 protected:
  /// The folders of a group that have references: of models/, or of one beside the repository.
  void SetUp() override {
    fs::path group = PHASOR_SOURCE_DIR "/models";
    if (GetParam() != "models") {
      PHASOR_SHARED_OR_SKIP(shared, GetParam());
      group = shared;
    }
    for (const auto& entry : fs::directory_iterator(group))
      if (fs::exists(entry.path() / "golden.safetensors")) folders_.push_back(entry.path());
    ASSERT_FALSE(folders_.empty());
  }

  std::vector<fs::path> folders_;
};
INSTANTIATE_TEST_SUITE_P(, ReferenceTest,
                         testing::Values("models", "golden", "golden2", "golden3", "real"),
                         [](const auto& info) { return info.param; });

/// Each element as close as golden.json says; of a lower precision, the last states' mean cosine.
void expect_reference(const fs::path& folder, const EncoderOptions& options) {
  SCOPED_TRACE(fmt::format("{} {} {}", folder.string(), to_string(options.precision),
                           to_string(options.kernels)));
  const json golden = json::parse(std::ifstream(folder / "golden.json"));
  const auto tensors = SafetensorsFile::open(folder / "golden.safetensors");
  Encoder encoder(Model::load(folder), options);
  const int64_t layers = encoder.model().config().num_layers;
  double distances = 0, tokens = 0;
  ASSERT_GT(golden["items"].size(), 0u);
  for (size_t i = 0; i < golden["items"].size(); ++i) {
    const std::vector<int32_t> ids = golden["items"][i]["ids"];
    const auto state = [&](int64_t l) { return fmt::format("{}.hidden_states.{}", i, l); };
    const auto pattern = [&](int64_t l) { return fmt::format("{}.attentions.{}", i, l); };
    Trace trace = Trace::hidden_states_and_attentions();
    encoder.encode_ids(ids, {.observer = &trace});
    const auto expect = [&](const std::string& name, const Trace::Entry& got) {
      const std::vector<float> want = tensors->tensor(name).to_float();
      ASSERT_EQ(tensors->tensor(name).shape, got.shape) << name;
      if (options.precision != Precision::kFloat32) {
        const int64_t width = got.shape.back();
        distances += mean_cosine_distance(got.values, want, width) * got.shape[0];
        tokens += got.shape[0];
        return;
      }
      SCOPED_TRACE(name);
      expect_golden(got.values, {want.begin(), want.end()}, golden);
    };
    EXPECT_FALSE(tensors->contains(state(layers + 1)));
    expect(fmt::format("{}.last_hidden_state", i), trace.hidden_state(layers));
    for (int64_t l = 0; l <= layers && options.precision == Precision::kFloat32; ++l) {
      expect(state(l), trace.hidden_state(l));
      if (tensors->contains(pattern(l))) expect(pattern(l), trace.at(Hook::kPattern, l));
    }
  }
  EXPECT_EQ(tokens > 0, options.precision != Precision::kFloat32);
  EXPECT_LE(distances, 0.01 * tokens);
}

TEST_P(ReferenceTest, StatesAndPatternsAreThoseOfTheReference) {
  for (const fs::path& folder : folders_) {
    const std::string name = folder.filename();
    if (name == "privacy-filter" || name == "embeddinggemma2-text") continue;  // no family of ours
    if (fs::exists(folder / "expect.json")) {  // a pickle that must not be read
      EXPECT_REFUSED(Model::load(folder), {"pytorch_model.bin: "});
      continue;
    }
    for (const KernelLibrary kernels : {KernelLibrary::kOwn, KernelLibrary::kOneDnn})
      expect_reference(folder, {.threads = 2, .kernels = kernels});
    for (const Precision precision : {Precision::kBfloat16, Precision::kInt8})
      expect_reference(folder, {.threads = 2, .precision = precision});
  }
}

}  // namespace
}  // namespace phasor
