// Observing texts: a batch of them, run as asked and in every other way that its measures need.
#include "infer/experiment/observation.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/experiment/listener.h"
#include "infer/render/report.h"
#include "phasor/errors.h"
#include "phasor/lens.h"

namespace infer {
namespace {

using phasor::Hook;

constexpr const char* kWindows = "the text was run in overlapping windows";

std::vector<int64_t> draw_order(Reordering kind, const Observed& text, uint64_t seed) {
  switch (kind) {
    case Reordering::kSwap:
      return phasor::swapped_order(text.num_tokens(), text.text_tokens, seed);
    case Reordering::kNgrams:
      return phasor::shuffled_ngrams_order(text.num_tokens(), text.text_tokens, 2, seed);
    case Reordering::kReverse:
      return phasor::reversed_order(text.num_tokens(), text.text_tokens);
    case Reordering::kShuffle:
      break;
  }
  return phasor::shuffled_order(text.num_tokens(), text.text_tokens, seed);
}

phasor::Trace traced(const Request& request) {
  if (request.asks(Measure::kDirect)) return phasor::residual_trace();
  return phasor::Trace{Hook::kPosEmbed, Hook::kFullEmbed, Hook::kResidPost,
                       Hook::kNormalizedResidPost, Hook::kFinalNorm};
}

/// One batch and its answers, which the measures fill in one after the other.
class Experiment {
 public:
  Experiment(const Subject& subject, std::span<const Input> inputs, const Request& request)
      : subject_(subject),
        request_(request),
        sequences_(token_ids_of(inputs)),
        listener_(traced(request),
                  {.attention = request.asks(Measure::kAttention), .patterns = request.patterns},
                  special_places(subject.model(), inputs)),
        encoding_(run(subject.options.positions, sequences_, listener_)) {
    for (int64_t i = 0; i < std::ssize(inputs); ++i) begin_text(inputs[i], i);
  }

  void measure_effect() {
    // Scaled to nothing rather than removed, so that both runs cut the same windows.
    phasor::Trace without = hidden_states();
    run(subject_.options.positions.scaled(0), sequences_, without);
    const phasor::Pooling pooling =
        subject_.model().has_sentence() ? subject_.model().sentence().pooling : phasor::Pooling();
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      for_each_layer(i, [&](int64_t l, ObservedLayer& layer) {
        layer.position_effect = phasor::mean_cosine_distance(
            state(l, i), without.hidden_state(l, i).values, texts_[i].d_model);
      });
      const int64_t last = texts_[i].num_layers();
      const std::vector<float> a = pool(state(last, i), texts_[i].d_model, pooling);
      const std::vector<float> b =
          pool(without.hidden_state(last, i).values, texts_[i].d_model, pooling);
      texts_[i].pooled_effect = phasor::mean_cosine_distance(a, b, std::ssize(a));
    }
  }

  void measure_direct() {
    if (subject_.model().config().position.kind == phasor::PositionKind::kRelativeBias &&
        subject_.options.positions.source() == phasor::Positions::Source::kModel) {
      return miss(Measure::kDirect, "positions are a bias on the scores; no vector is added");
    }
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      if (in_windows(texts_[i])) {
        texts_[i].missing[Measure::kDirect] = kWindows;
        continue;
      }
      const std::vector<phasor::PartShare> path = phasor::direct_position_path(
          subject_.model(), listener_.trace(), i, subject_.options.cut_residuals);
      for_each_layer(i, [&](int64_t l, ObservedLayer& layer) { layer.direct_position = path[l]; });
    }
  }

