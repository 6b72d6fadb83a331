// Token types of a run, and classification heads over texts and pairs; labels of tokens, joined to
// spans: beside the pipeline of Transformers.
#include <stop_token>

#include "outputs/labelled_spans.h"
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
  ModelConfig config = small_config({.kind = PositionKind::kLearned});
  config.vocab_size = letters->vocab_size();
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
  const auto run = reference::encode(model, tokens.ids, {.token_types = tokens.token_types});
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
  EXPECT_INVALID(without.encode_ids(ids, one), {"token type 1", "only 0"});
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
  EXPECT_REFUSED(classifier({.labels = {"a", "b"}}, false, label_without_row),
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
  EXPECT_GT(std::ranges::count_if(result.probabilities, [](float p) { return p * p == p; }), 1);
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
  EXPECT_INVALID(encoder.classify("abc", std::string(30, 'z'), {.overflow = Overflow::kError}),
                 {"text 0", "36 tokens", "at most 12"});
}

TEST(ClassifyTest, APromptIsPutBeforeTheFirstTextAndMayBeNamed) {
  const BertFolder folder({"no", "yes"});
  folder.write("config_sentence_transformers.json", R"({"prompts": {"q": "c d "}})");
  Encoder encoder(Model::load(folder.path()), {.threads = 1});
  const std::vector<float> want = encoder.classify("c d a", "b").logits;
  EXPECT_EQ(encoder.classify("a", "b", {.prompt = "c d "}).logits, want);
  EXPECT_EQ(encoder.classify("a", "b", {.prompt_name = "q"}).logits, want);
  EXPECT_INVALID(encoder.classify("a", "b", {.prompt_name = "p"}), {"\"p\"", "there are: q"});
}

TEST(ClassifyTest, WrongCallsAreRefused) {
  Encoder encoder(classifier({.labels = {"a", "b"}}), {.threads = 1});
  const Texts two = {"a", "b"}, three = {"a", "b", "c"};
  EXPECT_INVALID(encoder.classify(two, three), {"2 first texts", "3 second"});
  const std::vector<std::string> several = {"one label", "2 labels", "classify()"};
  EXPECT_REFUSED(encoder.rank("a", "b"), several);
  EXPECT_EQ(encoder.classify(std::vector<std::string>()).size(), 0);
  EXPECT_EQ(encoder.classify("a", std::vector<std::string>()).size(), 0);
  std::stop_source stop;
  stop.request_stop();
  expect_code(ErrorCode::kCancelled, "",
              [&] { encoder.classify("a", "b", {.stop = stop.get_token()}); });
  Encoder headless(random_model(small_config(), 1), {.threads = 1});
  const auto words = {std::string("no classification head"), std::string("random")};
  EXPECT_REFUSED(headless.classify("a"), words);
  EXPECT_REFUSED(headless.classifier_logits({}), words);
}

TEST(ClassifyTest, AWeightThatIsNoNumberIsNamed) {
  const auto spoil = [](Weights& w) { drawn_values(w.classifier->out.bias)[0] = std::nanf(""); };
  Encoder encoder(reranker(spoil), {.threads = 1});
  for (int i = 0; i < 2; ++i)
    EXPECT_REFUSED(encoder.rank("a", "b"), {"classifier out bias", "nan"});
}

