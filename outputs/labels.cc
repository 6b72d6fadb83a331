// What heads say of texts and of their tokens.
#include "outputs/labels.h"

#include <array>
#include <utility>

#include "engine/checks.h"
#include "engine/output_heads.h"
#include "files/refuse.h"
#include "files/utf8.h"
#include "outputs/labelled_spans.h"
#include "outputs/vectors.h"

namespace phasor::internal {

Classification classify(const Runner& runner, const TextInput& input, const TextOptions& options) {
  const Model& model = runner.model();
  const ClassifierHead& head = classifier_of(model);
  const Pooling pooling = {.modes = {head.pooling}};
  const int64_t d_model = model.config().d_model, num_labels = std::ssize(head.labels);
  Classification result;
  result.labels = head.labels;
  result.logits.resize(input.size() * num_labels);
  const auto take = [&](const TextStates& batch) {
    std::vector<float> rows;  // [B, L]
    if (head.mean_of_logits) {
      const std::vector<float> all = runner.run_head(Head::kClassifier, batch.states);
      TextStates logits = batch;
      logits.states = all;
      rows = pool_texts(logits, num_labels, {}, {});
    } else {
      rows =
          runner.run_head(Head::kClassifier, pool_texts(batch, d_model, pooling, runner.threads()));
    }
    for (int64_t i = 0; i < batch.size(); ++i) {
      std::copy_n(&rows[i * num_labels], num_labels, &result.logits[batch.texts[i] * num_labels]);
    }
  };
  result.reports = run_texts(runner, input, options,
                             {.prompt = prompt_of(options, model.text()),
                              .max_tokens = options.max_tokens,
                              .overflow = options.overflow.value_or(Overflow::kTruncate),
                              .needs_tokens = true,
                              .reads = head.mean_of_logits ? ReadStates::kAll : read_by(pooling),
                              .take = take});
  check_finite_logits(result.logits, "classification");
  result.probabilities = probabilities(result.logits, num_labels, head.output);
  return result;
}

Labels label(const Runner& runner, std::span<const std::string_view> texts,
             const TextOptions& options) {
  const Model& model = runner.model();
  const ClassifierHead& head = token_classifier_of(model);
  const OffsetUnit unit = options.offset_unit.value_or(OffsetUnit::kBytes);
  if (unit == OffsetUnit::kNone)
    throw InvalidArgument("offset_unit is none; spans are counted in bytes or characters");
  const SpanLabels labels(head.labels);
  const auto num_labels = std::ssize(head.labels);
  std::vector<std::vector<LabelledSpan>> all(texts.size());
  const auto take = [&](const TextStates& batch) {
    std::vector<float> scores = runner.run_head(Head::kClassifier, batch.states);  // [N, L]
    check_finite_logits(scores, "classification");
    scores = probabilities(scores, num_labels, ClassifierHead::Output::kSoftmax);
    for (int64_t i = 0; i < batch.size(); ++i) {
      const int64_t begin = batch.offsets[i] * num_labels, end = batch.offsets[i + 1] * num_labels;
      const std::string_view text = texts[batch.texts[i]];
      std::vector<LabelledSpan>& spans = all[batch.texts[i]];
      spans = labels({text, *batch.tokens[i], std::span(scores).subspan(begin, end - begin),
                      model.tokenizer().unknown_id()},
                     options.aggregation);
      if (unit != OffsetUnit::kCharacters || spans.empty()) continue;
      const CharacterPlaces place(text);
      for (LabelledSpan& each : spans) each.span = {place(each.span.begin), place(each.span.end)};
    }
  };
  Labels result;
  result.reports = run_texts(runner, {texts}, options,
                             {.max_tokens = options.max_tokens,
                              .overflow = Overflow::kWindow,
                              .offset_unit = OffsetUnit::kBytes,
                              .token_width = num_labels,
                              .take = take});
  for (const std::vector<LabelledSpan>& spans : all) {
    for (const auto& [label, score, span, tokens] : spans) {
      result.labels.emplace_back(label);
      result.scores.push_back(score);
      result.spans.push_back(span);
      result.tokens.push_back(tokens);
    }
    result.offsets.push_back(std::ssize(result.spans));
  }
  return result;
}

}  // namespace phasor::internal
