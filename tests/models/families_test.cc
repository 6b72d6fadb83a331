// Checkpoints of every family: their files say what the family's source says, whatever wraps them.
#include "tests/support/family_files.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

using Change = std::function<void(std::vector<TestTensor>&)>;

/// A model of the case's meaning, and the same loaded from the case's files after `change`.
struct Loaded {
  explicit Loaded(const FamilyCase& family, const Change& change = {})
      : meant(random_model(family.meaning, 5, family.extras)) {
    std::vector<TestTensor> tensors = tensors_of(family, *meant);
    if (change) change(tensors);
    model = load_checkpoint(family.config, tensors);
  }

  std::shared_ptr<const Model> meant;
  std::shared_ptr<const Model> model;
};

/// The engine on the loaded model against the oracle on the meant one.
void expect_computes_what_is_meant(const Loaded& loaded) {
  EXPECT_EQ(loaded.model->config(), loaded.meant->config());
  const std::vector<int32_t> ids = {4, 9, 1, 0, 17, 4, 22, 11};  // 0 and 1 are pads somewhere
  Encoder encoder(loaded.model, {.threads = 1});
  const Encoding encoding = encoder.encode_ids(ids);
  const reference::Result expected = reference::encode(*loaded.meant, ids);
  expect_close<float, double>(encoding[0].hidden, expected.hidden, 1e-4, "hidden");
  const auto& classifier = loaded.meant->weights().classifier;
  ASSERT_EQ(loaded.model->weights().classifier.has_value(), classifier.has_value());
  if (classifier) {
    const std::vector<float> pooled =
        pool(encoding[0].hidden, loaded.model->config().d_model, {.modes = {classifier->pooling}});
    expect_close<float, double>(encoder.classifier_logits(pooled),
                                reference::classifier_logits(*loaded.meant, expected.hidden), 1e-4,
                                "logits of labels");
    EXPECT_EQ(loaded.model->weights().classifier->labels, classifier->labels);
  }
  const bool has_head = loaded.meant->weights().mlm_head.has_value();
  ASSERT_EQ(loaded.model->weights().mlm_head.has_value(), has_head);
  if (!has_head) return;
  expect_close<float, double>(encoder.mlm_logits(encoding[0].hidden),
                              reference::mlm_logits(*loaded.meant, expected.hidden), 1e-4,
                              "logits");
}

/// Takes `prefix` away from every name, as a model saved without its head has them.
Change without(const std::string& prefix) {
  return [prefix](std::vector<TestTensor>& tensors) {
    std::erase_if(tensors, [&](const auto& tensor) { return !tensor.name.starts_with(prefix); });
    for (TestTensor& tensor : tensors) tensor.name.erase(0, prefix.size());
  };
}

FamilyCase headless(FamilyCase family) {
  family.extras.mlm_head = false;
  return family;
}

TEST(FamiliesTest, ClassificationHeadsOfEveryFamily) {
  for (const FamilyCase& family : all_classifiers()) {
    SCOPED_TRACE(family.config.dump());
    const Loaded loaded(family);
    expect_computes_what_is_meant(loaded);
    EXPECT_TRUE(loaded.model->unused_tensors().empty());
    EXPECT_EQ(loaded.model->parameters().size(), loaded.meant->parameters().size());
    EXPECT_EQ(loaded.model->weights().classifier->output, ClassifierHead::Output::kSoftmax);
  }
}

TEST(FamiliesTest, CheckpointsComputeWhatIsMeant) {
  for (const FamilyCase& family : all_families()) {
    SCOPED_TRACE(family.config.dump());
    expect_computes_what_is_meant(Loaded(family));
    if (family.prefix.empty()) continue;
    expect_computes_what_is_meant(Loaded(headless(family), without(family.prefix)));
  }
}

TEST(FamiliesTest, TheDocumentationHasARowOfEach) {
  const std::string page = read_text_file(PHASOR_SOURCE_DIR "/docs/models.md");
  for (const FamilyCase& family : all_families()) {
    const std::string name = fmt::format("`{}`", family.meaning.family);
    EXPECT_TRUE(contains(page, "\n| " + name) || contains(page, ", " + name)) << name;
  }
}

