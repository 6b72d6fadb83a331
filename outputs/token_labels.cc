// Texts are run as embed() runs them, with their offsets, and their states labelled.
#include "outputs/token_labels.h"

#include <utility>

#include "engine/checks.h"
#include "engine/output_heads.h"
#include "files/refuse.h"
#include "outputs/labelled_spans.h"
#include "phasor/names.h"

namespace phasor::internal {

LabelledTexts label_tokens(const Model& model, const Threads& threads,
                           std::span<const std::string_view> texts, const LabelOptions& options,
                           const EncodeBatch& encode, const HeadOfStates& logits) {
  const ClassifierHead& head = token_classifier_of(model);
  if (options.offset_unit == OffsetUnit::kNone)
    refuse<InvalidArgument>("offset_unit is kNone; spans are counted in bytes or characters");
  check_value(names<Aggregation>(), static_cast<size_t>(options.aggregation));
  const SpanLabels labels(head.labels);
  const auto num_labels = std::ssize(head.labels);
  LabelledTexts result;
  result.texts.resize(texts.size());
  const auto take = [&](const TextStates& batch) {
    std::vector<float> scores = logits(batch.states);  // [N, labels]
    check_finite_logits(scores, "classification");
    scores = probabilities(scores, num_labels, ClassifierHead::Output::kSoftmax);
    for (size_t i = 0; i < batch.texts.size(); ++i) {
      const int64_t begin = batch.offsets[i] * num_labels, end = batch.offsets[i + 1] * num_labels;
      const std::string_view text = texts[batch.texts[i]];
      std::vector<LabelledSpan>& spans = result.texts[batch.texts[i]].spans;
      spans = labels({text, *batch.tokens[i], std::span(scores).subspan(begin, end - begin),
                      model.tokenizer().unknown_id()},
                     options.aggregation);
      if (options.offset_unit == OffsetUnit::kCharacters) to_characters(text, spans);
    }
  };
  const EmbedHead taker = {
      .offset_unit = OffsetUnit::kBytes, .take = take, .token_width = num_labels};
  const EmbedOptions how = {.pooling = Pooling(),
                            .prompt = "",
                            .max_tokens = options.max_tokens,
                            .overflow = Overflow::kWindow,
                            .progress = options.progress,
                            .stop = options.stop,
                            .parse_special = options.parse_special};
  const auto data = embed(model, threads, {.first = texts}, how, encode, &taker);
  for (size_t i = 0; i < texts.size(); ++i) result.texts[i].report = data->reports[i];
  return result;
}

}  // namespace phasor::internal
