// Token types of a run, and classification heads over texts and pairs.
#include <stop_token>

#include "tests/support/bert_folder.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/reference_encoder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

using Output = ClassifierHead::Output;

using Change = std::function<void(Weights&)>;

/// 12 positions, two token types.
std::shared_ptr<const Model> classifier(const ClassifierHead& head, bool norm = false,
                                        const Change& change = {}) {
  static const std::shared_ptr<const Tokenizer> letters = Tokenizer::load(BertFolder({}).path());
  ModelConfig config = small_config();
  config.vocab_size = letters->vocab_size();
  config.position.kind = PositionKind::kLearned;
  return random_model(config, 71,
                      {.token_types = 2,
                       .classifier = head,
                       .classifier_norm = norm,
                       .tokenizer = letters,
                       .change = change});
}

std::shared_ptr<const Model> reranker(const Change& change = {}) {
  return classifier({.labels = {"relevant"}, .output = Output::kSigmoid}, false, change);
}

/// What the oracle makes of a text, or a pair, as the model's tokenizer encodes it.
std::vector<double> expected_logits(const Model& model, const Tokens& tokens) {
  const reference::Result run =
      reference::encode(model, tokens.ids, {.token_types = tokens.token_types});
  return reference::classifier_logits(model, run.hidden);
}

std::vector<int32_t> alternating(size_t count) {
  std::vector<int32_t> types(count);
  for (size_t i = 0; i < count; ++i) types[i] = static_cast<int32_t>(i * i / 3 % 2);
  return types;
}

TEST(TokenTypesTest, EveryOverflowPolicyKeepsThemWithTheirTokens) {
  const auto model = reranker();
  const std::vector<TokenIds> sequences = {random_ids(*model, 7, 1), random_ids(*model, 29, 2),
                                           random_ids(*model, 1, 3)};
  const std::vector<int32_t> types = alternating(37);
  for (const auto overflow :
       {Overflow::kTruncate, Overflow::kClamp, Overflow::kInterpolate, Overflow::kWindow}) {
    SCOPED_TRACE(to_string(overflow));
    expect_matches_reference(model, sequences, {.overflow = overflow, .token_types = types});
  }
  expect_matches_reference(model, {sequences[0]}, {});
}

TEST(TokenTypesTest, EmbeddingsOfAnotherWidthHaveThemToo) {
  ModelConfig config = small_config();
  config.d_embedding = 7;
  const auto model = random_model(config, 5, {.token_types = 3});
  const std::vector<int32_t> types = {2, 0, 1, 1, 2, 0};
  expect_matches_reference(model, {random_ids(*model, 4, 1), random_ids(*model, 2, 2)},
                           {.token_types = types});
}

TEST(TokenTypesTest, WhatIsNoRowOfTheTableIsRefused) {
  Encoder encoder(reranker(), {.threads = 1});
  const TokenIds ids = {0, 2, 1};
  const auto run = [&](std::vector<int32_t> types) {
    return [&, types] { encoder.encode_ids(ids, {.token_types = types}); };
  };
  expect_error<InvalidArgument>(run({0, 2, 0}), {"token type 2", "0 to 1"});
  expect_error<InvalidArgument>(run({0, -1, 0}), {"token type -1", "0 to 1"});
  expect_error<InvalidArgument>(run({std::numeric_limits<int32_t>::max(), 0, 0}), {"0 to 1"});
  expect_error<InvalidArgument>(run({0, 1}), {"2 token types", "3 token ids"});
  Encoder without(random_model(small_config(), 1), {.threads = 1});
  std::vector<int32_t> types = {0, 0, 0};
  EXPECT_NO_THROW(without.encode_ids(ids, {.token_types = types}));
  types[1] = 1;
  const RunOptions one = {.token_types = types};
  expect_error<InvalidArgument>([&] { without.encode_ids(ids, one); }, {"token type 1", "only 0"});
}

TEST(ClassifyTest, EveryKindOfHeadMatchesTheReference) {
  for (size_t a = 0; a < names<Activation>().all.size(); ++a) {
    for (const auto& [pooling, late] :
         {std::pair(PoolingMode::kCls, false), std::pair(PoolingMode::kMean, false),
          std::pair(PoolingMode::kCls, true)}) {
      for (const bool norm : {false, true}) {
        const auto model = classifier({.pooling = pooling,
                                       .mean_of_logits = late,
                                       .activation = static_cast<Activation>(a),
                                       .labels = {"a", "b", "c"}},
                                      norm);
        Encoder encoder(model, {.threads = 1});
        const Classification one = encoder.classify("abcde");
        expect_close<float, double>(one.logits,
                                    expected_logits(*model, model->tokenizer().encode("abcde")),
                                    1e-4, std::string(names<Activation>().all[a]));
        const Classification two = encoder.classify({"ca", "abcde"});
        EXPECT_TRUE(std::ranges::equal(two[1].logits, one.logits));
      }
    }
  }
}

