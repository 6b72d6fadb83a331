// Classification heads in checkpoints: what config.json says of them, and unusable ones.
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

using Output = ClassifierHead::Output;

/// A BERT with a head for "no", "yes" and "maybe", after changes to its files.
struct Files {
  json config;
  std::vector<TestTensor> tensors;

  explicit Files(int64_t labels = 3, FamilyCase family = all_classifiers().front()) {
    family.extras.classifier->labels.resize(labels);
    tensors = tensors_of(family);
    config = family.config;
    if (labels != 3) config.erase("id2label");
  }

  int64_t vocab_size() const { return config["vocab_size"]; }
  std::shared_ptr<const Model> load() const { return load_checkpoint(config, tensors); }
  /// The encoder is there, and one note with `words` says why the head is not.
  void expect_headless(const std::vector<std::string>& words) const {
    const auto model = load();
    EXPECT_FALSE(model->weights().classifier.has_value());
    EXPECT_EQ(model->unused_tensors().empty(), false);
    expect_one_note(model->notes(), words);
    expect_one_note(model->notes(), {"the classification head is not used: "});
    EXPECT_NO_THROW(Encoder(model, {.threads = 1}).encode_ids(std::vector<int32_t>{1, 2}));
  }
};

TEST(ClassifierTest, LabelsWithoutNamesAreNumberedAndThoseThatDoNotFitCostTheHead) {
  Files files;
  files.config["id2label"] = {{"0", "a"}, {"1", "b"}};
  files.expect_headless({"2 labels", "3 rows"});
  Files(65'537).expect_headless({"65537 labels"});
  for (const json& labels :
       {json(3), json("a"), json::array({"a", "b", "c"}), json{{"0", 1}, {"1", 2}, {"2", 3}},
        json{{"0", "a"}, {"1", "b"}, {"3", "c"}}, json{{"a", "0"}}, json::object(),
        json{{"0", "a"}, {"1", "b"}, {"2", std::string(1025, 'c')}}}) {
    SCOPED_TRACE(labels.dump());
    files.config["id2label"] = labels;
    files.expect_headless({"id2label"});
  }
  // Those of the configuration are compared in families_test.cc.
  Files without_names;
  without_names.config.erase("id2label");
  EXPECT_EQ(without_names.load()->weights().classifier.value().labels,
            (std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
}

TEST(ClassifierTest, OnlySequenceClassifiersHaveOne) {
  Files files;
  files.config["architectures"] = {"BertForMultipleChoice"};
  files.expect_headless({"architectures", "BertForMultipleChoice"});
  files.config["architectures"] = 7;
  files.expect_headless({"architectures", "7"});
  files.config.erase("architectures");
  EXPECT_TRUE(files.load()->weights().classifier.has_value());
}

TEST(ClassifierTest, AHeadThatLabelsTokensDoesSoInEveryFamily) {
  for (const FamilyCase& family : all_classifiers()) {
    SCOPED_TRACE(family.config.dump());
    Files files(3, family);
    files.config["architectures"] = {"SomeForTokenClassification"};
    // All of them have one map, of this name.
    std::erase_if(files.tensors, [](auto& it) { return it.name.starts_with("classifier"); });
    files.tensors.push_back({.name = "classifier.weight", .shape = {3, 12}});
    files.tensors.push_back({.name = "classifier.bias", .shape = {3}});
    const auto model = files.load();
    EXPECT_TRUE(model->weights().token_classifier.has_value());
    Encoder encoder(model, {.threads = 1});
    const Encoding states = encoder.encode_ids(std::vector<int32_t>{1, 2});
    EXPECT_EQ(encoder.classifier_logits(states.hidden).size(), 6u);
    EXPECT_REFUSED(encoder.classify("a"), {"labels tokens"});
    files.tensors.pop_back();
    files.tensors.back().shape = {4, 12};
    files.tensors.push_back({.name = "classifier.bias", .shape = {4}});
    files.expect_headless({"id2label names 3 labels"});
  }
}

TEST(ClassifierTest, OtherHeadsThatAreNotUsedAreNamed) {
  Files files;
  remove_tensor(files.tensors, "classifier.weight");
  remove_tensor(files.tensors, "classifier.bias");
  EXPECT_TRUE(files.load()->notes().empty());  // the pooler is the encoder's own
  files.tensors.push_back({.name = "score.weight", .shape = {2, 12}});
  files.tensors.push_back({.name = "score.bias", .shape = {2}});
  files.tensors.push_back({.name = "lm_head.weight", .shape = {files.vocab_size(), 12}});
  files.tensors.push_back({.name = "colbert_linear.weight", .shape = {12, 12}});
  expect_one_note(
      files.load()->notes(),
      {"the file has colbert_linear.weight [12, 12], score.weight [2, 12], which phasor "
       "does not use"});
}

TEST(ClassifierTest, AHeadWithAMissingOrOtherTensorIsNoted) {
  for (const auto& [name, ours] : {std::pair("bert.pooler.dense.weight", "classifier.dense.weight"),
                                   std::pair("bert.pooler.dense.bias", "classifier.dense.bias"),
                                   std::pair("classifier.bias", "classifier.out.bias")}) {
    Files files;
    remove_tensor(files.tensors, name);
    files.expect_headless({"is missing", ours});
  }
  for (const char* const name : {"bert.pooler.dense.weight", "bert.pooler.dense.bias",
                                 "classifier.weight", "classifier.bias"}) {
    Files files;
    tensor_of(files.tensors, name) = {.name = name, .shape = {2, 7}};
    files.expect_headless({"shape"});
    tensor_of(files.tensors, name).shape = {};
    files.expect_headless({"shape"});
    tensor_of(files.tensors, name).shape = {int64_t{1} << 40, 0};
    files.expect_headless({"shape"});
  }
  Files empty;
  empty.config.erase("id2label");
  tensor_of(empty.tensors, "classifier.weight") = {.name = "classifier.weight", .shape = {0, 12}};
  tensor_of(empty.tensors, "classifier.bias") = {.name = "classifier.bias", .shape = {0}};
  empty.expect_headless({"classifier.out.weight", "[0, 12]", "[any, 12]"});
  Files without;
  remove_tensor(without.tensors, "classifier.weight");
  EXPECT_TRUE(without.load()->notes().empty());
  EXPECT_EQ(without.load()->unused_tensors().size(), 3u);
  Files of_tokens;
  of_tokens.config["architectures"] = {"BertForTokenClassification"};
  remove_tensor(of_tokens.tensors, "classifier.bias");
  of_tokens.expect_headless({"is missing", "classifier.out.bias"});
  remove_tensor(of_tokens.tensors, "classifier.weight");
  of_tokens.expect_headless({"is missing", "classifier.out.weight"});
}

TEST(ClassifierTest, ProbabilitiesFollowFromTheLabelsOrTheConfiguration) {
  const auto output = [](const Files& files) {
    return files.load()->weights().classifier.value().output;
  };
  EXPECT_EQ(output(Files(3)), Output::kSoftmax);
  EXPECT_EQ(output(Files(1)), Output::kSigmoid);
  for (const int64_t labels : {1, 3}) {
    Files files(labels);
    files.config["problem_type"] = "regression";
    EXPECT_EQ(output(files), Output::kIdentity);
    files.config["problem_type"] = "multi_label_classification";
    EXPECT_EQ(output(files), Output::kSigmoid);
    files.config["sbert_ce_default_activation_function"] = "torch.nn.modules.linear.Identity";
    EXPECT_EQ(output(files), Output::kIdentity);
    files.config["sentence_transformers"] = {
        {"activation_fn", "torch.nn.modules.activation.Sigmoid"}, {"version", "4.0.1"}};
    EXPECT_EQ(output(files), Output::kSigmoid);
    files.config["sentence_transformers"]["activation_fn"] = "torch.nn.modules.linear.Identity";
    EXPECT_EQ(output(files), Output::kIdentity);
  }
  Files files(1);
  files.config["sentence_transformers"] = {{"activation_fn", "someones.code.Scale"}};
  EXPECT_EQ(output(files), Output::kSigmoid);
  expect_one_note(files.load()->notes(), {"someones.code.Scale"});
  files.config["sentence_transformers"] = {{"activation_fn", "torch.nn.modules.activation.Tanh"}};
  EXPECT_EQ(output(files), Output::kTanh);
  files.config["sentence_transformers"] = {{"activation_fn", "torch.nn.GLU"}};
  files.expect_headless({"torch.nn.GLU", "Tanh"});
  files.config["sentence_transformers"] = 3;
  files.expect_headless({"sentence_transformers", "3"});
}

TEST(ClassifierTest, TheConfigurationMayNameActivationAndPooling) {
  const std::vector<FamilyCase> all = all_classifiers();
  Files files(3, *std::ranges::find(all, "modernbert", [](auto& it) { return it.meaning.family; }));
  files.config["classifier_pooling"] = "mean";
  files.config["classifier_activation"] = "silu";
  const ClassifierHead head = files.load()->weights().classifier.value();
  EXPECT_EQ(head.pooling, PoolingMode::kMean);
  EXPECT_EQ(head.activation, Activation::kSilu);
  EXPECT_FALSE(head.mean_of_logits);
  files.config["classifier_pooling"] = "late";
  EXPECT_TRUE(files.load()->weights().classifier.value().mean_of_logits);
  files.config["classifier_pooling"] = "max";
  files.expect_headless({"classifier_pooling", "\"max\"", "cls", "mean"});
  files.config.erase("classifier_pooling");
  files.config["classifier_activation"] = "xielu";
  files.expect_headless({"classifier_activation", "\"xielu\""});
  // BERT's code reads neither.
  Files bert;
  bert.config["classifier_pooling"] = "mean";
  bert.config["classifier_activation"] = "silu";
  EXPECT_EQ(bert.load()->weights().classifier.value().pooling, PoolingMode::kCls);
  EXPECT_EQ(bert.load()->weights().classifier.value().activation, Activation::kTanh);
}

/// A reranker with a tokenizer, whose files say how texts are prepared.
class PreparedTextsTest : public testing::Test {
 protected:
  Encoder load() const { return Encoder(Model::load(bert_.path()), {.threads = 1}); }
  /// What the files make of the pair is what plain files make of it with `options`.
  void expect_as(const json& files, const std::string& query, const TextOptions& options) {
    const std::vector<float> expected = load().classify(query, kDocument, options).logits;
    const std::vector<float> plain = load().classify(kQuery, kDocument).logits;
    for (const auto& [name, content] : files.items()) bert_.write_json(name, content);
    EXPECT_EQ(load().classify(kQuery, kDocument).logits, expected) << files;
    EXPECT_NE(expected, plain) << files;
    for (const auto& [name, content] : files.items()) bert_.write(name, "{}");
  }

  static constexpr const char *kQuery = "a b c", *kDocument = "d e f g";
  const BertFolder bert_{{"relevant"}};
};

TEST_F(PreparedTextsTest, LengthSideAndPromptAreThoseOfTheFiles) {
  const TextOptions cut = {.max_tokens = 7};
  TextOptions left = cut;
  left.truncation_side = TruncationSide::kLeft;
  expect_as({{"tokenizer_config.json", {{"model_max_length", 7}}}}, kQuery, cut);
  expect_as({{"sentence_bert_config.json", {{"max_seq_length", 7}}}}, kQuery, cut);
  expect_as(
      {{"sentence_bert_config.json", {{"processing_kwargs", {{"text", {{"max_length", 7}}}}}}}},
      kQuery, cut);
  expect_as({{"tokenizer_config.json", {{"model_max_length", 7}, {"truncation_side", "left"}}}},
            kQuery, left);
  expect_as({{"config_sentence_transformers.json",
              {{"prompts", {{"q", "c [SEP] "}}}, {"default_prompt_name", "q"}}}},
            "c [SEP] a b c", {.parse_special = true});
}

}  // namespace
}  // namespace phasor
