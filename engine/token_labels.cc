// Texts are tokenized with their offsets, run in batches, and labelled.
#include "engine/token_labels.h"

#include <algorithm>
#include <utility>

#include "engine/checks.h"
#include "engine/labelled_spans.h"
#include "engine/output_heads.h"
#include "files/refuse.h"
#include "phasor/names.h"

namespace phasor::internal {
namespace {

/// One call of label_tokens().
class LabelRun {
 public:
  /// Borrows its arguments.
  LabelRun(const Model& model, const Threads& threads, std::span<const std::string_view> texts,
           const LabelOptions& options, const EncodeBatch& encode, const HeadOfStates& logits)
      : model_(model),
        head_(*model.weights().token_classifier),
        labels_(head_.labels),
        threads_(threads),
        texts_(texts),
        options_(options),
        encode_(encode),
        logits_(logits),
        window_(longest_text({.max_tokens = options.max_tokens, .overflow = Overflow::kWindow},
                             model, threads.count())) {}

  LabelledTexts operator()() {
    constexpr size_t kMostTexts = 1024;     // tokenized at once
    constexpr int64_t kBatchTokens = 8192;  // run at once, about
    for (size_t first = 0; first < texts_.size(); first += tokens_.size()) {
      tokenize(texts_.subspan(first, std::min(kMostTexts, texts_.size() - first)));
      for (size_t begin = 0, end = 0; begin < tokens_.size(); begin = end) {
        for (int64_t sum = 0; end < tokens_.size() && sum < kBatchTokens; ++end)
          sum += std::ssize(tokens_[end].ids);
        run(texts_.subspan(first), begin, end);
        if (options_.progress) options_.progress(result_.size(), std::ssize(texts_));
      }
    }
    return std::move(result_);
  }

 private:
  /// A text without tokens is one.
  void tokenize(std::span<const std::string_view> texts) {
    const TokenizeOptions how = {.parse_special = options_.parse_special,
                                 .ids_only = true,
                                 .no_special_tokens = !model_.text().special_tokens,
                                 .offset_unit = OffsetUnit::kBytes};
    tokens_.assign(texts.size(), {});
    for_each_text(threads_, std::ssize(texts), [&](int64_t i) {
      tokens_[i] = tokens_or_none([&] { return model_.tokenizer().encode(texts[i], how); });
    });
  }

  /// The texts from `begin` to before `end` of those that are tokenized.
  void run(std::span<const std::string_view> texts, size_t begin, size_t end) {
    std::vector<int32_t> ids;
    std::vector<int64_t> offsets = {0};
    for (size_t i = begin; i < end; ++i) {
      ids.insert(ids.end(), tokens_[i].ids.begin(), tokens_[i].ids.end());
      if (!tokens_[i].ids.empty()) offsets.push_back(std::ssize(ids));
    }
    const auto num_labels = std::ssize(head_.labels);
    std::vector<float> scores;
    if (!ids.empty()) {
      const Encoding encoding =
          encode_({.token_ids = ids, .offsets = offsets, .token_types = {}},
                  {.overflow = Overflow::kWindow, .stop = options_.stop}, window_);
      scores = logits_(encoding.hidden());
      check_finite_logits(scores, "classification");
      scores = probabilities(scores, num_labels, ClassifierHead::Output::kSoftmax);
    }
    std::span<const float> rest = scores;
    for (size_t i = begin; i < end; ++i) {
      const auto num_tokens = std::ssize(tokens_[i].ids);
      const auto own = rest.first(static_cast<size_t>(num_tokens * num_labels));
      rest = rest.subspan(own.size());
      LabelledText& labelled = result_.texts.emplace_back();
      labelled.spans = labels_({texts[i], tokens_[i], own, model_.tokenizer().unknown_id()},
                               options_.aggregation);
      if (options_.offset_unit == OffsetUnit::kCharacters) to_characters(texts[i], labelled.spans);
      labelled.report = {.num_tokens = num_tokens, .invalid_bytes = tokens_[i].invalid_bytes};
    }
  }

  const Model& model_;
  const ClassifierHead& head_;
  const SpanLabels labels_;
  const Threads threads_;
  const std::span<const std::string_view> texts_;
  const LabelOptions& options_;
  const EncodeBatch& encode_;
  const HeadOfStates& logits_;
  const int64_t window_;
  std::vector<Tokens> tokens_;
  LabelledTexts result_;
};

}  // namespace

LabelledTexts label_tokens(const Model& model, const Threads& threads,
                           std::span<const std::string_view> texts, const LabelOptions& options,
                           const EncodeBatch& encode, const HeadOfStates& logits) {
  token_classifier_of(model);
  if (options.offset_unit == OffsetUnit::kNone)
    refuse<InvalidArgument>("offset_unit is kNone; spans are counted in bytes or characters");
  check_value(names<Aggregation>(), static_cast<size_t>(options.aggregation));
  return LabelRun(model, threads, texts, options, encode, logits)();
}

}  // namespace phasor::internal