TEST(ClassifyTest, LogitsThatAreNotFiniteAreRefused) {
  const auto overflow = [](Weights& weights) {
    const auto& [out, bias] = weights.classifier->out;
    std::ranges::fill(drawn_values(out), 3e38f);
    std::ranges::fill(drawn_values(bias), 3e38f);
    std::ranges::fill(drawn_values(weights.classifier->dense.bias), 10.0f);
  };
  Encoder encoder(reranker(overflow), {.threads = 1});
  EXPECT_REFUSED(encoder.rank("a", "b"), {"logit", "inf", "too large"});
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

/// Label, begin and end of each.
json places(const std::vector<LabelledSpan>& spans) {
  json list = json::array();
  for (const LabelledSpan& each : spans)
    list.push_back({each.label, each.span.begin, each.span.end});
  return list;
}

json places(const json& spans, const char* label) {
  json list = json::array();
  for (const json& each : spans) list.push_back({each[label], each["start"], each["end"]});
  return list;
}

TEST(TokenLabelsTest, TheBestLegalSequenceOfAllIsTaken) {
  const std::vector<std::string> labels = {"O", "B-X", "I-X", "E-X", "S-X", "B-Y", "E-Y"};
  const auto follows = [&](const std::string& a, const std::string& b) {  // "": the text's ends
    const bool open = a.starts_with("B-") || a.starts_with("I-");
    const bool inside = b.starts_with("I-") || b.starts_with("E-");
    return open ? inside && a.substr(2) == b.substr(2) : !inside;
  };
  constexpr int kTokens = 4;
  std::mt19937_64 rng(7);
  for (int n = 0; n < 50; ++n) {
    std::vector<float> p(kTokens * labels.size());
    for (float& each : p) each = static_cast<float>(1 + rng() % 1000) / 1000;
    double best = -1e9;
    std::vector<size_t> path(kTokens), best_path;
    for (int all = 0; all < 7 * 7 * 7 * 7; ++all) {
      double sum = 0;
      std::string before;
      bool legal = true;
      for (int t = 0, rest = all; t < kTokens; ++t, rest /= 7) {
        path[t] = rest % 7;
        sum += std::log(p[t * 7 + path[t]]);
        legal = legal && follows(before, labels[path[t]]);
        before = labels[path[t]];
      }
      if (legal && follows(before, "") && sum > best) best = sum, best_path = path;
    }
    Tokens tokens;
    tokens.ids = {1, 2, 3, 4};
    json want = json::array();
    for (int t = 0; t < kTokens; ++t) {
      tokens.offsets.push_back({t, t + 1});
      tokens.special.push_back(false);
      const std::string& label = labels[best_path[t]];
      if (label == "O") continue;
      if (label.starts_with("B-") || label.starts_with("S-"))
        want.push_back({label.substr(2), t, t + 1});
      want.back()[2] = t + 1;
    }
    const auto spans = internal::SpanLabels(labels)({"abcd", tokens, p}, Aggregation::kSimple);
    EXPECT_EQ(places(spans), want);
  }
  // None is legal: each token has its likeliest label.
  Tokens one;
  one.ids = {1};
  one.offsets = {{0, 1}};
  one.special = {false};
  const std::vector<float> p = {0.4F, 0.6F};
  const std::vector<std::string> two = {"B-X", "E-X"};
  const auto spans = internal::SpanLabels(two)({"a", one, p}, Aggregation::kSimple);
  EXPECT_EQ(places(spans), json::parse(R"([["X", 0, 1]])"));
}

TEST(TokenLabelsTest, TextsLongerThanAWindowAndEmptyOnes) {
  const BertFolder folder({"O", "B-X", "I-X"}, 9, true);  // of 32 positions
  Encoder encoder(Model::load(folder.path()));
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::string(1, static_cast<char>('a' + i * 7 % 26)) + " ";
  const Labels all = encoder.label({text, "", "ab"}, {.aggregation = Aggregation::kNone});
  EXPECT_EQ(all.reports[0].num_tokens, 202);
  EXPECT_GT(all[0].back().span.begin, 300);
  for (const LabelledSpan& each : all[0]) EXPECT_EQ(each.span.begin, 2 * (each.tokens.begin - 1));
  EXPECT_TRUE(all[1].empty());
  const Labels alone = encoder.label("ab", {.aggregation = Aggregation::kNone});
  EXPECT_EQ(places(all[2]), places(alone[0]));
  EXPECT_INVALID(encoder.label("a", {.offset_unit = OffsetUnit::kNone}), {"bytes or characters"});
}

TEST(TokenLabelsTest, AreThoseOfTheReferences) {
  PHASOR_SHARED_OR_SKIP(shared, "golden3");
  for (const char* const name :
       {"token-bert", "token-bert-bioes", "token-distilbert", "token-roberta", "token-xlm-roberta",
        "token-deberta-v2", "token-modernbert"}) {
    SCOPED_TRACE(name);
    std::ifstream file(shared / name / "token_classification.json");
    const json golden = json::parse(file);
    Encoder encoder(Model::load(shared / name), {.threads = 2});
    EXPECT_EQ(json(encoder.model().weights().token_classifier->labels), golden["labels"]);
    const bool is_bioes = golden["items"][0].contains("bioes_spans");
    for (const json& item : golden["items"]) {
      const auto text = item["text"].get<std::string>();
      const Encoding encoding = encoder.encode(text);
      const std::vector<float> logits = encoder.classifier_logits(encoding.hidden);
      expect_golden(logits, joined(item["logits"]), golden);
      for (const auto& [strategy, spans] : item["pipeline"].items()) {
        const bool none = strategy == "none";
        if (is_bioes && !none) continue;  // the pipeline does not know BIOES
        const Labels ours = encoder.label(text, {.offset_unit = OffsetUnit::kCharacters,
                                                 .aggregation = parse<Aggregation>(strategy)});
        const json wanted = places(spans, none ? "entity" : "entity_group");
        ASSERT_EQ(places(ours[0]), wanted) << strategy << " " << text;
        for (size_t i = 0; i < spans.size(); ++i)
          EXPECT_NEAR(ours.scores[i], spans[i]["score"].get<float>(), 1e-5);
      }
      if (!is_bioes) continue;
      for (const Aggregation how : {Aggregation::kSimple, Aggregation::kMax}) {
        const Labels ours =
            encoder.label(text, {.offset_unit = OffsetUnit::kCharacters, .aggregation = how});
        EXPECT_EQ(places(ours[0]), places(item["bioes_spans"], "entity_group")) << text;
      }
    }
  }
}

}  // namespace
}  // namespace phasor