TEST(ClassifyTest, AHeadMayBeASingleMatrix) {
  const auto model = classifier({.labels = {"a", "b"}}, false,
                                [](Weights& weights) { weights.classifier->dense = {}; });
  Encoder encoder(model, {.threads = 1});
  const Classification result = encoder.classify("abc");
  expect_close<float, double>(
      result.logits, expected_logits(*model, model->tokenizer().encode("abc")), 1e-4, "logits");
  const auto label_without_row = [](Weights& w) { w.classifier->labels.push_back("c"); };
  expect_error<ModelError>(
      [&] {
        classifier({.labels = {"a", "b"}}, false, label_without_row);
      },
      {"'classifier.out.weight'", "[2, 15]", "[3, 15]"});
}

TEST(ClassifyTest, ManyPairsComeInTheirOrderAsEachByItself) {
  const auto model = classifier({.labels = {"a", "b", "c"}});
  Encoder encoder(model, {.threads = 2});
  std::vector<std::string> first, second;
  for (int i = 0; i < 5000; ++i) {  // more than are tokenized at once
    first.push_back(std::string(1 + i % 4, static_cast<char>('a' + i % 26)));
    second.push_back(std::string(i % 6, static_cast<char>('a' + i % 11)));
  }
  int64_t done = 0;
  const Classification all =
      encoder.classify(first, second, {.progress = [&](int64_t n, int64_t total) {
                         EXPECT_EQ(total, 5000);
                         done = n;
                       }});
  EXPECT_EQ(done, 5000);
  ASSERT_EQ(all.size(), 5000);
  EXPECT_EQ(all.labels.size(), 3u);
  EXPECT_EQ(all.logits.size(), 15000u);
  for (int64_t i = 0; i < all.size(); i += 331) {
    const Tokens tokens = model->tokenizer().encode_pair(first[i], second[i]);
    EXPECT_EQ(all.reports[i].num_tokens, std::ssize(tokens.ids));
    expect_close<float, double>(all[i].logits, expected_logits(*model, tokens), 1e-4,
                                "pair " + std::to_string(i));
    const Classification alone = encoder.classify(first[i], second[i]);
    expect_same_bits(all[i].logits, alone.logits, "pair " + std::to_string(i));
  }
}

TEST(ClassifyTest, ProbabilitiesAreWhatTheHeadSays) {
  for (const auto output : {Output::kSoftmax, Output::kSigmoid, Output::kIdentity}) {
    Encoder encoder(classifier({.labels = {"a", "b", "c"}, .output = output}), {.threads = 1});
    const Classification result = encoder.classify({"abc", "zz"});
    for (int64_t i = 0; i < 2; ++i) {
      const auto logits = result[i].logits;
      double sum = 0;
      for (const float x : logits) sum += std::exp(double{x});
      for (size_t l = 0; l < 3; ++l) {
        const double expected = output == Output::kSoftmax   ? std::exp(logits[l]) / sum
                                : output == Output::kSigmoid ? 1 / (1 + std::exp(-logits[l]))
                                                             : logits[l];
        EXPECT_NEAR(result[i].probabilities[l], expected, 1e-6) << to_string(output);
      }
    }
  }
}

TEST(ClassifyTest, LargeLogitsSaturateProbabilitiesButNotScores) {
  const auto enlarge = [](Weights& weights) {
    for (float& w : drawn_values(weights.classifier->out.weight)) w *= 1e4f;
  };
  Encoder encoder(reranker(enlarge), {.threads = 1});
  const std::vector<std::string> texts = {"a", "b", "c", "d", "e", "f", "g", "h"};
  const Classification result = encoder.classify("query", texts);
  const std::vector<float>& scores = result.logits;
  EXPECT_GT(std::ranges::count_if(result.probabilities, [](float p) { return p == 0 || p == 1; }),
            1);
  std::vector<float> sorted = scores;
  std::ranges::sort(sorted, std::greater());
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
  const Ranking ranking = encoder.rank("query", texts);
  EXPECT_EQ(ranking.logits, result.logits);
  EXPECT_EQ(ranking.scores, result.probabilities);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(scores[ranking.order[i]], sorted[i]);
}