/// A family's checkpoint with some keys replaced, and what that changes of its meaning.
void expect_means(FamilyCase family, const nlohmann::json& keys,
                  const std::function<void(ModelConfig&)>& change) {
  SCOPED_TRACE(keys.dump());
  family.config.update(keys);
  change(family.meaning);
  expect_computes_what_is_meant(Loaded(family));
}

TEST(FamiliesTest, KeysOfDisentangledAttention) {
  const FamilyCase deberta = headless(deberta_case());
  const auto terms = [](bool content_to_position, bool position_to_content) {
    return [=](ModelConfig& config) {
      config.position.disentangled->content_to_position = content_to_position;
      config.position.disentangled->position_to_content = position_to_content;
    };
  };
  expect_means(deberta, {{"pos_att_type", "c2p|p2c"}}, terms(true, true));
  expect_means(deberta, {{"pos_att_type", {"c2p"}}}, terms(true, false));
  expect_means(deberta, {{"pos_att_type", "p2c"}}, terms(false, true));
  // Without buckets the table has a row for each offset; the text is longer than 6.
  expect_means(deberta,
               {{"position_buckets", -1}, {"max_relative_positions", 6}, {"norm_rel_ebd", "none"}},
               [](ModelConfig& config) {
                 config.position.disentangled =
                     DisentangledConfig{.num_buckets = 6, .max_distance = 0, .norm = false};
               });
  expect_means(deberta, {{"position_biased_input", true}},
               [](ModelConfig& config) { config.position.kind = PositionKind::kLearned; });
}

TEST(FamiliesTest, KeysOfRotationsCountAndRoformersStoredAnglesAreOfNoUse) {
  const auto rotation = [](const RotaryConfig& rotary) {
    return [=](ModelConfig& config) { config.position.rotary = rotary; };
  };
  expect_means(nomic_case(false),
               {{"rotary_emb_fraction", 0.5}, {"rotary_emb_interleaved", true}},  // of 4 columns
               rotation({.base = 700.0, .dims = 2, .interleaved = true}));
  expect_means(nomic_case(false), {{"rotary_scaling_factor", 2.0}},  // for more than 6 tokens
               rotation({.base = 700.0, .ntk_factor = 2.0, .ntk_length = 6}));
  expect_means(headless(gte_case(0)), {{"rope_scaling", nullptr}}, rotation({.base = 500.0}));
  const Loaded loaded(roformer_case(7), [](std::vector<TestTensor>& tensors) {
    tensors.push_back({"roformer.encoder.embed_positions.weight", {16, 4}});
  });
  expect_computes_what_is_meant(loaded);
  EXPECT_EQ(loaded.model->unused_tensors().size(), 1u);
}

TEST(FamiliesTest, SomeHeadsHaveGeluWhateverTheEncoderHas) {
  for (FamilyCase family : {electra_case(7), roberta_case("roberta")}) {
    family.config["hidden_act"] = "relu";
    const auto model = Loaded(family).model;
    EXPECT_EQ(model->config().activation, Activation::kRelu);
    EXPECT_EQ(model->weights().mlm_head.value().activation, Activation::kGeluErf);
  }
}

TEST(FamiliesTest, AGateThatTheFamilyDoesNotHaveOrCannotLackIsRefused) {
  FamilyCase bert = bert_case();
  bert.config.erase("hidden_act");
  bert.config["is_gated_act"] = true;
  EXPECT_REFUSED(Loaded{bert}, {"is_gated_act is true", "not gated"});
  FamilyCase modern = modernbert_case(true);
  modern.config.erase("hidden_activation");
  modern.config["is_gated_act"] = false;
  EXPECT_REFUSED(Loaded{modern}, {"is_gated_act is false", "is gated"});
}

