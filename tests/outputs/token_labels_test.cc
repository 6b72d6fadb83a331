// Labels of tokens, joined to spans: beside the pipeline of Transformers.
#include "outputs/labelled_spans.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

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
  expect_error<InvalidArgument>([&] { encoder.label("a", {.offset_unit = OffsetUnit::kNone}); },
                                {"bytes or characters"});
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