TEST(ClassifyTest, APairThatIsTooLongIsCutAtItsLongerText) {
  const auto model = reranker();
  Encoder encoder(model, {.threads = 1});
  const Classification cut = encoder.classify("abc", std::string(30, 'z'));  // 12 positions
  EXPECT_EQ(cut.reports[0].num_tokens, 12);
  EXPECT_EQ(cut.reports[0].dropped_tokens, 24);
  const Classification short_one = encoder.classify("abc", std::string(6, 'z'));
  expect_same_bits(cut.logits, short_one.logits, "cut");
  const Classification shorter = encoder.classify("abc", "zzz", {.max_tokens = 7});
  EXPECT_EQ(shorter.reports[0].dropped_tokens, 2);
  expect_error<InvalidArgument>(
      [&] { encoder.classify("abc", std::string(30, 'z'), {.overflow = Overflow::kError}); },
      {"text 0", "36 tokens", "at most 12"});
}

TEST(ClassifyTest, APromptIsPutBeforeTheFirstTextAndMayBeNamed) {
  const BertFolder folder({"no", "yes"});
  folder.folder().write("config_sentence_transformers.json", R"({"prompts": {"q": "c d "}})");
  Encoder encoder(Model::load(folder.path()), {.threads = 1});
  const std::vector<float> want = encoder.classify("c d a", "b").logits;
  EXPECT_EQ(encoder.classify("a", "b", {.prompt = "c d "}).logits, want);
  EXPECT_EQ(encoder.classify("a", "b", {.prompt_name = "q"}).logits, want);
  expect_error<InvalidArgument>([&] { encoder.classify("a", "b", {.prompt_name = "p"}); },
                                {"\"p\"", "there are: q"});
}

TEST(ClassifyTest, WrongCallsAreRefused) {
  Encoder encoder(classifier({.labels = {"a", "b"}}), {.threads = 1});
  const Texts two = {"a", "b"}, three = {"a", "b", "c"};
  expect_error<InvalidArgument>([&] { encoder.classify(two, three); },
                                {"2 first texts", "3 second"});
  const auto several = {std::string("one label"), std::string("2 labels"),
                        std::string("classify()")};
  expect_error<ModelError>([&] { encoder.rank("a", "b"); }, several);
  EXPECT_EQ(encoder.classify(std::vector<std::string>()).size(), 0);
  EXPECT_EQ(encoder.classify("a", std::vector<std::string>()).size(), 0);
  std::stop_source stop;
  stop.request_stop();
  expect_code(ErrorCode::kCancelled, "",
              [&] { encoder.classify("a", "b", {.stop = stop.get_token()}); });
  Encoder headless(random_model(small_config(), 1), {.threads = 1});
  const auto words = {std::string("no classification head"), std::string("random")};
  expect_error<ModelError>([&] { headless.classify("a"); }, words);
  expect_error<ModelError>([&] { headless.classifier_logits({}); }, words);
}

TEST(ClassifyTest, AWeightThatIsNoNumberIsNamed) {
  const auto spoil = [](Weights& w) { drawn_values(w.classifier->out.bias)[0] = std::nanf(""); };
  Encoder encoder(reranker(spoil), {.threads = 1});
  for (int i = 0; i < 2; ++i) {
    expect_error<ModelError>([&] { encoder.rank("a", "b"); }, {"classifier out bias", "nan"});
  }
}

TEST(ClassifyTest, LogitsThatAreNotFiniteAreRefused) {
  const auto overflow = [](Weights& weights) {
    const auto& [out, bias] = weights.classifier->out;
    std::ranges::fill(drawn_values(out), 3e38f);
    std::ranges::fill(drawn_values(bias), 3e38f);
    std::ranges::fill(drawn_values(weights.classifier->dense.bias), 10.0f);
  };
  Encoder encoder(reranker(overflow), {.threads = 1});
  expect_error<ModelError>([&] { encoder.rank("a", "b"); }, {"logit", "inf", "too large"});
}

/// Encodes the texts itself, and must come to the other implementation's logits.
TEST(ClassifyTest, ReferenceCheckpointsGiveTheLogitsOfTransformers) {
  for (const char* const name :
       {"golden2/bert-cross-encoder", "golden2/xlm-roberta-reranker",
        "golden2/distilbert-classifier", "golden2/modernbert-classifier",
        "golden3/eurobert-classifier-bos", "golden3/eurobert-classifier-mean",
        "golden3/eurobert-classifier-late"}) {
    SCOPED_TRACE(name);
    PHASOR_SHARED_OR_SKIP(folder, name);
    const auto golden = nlohmann::json::parse(read_text_file(folder / "golden.json"));
    Encoder encoder(Model::load(folder), {.threads = 2});
    for (const auto& item : golden["items"]) {
      const auto text = item["text"].get<std::string>();
      const nlohmann::json pair = item.value("text_pair", nlohmann::json());
      const Classification result =
          pair.is_null() ? encoder.classify(text) : encoder.classify(text, pair.get<std::string>());
      expect_golden(result[0].logits, item["logits"], golden);
    }
  }
}

}  // namespace
}  // namespace phasor