TEST(FamiliesTest, ATensorThatALayerDoesNotHaveIsRefusedInTheLayersThatAreRun) {
  const auto extra = [](const char* layer) {
    return [=](std::vector<TestTensor>& tensors) {
      tensors.push_back(
          {std::string("bert.encoder.layer.") + layer + ".attention.self.distance_embedding.weight",
           {4, 4}});
    };
  };
  EXPECT_REFUSED(Loaded(bert_case(), extra("1")), {"1.attention.self.distance_embedding", "bert"});
  expect_computes_what_is_meant(Loaded(bert_case(), extra("2")));  // of 2 layers: 0 and 1
}

TEST(FamiliesTest, GteMayHaveItsQueriesKeysAndValuesApart) {
  FamilyCase family = headless(gte_case(2));
  family.config["pack_qkv"] = false;
  for (const std::string part : {"q", "k", "v"})
    family.names["blocks.{l}.attn." + part] = "new.encoder.layer.{l}.attention." + part + "_proj";
  expect_computes_what_is_meant(Loaded(family));
  const auto add_stacked = [](std::vector<TestTensor>& tensors) {
    tensors.push_back({"new.encoder.layer.0.attention.qkv_proj.weight", {36, 12}});
  };
  EXPECT_REFUSED(Loaded(family, add_stacked), {"k_proj.weight", "no new model"});
}

TEST(FamiliesTest, BiasesThatMayBeAbsentAreReadWhereTheyAreThere) {
  FamilyCase modernbert = modernbert_case(true);
  for (const char* const key : {"norm_bias", "attention_bias", "mlp_bias", "classifier_bias"})
    modernbert.config[key] = true;
  FamilyCase nomic = nomic_case(false);
  for (const char* const key : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"})
    nomic.config[key] = true;
  for (FamilyCase* const family : {&modernbert, &nomic}) {
    family->extras.change = {};
    expect_computes_what_is_meant(Loaded(*family));
  }
}

TEST(FamiliesTest, T5sEncoderIsFoundBesideItsDecoderUnderAClassifierAndByItself) {
  const auto beside_decoder = [](std::vector<TestTensor>& tensors) {
    const std::vector<TestTensor> encoder = tensors;
    for (TestTensor tensor : encoder) {
      if (!tensor.name.starts_with("encoder.")) continue;
      tensor.name.replace(0, 2, "de");
      tensor.bytes.assign(tensor.bytes.size(), '\0');
      tensors.push_back(tensor);
    }
    tensors.push_back({"lm_head.weight", {23, 12}});
  };
  expect_computes_what_is_meant(Loaded(t5_case(true), beside_decoder));
  const auto in_classifier = [](std::vector<TestTensor>& tensors) {
    for (TestTensor& tensor : tensors) tensor.name.insert(0, "transformer.");
    tensors.push_back({"classification_head.dense.weight", {12, 12}});
  };
  expect_computes_what_is_meant(Loaded(t5_case(false), in_classifier));
  FamilyCase family = fairseq_case("m2m_100");
  family.names["token_embedding"] = "model.encoder.embed_tokens";
  expect_computes_what_is_meant(Loaded(family, without("model.encoder.")));
}

TEST(FamiliesTest, OldNamesOfNormsAndBuffersAreKnown) {
  const Loaded loaded(bert_case(), [](std::vector<TestTensor>& tensors) {
    for (TestTensor& tensor : tensors) {
      const size_t norm = tensor.name.find("LayerNorm.");
      if (norm == std::string::npos) continue;
      const bool weight = tensor.name.ends_with("weight");
      tensor.name = tensor.name.substr(0, norm) + "LayerNorm." + (weight ? "gamma" : "beta");
    }
    tensors.push_back({"bert.embeddings.position_ids", {1, 16}, "I64"});
    tensors.push_back({"bert.pooler.dense.weight", {12, 12}});
    tensors.push_back({"cls.seq_relationship.bias", {2}});
  });
  expect_computes_what_is_meant(loaded);
  EXPECT_EQ(loaded.model->unused_tensors().size(), 3u);
}

}  // namespace
}  // namespace phasor