  void measure_split(Progress& progress) {
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      Observed& text = texts_[i];
      if (text.text_tokens.size() < 2) {
        text.missing[Measure::kSplit] = "the text has no two tokens that could change places";
        continue;
      }
      const std::vector<phasor::Split> splits = phasor::latin_square_split(
          subject_.encoder, text.input.token_ids, text.text_tokens, subject_.options,
          [&](int64_t done, int64_t total) { progress.show("rotations", done, total); });
      for_each_layer(i, [&](int64_t l, ObservedLayer& layer) {
        layer.split = summary_of(splits[l], text.d_model);
        if (request_.arrays) layer.split->position_means = splits[l].position_means;
      });
    }
  }

  void measure_scores() {
    if (subject_.encoder.precision() != phasor::Precision::kFloat32) {
      return miss(Measure::kScores, "the terms are those of a run in f32");
    }
    phasor::ScoreTrace trace;
    run(subject_.options.positions, sequences_, trace);
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      if (in_windows(texts_[i])) {
        texts_[i].missing[Measure::kScores] = kWindows;
        continue;
      }
      const phasor::ScoreTerms terms = phasor::first_layer_scores(subject_.model(), trace, i);
      ObservedScores& scores = texts_[i].first_layer_scores.emplace();
      scores.all = phasor::score_shares(terms);
      for (int64_t head = 0; head < texts_[i].num_heads; ++head) {
        scores.heads.push_back(phasor::score_shares(terms, head));
      }
    }
  }

  void measure_order(Reordering kind) {
    std::vector<std::vector<int64_t>> orders;
    std::vector<std::vector<int32_t>> reordered;
    for (size_t i = 0; i < texts_.size(); ++i) {
      orders.push_back(draw_order(kind, texts_[i], request_.seed + i));
      reordered.push_back(phasor::reordered(sequences_[i], orders.back()));
    }
    phasor::Trace moved = hidden_states();
    run(subject_.options.positions, reordered, moved);
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      if (texts_[i].text_tokens.size() < 2) {
        texts_[i].missing[Measure::kOrder] = "the text has no two tokens that could change places";
        continue;
      }
      for_each_layer(i, [&](int64_t l, ObservedLayer& layer) {
        if (!layer.order) layer.order.emplace();
        (*layer.order)[static_cast<size_t>(kind)] = phasor::order_sensitivity(
            state(l, i), moved.hidden_state(l, i).values, orders[i], texts_[i].d_model);
      });
    }
  }

  void read_attention() {
    for (int64_t i = 0; i < std::ssize(texts_); ++i) {
      for (int64_t l = 1; l <= texts_[i].num_layers(); ++l) {
        texts_[i].layers[l].attention = listener_.attention(l - 1, i);
      }
      if (in_windows(texts_[i])) {
        texts_[i].missing[Measure::kAttention] = fmt::format("head by head: {}", kWindows);
      }
    }
  }

  std::vector<Observed> take_texts() { return std::move(texts_); }

 private:
  phasor::Encoding run(const phasor::Positions& positions,
                       std::span<const std::vector<int32_t>> sequences,
                       phasor::Observer& observer) {
    phasor::RunOptions options = subject_.options;
    options.positions = positions;
    options.observer = &observer;
    return subject_.encoder.encode_ids(sequences, options);
  }

  void begin_text(const Input& input, int64_t i) {
    const phasor::ModelConfig& config = subject_.model().config();
    Observed& text = texts_.emplace_back(
        Observed{.model = subject_.name,
                 .positions = describe_positions(config.position, subject_.options.positions),
                 .precision = std::string(to_string(subject_.encoder.precision())),
                 .edits = subject_.edits,
                 .cut_residuals = describe_cuts(subject_.options.cut_residuals),
                 .input = input,
                 .position_ids = {encoding_.positions(i).begin(), encoding_.positions(i).end()},
                 .num_heads = config.num_heads,
                 .d_model = config.d_model,
                 .layers = std::vector<ObservedLayer>(config.num_layers + 1)});
    keep_leading_tokens(text.input, encoding_.num_tokens(i));
    sequences_[i] = text.input.token_ids;
    text.text_tokens = text_places(subject_.model(), text.input.token_ids);
    text.masks = mask_reports(subject_.encoder, encoding_, i);
    const phasor::Trace& trace = listener_.trace();
    if (trace.has(Hook::kPosEmbed, -1, i) && !in_windows(text)) {
      text.position_vectors = trace.at(Hook::kPosEmbed, -1, i).values;
    }
    for_each_layer(i, [&](int64_t l, ObservedLayer& layer) {
      const std::vector<float>& values = trace.hidden_state(l, i).values;
      layer.norm = phasor::mean_norm(values, config.d_model);
      if (request_.states) text.states.push_back(values);
    });
    for (int64_t l = 0; request_.patterns && l < config.num_layers; ++l) {
      text.patterns.push_back(trace.at(Hook::kPattern, l, i).values);
    }
  }

  std::span<const float> state(int64_t l, int64_t i) const {  // [T, C]
    return listener_.trace().hidden_state(l, i).values;
  }

  template <typename Visit>
  void for_each_layer(int64_t i, Visit visit) {
    for (int64_t l = 0; l <= texts_[i].num_layers(); ++l) visit(l, texts_[i].layers[l]);
  }

  void miss(Measure measure, const std::string& why) {
    for (Observed& text : texts_) text.missing[measure] = why;
  }

  bool in_windows(const Observed& text) const {
    return subject_.options.overflow == phasor::Overflow::kWindow &&
           text.num_tokens() > subject_.encoder.model()
                                   .max_tokens(subject_.options.positions)
                                   .value_or(text.num_tokens());
  }

  const Subject& subject_;
  const Request& request_;
  std::vector<std::vector<int32_t>> sequences_;
  Listener listener_;
  phasor::Encoding encoding_;
  std::vector<Observed> texts_;
};

}  // namespace

bool Request::asks(Measure measure) const {
  return std::find(measures.begin(), measures.end(), measure) != measures.end();
}

ObservedSplit summary_of(const phasor::Split& split, int64_t d_model) {
  return {.position = split.position,
          .group = split.group,
          .rest = split.rest,
          .stable_rank = phasor::stable_rank(split.position_means, d_model),
          .smoothness = phasor::smoothness(split.position_means, d_model)};
}

std::vector<Observed> observe_texts(const Subject& subject, std::span<const Input> inputs,
                                    const Request& request, Progress& progress) {
  Experiment experiment(subject, inputs, request);
  if (request.asks(Measure::kSplit)) experiment.measure_split(progress);
  if (request.asks(Measure::kEffect)) experiment.measure_effect();
  if (request.asks(Measure::kDirect)) experiment.measure_direct();
  if (request.asks(Measure::kScores)) experiment.measure_scores();
  if (request.asks(Measure::kAttention)) experiment.read_attention();
  for (size_t kind = 0; request.asks(Measure::kOrder) && kind < kReorderingNames.size(); ++kind) {
    experiment.measure_order(static_cast<Reordering>(kind));
  }
  return experiment.take_texts();
}

}  // namespace infer
