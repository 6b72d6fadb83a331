// Labels of tokens, joined to spans: beside the pipeline of Transformers.
#include "engine/token_labels.h"

#include <fstream>

#include "phasor/encoder.h"
#include "tests/support/expect_close.h"
#include "tests/support/shared_files.h"
#include "tests/support/test.h"

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
      const std::vector<float> logits = encoder.classifier_logits(encoding.hidden());
      std::vector<float> expected;
      for (const json& row : item["logits"])
        for (const json& logit : row) expected.push_back(logit);
      ASSERT_EQ(logits.size(), expected.size());
      for (size_t i = 0; i < logits.size(); ++i)
        EXPECT_NEAR(
            logits[i], expected[i],
            golden["atol"].get<double>() + golden["rtol"].get<double>() * std::abs(expected[i]));
      for (const auto& [strategy, spans] : item["pipeline"].items()) {
        const bool none = strategy == "none";
        if (is_bioes && !none) continue;  // the pipeline does not know BIOES
        const auto ours = encoder.label_tokens(text, {.aggregation = parse<Aggregation>(strategy),
                                                      .unit = OffsetUnit::kCharacters})[0];
        const json wanted = places(spans, none ? "entity" : "entity_group");
        ASSERT_EQ(places(ours.spans), wanted) << strategy << " " << text;
        for (size_t i = 0; i < spans.size(); ++i)
          EXPECT_NEAR(ours.spans[i].score, spans[i]["score"].get<float>(), 1e-5);
      }
      if (!is_bioes) continue;
      for (const Aggregation how : {Aggregation::kSimple, Aggregation::kMax}) {
        const auto ours =
            encoder.label_tokens(text, {.aggregation = how, .unit = OffsetUnit::kCharacters})[0];
        EXPECT_EQ(places(ours.spans), places(item["bioes_spans"], "entity_group")) << text;
      }
    }
  }
}

}  // namespace
}  // namespace phasor
