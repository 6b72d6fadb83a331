#include "lens/study/rise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lens/study/text.h"

namespace phasor::internal {
namespace {

/// The vectors that a run adds to the words of a text, less their mean over the words where `mean`;
/// 0 at special tokens. [T, E]
std::vector<float> vectors_of_words(const std::vector<float>& added, int64_t num_tokens,
                                    std::span<const int64_t> words, bool mean) {
  const int64_t width = std::ssize(added) / num_tokens;
  std::vector<float> vectors(added.size());
  for (int64_t c = 0; c < width && !words.empty(); ++c) {
    double sum = 0;
    for (const int64_t t : words) sum += mean ? added[t * width + c] : 0;
    sum /= static_cast<double>(words.size());
    for (const int64_t t : words)
      vectors[t * width + c] = static_cast<float>(added[t * width + c] - sum);
  }
  return vectors;
}

/// Calls take(row) for the last state of each word.
template <typename Take>
void for_each_word(const Encoding& encoding, std::span<const MaskedText> texts, Take take) {
  for (int64_t i = 0; i < std::ssize(texts); ++i) {
    const int64_t width = std::ssize(encoding[i].hidden) / encoding[i].num_tokens();
    for (const int64_t t : texts[i].places) take(encoding[i].hidden.subspan(t * width, width), i);
  }
}

}  // namespace

Rise::Rise(Many& many, const char* view, By by, int64_t draws)
    : many_(many),
      view_(view),
      without_(many.subject),
      by_loss_(by == By::kLossOrStates && many.subject.model().weights().mlm_head &&
               mask_to_fill(many.subject.model())) {
  auto& missing = many.means.missing;
  if (!many.subject.options.cut_residuals.empty()) {
    missing[view] = "a residual connection is cut";
    return;
  }
  without_.options.positions = many.subject.options.positions.edited(many.request.without);
  texts_ = by_loss_ ? recordable_texts(many, view, {&many.subject}, draws) : texts_without_masks();
  if (texts_.empty()) missing.try_emplace(view, "no text has a word");
  if (!by_loss_) measure_mean();
}

std::vector<MaskedText> Rise::texts_without_masks() const {
  const Model& model = many_.subject.model();
  if (!model.has_tokenizer()) {
    many_.means.missing[view_] = "the checkpoint has no tokenizer that phasor reads";
    return {};
  }
  std::vector<MaskedText> texts = unmasked_texts(tokenize_corpus(model, many_.request.lines),
                                                 most_tokens(many_.subject, many_.request));
  if (are_in_windows(many_, view_, many_.subject, texts)) return {};
  return texts;
}

void Rise::measure_mean() {
  mean_.assign(many_.subject.model().config().d_model, 0);
  double words = 0;
  for (const std::span<const MaskedText> batch : recordable_batches(texts_)) {
    for_each_word(many_.subject.encoder->encode_ids(ids_of(batch), with()), batch,
                  [&](std::span<const float> row, int64_t) {
                    for (size_t c = 0; c < mean_.size(); ++c) mean_[c] += row[c];
                    ++words;
                  });
  }
  for (double& sum : mean_) sum /= std::max(words, 1.0);
}

/// The first run of a batch is that with positions.
void Rise::add_distances(const Encoding& encoding, std::span<const MaskedText> texts,
                         MaskedScore& score) {
  if (batch_ != texts.data()) {
    batch_ = texts.data();
    clean_.clear();
    for_each_word(encoding, texts, [&](std::span<const float> row, int64_t) {
      clean_.insert(clean_.end(), row.begin(), row.end());
    });
  }
  const float* clean = clean_.data();
  for_each_word(encoding, texts, [&](std::span<const float> row, int64_t text) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t c = 0; c < row.size(); ++c) {
      const double a = *clean++ - mean_[c], b = row[c] - mean_[c];
      ab += a * b, aa += a * a, bb += b * b;
    }
    const double distance = aa * bb > 0 ? 1 - ab / std::sqrt(aa * bb) : 0;
    score.losses.push_back(distance);
    score.angles.push_back(angle_of(distance));
    score.texts.push_back(texts[text].number);
  });
}

void Rise::run(const Visit& visit) {
  const Scorer scorer =
      by_loss_ ? Scorer() : [this](const Encoding& encoding, auto texts, MaskedScore& score) {
        add_distances(encoding, texts, score);
      };
  const Model& model = many_.subject.model();
  int64_t number = 0;  // of the batch's first text
  for (const std::span<const MaskedText> batch : recordable_batches(texts_)) {
    many_.stages.show("texts, with positions in some layers", number, std::ssize(texts_));
    const uint64_t seed = many_.request.seed;
    MaskedRun with(many_.subject, batch, seed, with_score_, {.scorer = scorer});
    TextRows vectors;
    for (int64_t i = 0; i < std::ssize(batch) && with.trace().has(Hook::kPosEmbed); ++i) {
      const std::vector<int32_t>& ids = batch[i].token_ids;
      vectors.push_back(vectors_of_words(with.trace().at(Hook::kPosEmbed, -1, i).values,
                                         std::ssize(ids), text_places(model, ids),
                                         many_.request.without == "mean"));
    }
    const TextRows left = vectors.empty() ? vectors : less(with.at(Hook::kPosEmbed, -1), vectors);
    MaskedRun without(without_, batch, seed, without_score_, {.scorer = scorer, .vectors = left});
    visit(with, without, vectors);
    number += std::ssize(batch);
  }
}

void Rise::use_angles(const char* view) {
  view_ = view;
  values_ = &MaskedScore::angles;
}

bool Rise::is_there() const {
  const bool rises = is_above_zero(without_score_, with_score_, values_);
  if (!rises)
    many_.means.missing.try_emplace(
        view_, "nothing that is lost without word positions can be told from none");
  return rises;
}

std::string with_bounds(double value, Interval interval, int decimals) {
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  if (std::isnan(interval.low)) return text;
  return fmt::format("{} [{:.{}f}, {:.{}f}]", text, interval.low, decimals, interval.high,
                     decimals);
}

Rise::Share Rise::left(const MaskedScore& run) const {
  return {differences(run, with_score_, values_),
          differences(without_score_, with_score_, values_)};
}

Rise::Share Rise::undone(const MaskedScore& run) const {
  return {differences(without_score_, run, values_),
          differences(without_score_, with_score_, values_)};
}

void Rise::add(const Share& share, Row& row) {
  add_cell(row, ratio(share.part, share.whole), interval(share));
}

std::string Rise::lost() const {
  Row row{.cells = {}};
  add_difference(without_score_, with_score_, row, values_);
  if (values_ == &MaskedScore::angles)
    return with_bounds(row.cells[0], row.intervals[0], 1) +
           " degrees between the words' last states";
  return fmt::format(
      "{} {}", with_bounds(row.cells[0], row.intervals[0], 3),
      by_loss_ ? "nats on masked tokens" : "in 1 − cosine of the words' last states");
}

}  // namespace phasor::internal
