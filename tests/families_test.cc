// Checkpoints of every family: their files say what the family's source says, whatever wraps them.
#include <gtest/gtest.h>

#include <functional>

#include "phasor/encoder.h"
#include "tests/expect_close.h"
#include "tests/family_files.h"
#include "tests/reference_encoder.h"

namespace phasor {
namespace {

using Change = std::function<void(std::vector<TestTensor>&)>;

/// A model of the case's meaning, and the same loaded from the case's files after `change`.
struct Loaded {
  explicit Loaded(const FamilyCase& family, const Change& change = {})
      : meant(random_model(family.meaning, 5, family.extras)) {
    const TempFolder folder;
    std::vector<TestTensor> tensors = tensors_of(family, *meant);
    if (change) change(tensors);
    folder.write("config.json", family.config.dump());
    folder.write("model.safetensors", safetensors_bytes(tensors));
    model = Model::load(folder.path());
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
  expect_close<float, double>(encoding.hidden(0), expected.hidden, 1e-4, "hidden");
  const bool has_head = loaded.meant->weights().mlm_head.has_value();
  ASSERT_EQ(loaded.model->weights().mlm_head.has_value(), has_head);
  if (!has_head) return;
  expect_close<float, double>(encoder.mlm_logits(encoding.hidden(0)),
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

TEST(FamiliesTest, BertWithItsHead) { expect_computes_what_is_meant(Loaded(bert_case())); }

TEST(FamiliesTest, RobertaAndItsKinWithTheirHeads) {
  for (const char* const model_type : {"roberta", "xlm-roberta", "camembert"}) {
    SCOPED_TRACE(model_type);
    expect_computes_what_is_meant(Loaded(roberta_case(model_type)));
  }
}

TEST(FamiliesTest, RobertasHeadHasGeluWhateverTheEncoderHas) {
  FamilyCase family = roberta_case("roberta");
  family.config["hidden_act"] = "relu";
  const auto model = Loaded(family).model;
  EXPECT_EQ(model->config().activation, Activation::kRelu);
  EXPECT_EQ(model->weights().mlm_head.value().activation, Activation::kGeluErf);
}

TEST(FamiliesTest, DistilBertWithLearnedAndStoredSinusoidalPositionsAndItsHead) {
  for (const bool sinusoidal : {false, true}) {
    FamilyCase family = distilbert_case(sinusoidal);
    family.extras.store_position_table = true;
    expect_computes_what_is_meant(Loaded(family));
  }
}

TEST(FamiliesTest, DistilBertComputesASinusoidThatIsNotStored) {
  expect_computes_what_is_meant(Loaded(distilbert_case(true)));
}

TEST(FamiliesTest, AlbertMapsItsEmbeddingAndSharesItsLayers) {
  expect_computes_what_is_meant(Loaded(albert_case()));
  expect_computes_what_is_meant(Loaded(headless(albert_case()), without("albert.")));
}

TEST(FamiliesTest, T5HasRelativePositionsAndMaybeAGatedMlp) {
  for (const bool gated : {false, true}) expect_computes_what_is_meant(Loaded(t5_case(gated)));
}

TEST(FamiliesTest, EncodersOfTranslatorsAndSummarizers) {
  for (const char* const model_type : {"marian", "bart", "mbart", "pegasus", "m2m_100"}) {
    SCOPED_TRACE(model_type);
    expect_computes_what_is_meant(Loaded(fairseq_case(model_type)));
  }
}

TEST(FamiliesTest, WithoutAHeadTheNamesHaveNoPrefix) {
  expect_computes_what_is_meant(Loaded(headless(bert_case()), without("bert.")));
  expect_computes_what_is_meant(Loaded(headless(roberta_case("roberta")), without("roberta.")));
  expect_computes_what_is_meant(Loaded(headless(distilbert_case(false)), without("distilbert.")));
  expect_computes_what_is_meant(Loaded(fairseq_case("bart"), without("model.")));
}

}  // namespace
}  // namespace phasor
