#include "lens/study/measures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "lens/latin_squares.h"
#include "lens/order.h"
#include "lens/relative.h"
#include "lens/residual_stream.h"
#include "lens/study/masked.h"

namespace phasor::internal {
namespace {

/// Latin squares of a split, so many that another seed moves its shares by about 0.02, however long
/// the text is.
int64_t num_squares(const Observed& text) {
  return std::clamp<int64_t>(256 / std::ssize(text.text_tokens), 2, 8);
}

std::vector<int64_t> swapped(const Observed& text, uint64_t seed) {
  return swapped_order(text.num_tokens, text.text_tokens, seed);
}
std::vector<int64_t> shuffled_pairs(const Observed& text, uint64_t seed) {
  return shuffled_ngrams_order(text.num_tokens, text.text_tokens, 2, seed);
}
std::vector<int64_t> reversed(const Observed& text, uint64_t) {
  return reversed_order(text.num_tokens, text.text_tokens);
}
std::vector<int64_t> shuffled(const Observed& text, uint64_t seed) {
  return shuffled_order(text.num_tokens, text.text_tokens, seed);
}
/// The columns of "order".
constexpr std::array kOrders = {swapped, shuffled_pairs, reversed, shuffled};

void add_heads(const ObservedAttention& attention, int64_t l, Observed& text) {
  int64_t number = 0;
  for (const HeadProfile& head : attention.heads) {
    add_row(text, "heads",
            {.layer = l,
             .head = ++number,
             .cells = {head.previous, head.next, head.self, head.first, head.special,
                       head.positional_share, head.mean_distance, head.entropy_share,
                       head.text_previous, head.text_next}});
  }
}

std::vector<double> cells(const ScoreShares& shares) {
  return {shares.token_token,
          shares.token_position,
          shares.position_token,
          shares.position_position,
          shares.relative_bias,
          shares.rest,
          shares.token_position + shares.position_token + shares.position_position +
              shares.relative_bias};
}

/// What the scores of every layer are computed from, and those of the first.
class RelativeTrace : public ScoreTrace {
 public:
  bool wants(Hook hook, int64_t layer) const override {
    return hook == Hook::kQ || hook == Hook::kK || ScoreTrace::wants(hook, layer);
  }
};

/// Adds the curve of a term, and its standard deviation where it has one.
void add_curve(const OffsetCurve& curve, const char* term, HeadNumber head, Observed& text) {
  const auto add = [&](const std::string& label, const std::vector<double>& cells) {
    Table& table = text.tables["relative"];
    table.rows.push_back({.layer = head.layer, .head = head.head, .label = label, .cells = cells});
    if (!table.columns.empty()) return;
    for (int64_t d = -kFarthestOffset; d <= kFarthestOffset; ++d) {
      table.columns.push_back(std::to_string(d));
    }
  };
  if (curve.mean.empty()) return;
  add(term, curve.mean);
  const bool varies = std::ranges::any_of(curve.deviation, [](double sd) { return sd > 0; });
  if (varies) add(fmt::format("{} sd", term), curve.deviation);
}

/// The term that added position vectors have in the first layer.
void add_position_term(const lens::Run& subject, const Trace& trace, int64_t i, Observed& text) {
  const ScoreTerms terms = first_layer_scores(subject.model(), trace, subject.options.positions, i);
  const int64_t pairs = terms.num_tokens * terms.num_tokens;
  for (int64_t head = 0; head < terms.num_heads; ++head) {
    const auto of_head = std::span(terms.position_position).subspan(head * pairs, pairs);
    add_curve(by_offset(of_head, text.position_ids, kFarthestOffset), "pp", {1, head + 1}, text);
  }
}

/// In degrees, on average over the rows of a and b [T, C].
double mean_angle(std::span<const float> a, std::span<const float> b, size_t width) {
  double sum = 0;
  for (size_t t = 0; t < a.size(); t += width)
    sum += angle_of(1 - cosine(a.subspan(t, width), b.subspan(t, width)));
  return sum * static_cast<double>(width) / static_cast<double>(a.size());
}

/// The places of tokens, by their ids: those of two orders of the same tokens pair them.
std::vector<size_t> by_id(const std::vector<int32_t>& ids) {
  std::vector<size_t> places(ids.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, {}, [&](size_t place) { return ids[place]; });
  return places;
}

/// Adds Observed::turns where patterns are kept, and apart, or keeps the first text's states.
void add_turns(const Batch& batch, const Trace& without, int64_t i, Observed& text) {
  const auto width = static_cast<size_t>(text.d_model);
  const auto state = [&](int64_t row) -> std::span<const float> {
    const int64_t l = row % (text.num_layers + 1);
    return row == l ? batch.state(l, i) : std::span(without.hidden_state(l, i).values);
  };
  const int64_t rows = 2 * (text.num_layers + 1);
  for (int64_t l = 0; batch.request().patterns && l < rows / 2; ++l) {
    const std::span<const float> with = state(l), none = state(l + rows / 2);
    for (size_t t = 0; t < with.size(); t += width)
      text.turns.push_back(
          static_cast<float>(mean_angle(with.subspan(t, width), none.subspan(t, width), width)));
  }
  FirstText* const first = batch.request().first;
  if (first == nullptr) return;
  const std::vector<int32_t>& ids = batch.sequences()[i];
  if (first->ids.empty()) {
    first->ids = ids;
    for (int64_t row = 0; row < rows; ++row)
      first->states.emplace_back(state(row).begin(), state(row).end());
    return;
  }
  const std::vector<size_t> here = by_id(ids), there = by_id(first->ids);
  if (ids == first->ids || !std::ranges::is_permutation(ids, first->ids)) return;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (size_t t = 0; t < ids.size(); ++t)
      sum += mean_angle(state(row).subspan(here[t] * width, width),
                        std::span(first->states[row]).subspan(there[t] * width, width), width);
    text.apart.push_back(static_cast<float>(sum / static_cast<double>(ids.size())));
  }
}

}  // namespace

void measure_split(Batch& batch) {
  uint64_t i = 0;
  for (Observed& text : batch.texts()) {
    const uint64_t seed = batch.request().seed + i++;
    if (text.text_tokens.size() < 2) {
      text.missing["split"] = kOneToken;
      continue;
    }
    std::vector<TokenSplit> splits = latin_square_split(
        *batch.subject().encoder, text.tokens.ids, text.text_tokens, batch.subject().options,
        num_squares(text), seed, batch.stages().of("orders"));
    const std::vector<bool> edges = at_edges(text.text_tokens, text.num_tokens);
    for (int64_t l = 0; l < std::ssize(splits); ++l) {
      TokenSplit& split = splits[l];
      double at_edge = 0, everywhere = 0;
      for (size_t p = 0; p < edges.size(); ++p) {
        if (edges[p]) at_edge += split.position_squares[p];
        everywhere += split.position_squares[p];
      }
      const double edge = split.position > 0 ? at_edge / everywhere : std::nan("");
      add_row(text, "split",
              {.layer = l,
               .cells = {split.position, split.token, split.both, split.context, edge,
                         stable_rank(split.position_means, text.d_model),
                         smoothness(split.position_means, text.d_model)}});
      if (batch.request().arrays) text.position_means.push_back(std::move(split.position_means));
    }
  }
}

void measure_direct(Batch& batch) {
  const lens::Run& subject = batch.subject();
  const std::string positions = described(subject).positions;
  if (!adds_vectors(subject)) {
    const std::string others =
        positions == "none" ? "" : fmt::format("; the positions are {}", positions);
    return batch.miss("direct", "no position vector is added" + others);
  }
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i) {
    if (batch.missed_by_windows(i, "direct")) continue;
    int64_t l = 0;
    for (const DirectPath& path :
         direct_path(subject.model(), batch.observer().trace(), i, subject.options.cut_residuals)) {
      add_row(batch.texts()[i], "direct",
              {.layer = l++,
               .cells = {path.position.norm, path.token.norm, path.position.alignment,
                         path.token.alignment}});
    }
  }
}

void measure_effect(Batch& batch) {
  const lens::Run& subject = batch.subject();
  // Edited rather than of no kind, so that both runs cut the same windows.
  lens::Run edited = subject;
  edited.options.positions = subject.options.positions.edited(batch.request().without);
  Trace without = hidden_states();
  encode(edited, batch.sequences(), without);
  const Pooling pooling =
      subject.model().has_sentence() ? subject.model().sentence().pooling : Pooling();
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i) {
    Observed& text = batch.texts()[i];
    for (int64_t l = 0; l <= text.num_layers; ++l) {
      const std::span<const float> with = batch.state(l, i),
                                   none = without.hidden_state(l, i).values;
      add_row(text, "effect",
              {.layer = l,
               .cells = {mean_cosine_distance(with, none, text.d_model),
                         mean_angle(with, none, static_cast<size_t>(text.d_model))}});
    }
    const auto pooled = [&](std::span<const float> states) {
      return pool(states, text.d_model, pooling);
    };
    const std::vector<float> a = pooled(batch.state(text.num_layers, i));
    const std::vector<float> b = pooled(without.hidden_state(text.num_layers, i).values);
    const double moved = mean_cosine_distance(a, b, std::ssize(a));
    text.tables["effect"].note =
        fmt::format("The text's pooled vector: {:.3f} ({}).", moved, degrees_text(angle_of(moved)));
    add_turns(batch, without, i, text);
  }
}

void measure_order(Batch& batch) {
  std::vector<std::vector<Row>> rows;  // of each text, a row for each layer
  for (const Observed& text : batch.texts()) {
    rows.emplace_back();
    for (int64_t l = 0; l <= text.num_layers; ++l) rows.back().push_back({.layer = l, .cells = {}});
  }
  for (const auto& draw : kOrders) {
    std::vector<std::vector<int64_t>> orders;
    std::vector<std::vector<int32_t>> sequences;
    for (size_t i = 0; i < rows.size(); ++i) {
      orders.push_back(draw(batch.texts()[i], batch.request().seed + i));
      sequences.push_back(reordered(batch.sequences()[i], orders.back()));
    }
    Trace moved = hidden_states();
    encode(batch.subject(), sequences, moved);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (Row& row : rows[i]) {
        row.cells.push_back(
            order_sensitivity(batch.state(row.layer, static_cast<int64_t>(i)),
                              moved.hidden_state(row.layer, static_cast<int64_t>(i)).values,
                              orders[i], batch.texts()[i].d_model));
      }
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    Observed& text = batch.texts()[i];
    if (text.text_tokens.size() < 2) {
      text.missing["order"] = kOneToken;
      continue;
    }
    for (Row& row : rows[i]) add_row(text, "order", std::move(row));
  }
}

void measure_attention(Batch& batch) {
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i) {
    Observed& text = batch.texts()[i];
    const bool whole = !batch.missed_by_windows(i, "heads");
    for (int64_t l = 1; l <= text.num_layers; ++l) {
      ObservedAttention attention = batch.observer().attention(l - 1, i);
      add_row(text, "attention",
              {.layer = l, .cells = {attention.distance, attention.entropy_share}});
      Table& offsets = text.tables["offsets"];
      if (l == 1) {
        for (const auto& [offset, weight] : attention.by_offset) {
          offsets.columns.push_back(std::to_string(offset));
        }
      }
      Row& row = offsets.rows.emplace_back(Row{.layer = l, .cells = {}});
      for (const auto& [offset, weight] : attention.by_offset) row.cells.push_back(weight);
      if (!whole) continue;
      add_heads(attention, l, text);
      text.heads.push_back(std::move(attention.heads));
    }
    const auto tokens = static_cast<double>(text.num_tokens);
    text.tables["attention"].note =
        fmt::format("Uniform attention would reach {:.2f}.", (tokens - 1 / tokens) / 3);
  }
}

void measure_scores(Batch& batch) {
  const lens::Run& subject = batch.subject();
  if (subject.encoder->precision() != Precision::kFloat32) {
    return batch.miss("scores", "measured only in f32");
  }
  const std::string why = why_no_score_terms(subject.model().config());
  if (!why.empty()) return batch.miss("scores", why);
  ScoreTrace trace;
  encode(subject, batch.sequences(), trace);
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i) {
    if (batch.missed_by_windows(i, "scores")) continue;
    Observed& text = batch.texts()[i];
    const ScoreTerms terms =
        first_layer_scores(subject.model(), trace, subject.options.positions, i);
    add_row(text, "scores", {.label = "all", .cells = cells(score_shares(terms))});
    for (int64_t head = 0; head < text.num_heads; ++head) {
      add_row(text, "scores",
              {.label = fmt::format("1.{}", head + 1), .cells = cells(score_shares(terms, head))});
    }
  }
}

void measure_relative(Batch& batch) {
  const lens::Run& subject = batch.subject();
  const bool terms = subject.encoder->precision() == Precision::kFloat32;
  const std::string why = why_no_score_terms(subject.model().config());
  if (!why.empty()) return batch.miss("relative", why);
  RelativeTrace trace;
  encode(subject, batch.sequences(), trace);
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i) {
    if (batch.missed_by_windows(i, "relative")) continue;
    Observed& text = batch.texts()[i];
    if (terms && adds_vectors(subject)) add_position_term(subject, trace, i, text);
    for (int64_t l = 1; l <= text.num_layers; ++l) {
      int64_t head = 0;
      for (const OffsetEffect& effect : offset_effects(
               subject.model(), trace, l - 1, kFarthestOffset, subject.options.positions, i)) {
        ++head;
        add_curve(effect.bias, "bias", {l, head}, text);
        add_curve(effect.rotation, "rotation", {l, head}, text);
        add_curve(effect.content_to_position, "c2p", {l, head}, text);
        add_curve(effect.position_to_content, "p2c", {l, head}, text);
      }
    }
    const Table* const table = text.table("relative");
    if (table == nullptr) {
      text.missing["relative"] = adds_vectors(subject) ? "of added vectors, measured only in f32"
                                                       : "nothing depends on offsets";
    } else if (table->rows.back().label.starts_with("pp")) {
      text.tables["relative"].note =
          "Added vectors act by offset in the first layer only; later layers find them in the "
          "states.";
    }
  }
}

void Deviation::add(std::span<const float> got, std::span<const float> want, int64_t d_model) {
  for (size_t row = 0; row < want.size(); row += d_model, ++tokens_) {
    double gg = 0, gw = 0, ww = 0, dd = 0;
    for (size_t i = row; i < row + d_model; ++i) {
      const double g = got[i], w = want[i];
      const double diff = std::abs(g - w);
      if (!(diff <= max_diff_)) max_diff_ = std::isnan(max_diff_) ? NAN : diff;
      gg += g * g;
      gw += g * w;
      ww += w * w;
      dd += diff * diff;
    }
    const double lengths = std::sqrt(gg * ww);
    const double cosine = dd == 0 ? 1 : lengths == 0 ? 0 : gw / lengths;
    cosines_ += cosine;
    angles_ += angle_of(1 - cosine);
    if (!(cosine >= least_cosine_)) least_cosine_ = std::isnan(least_cosine_) ? NAN : cosine;
    diff_squares_ += dd;
    want_squares_ += ww;
  }
}

double Deviation::relative_error() const {
  return diff_squares_ == 0 ? 0 : std::sqrt(diff_squares_ / want_squares_);
}

double Deviation::mean_cosine() const {
  return tokens_ == 0 ? 1 : cosines_ / static_cast<double>(tokens_);
}

void Moved::add(const Batch& before, const Batch& after, int64_t i) {
  const ModelConfig &a = before.subject().model().config(), &b = after.subject().model().config();
  if (!missing_.empty()) return;
  if (a.num_layers != b.num_layers || a.d_model != b.d_model)
    missing_ = "the two models have different shapes";
  else if (before.sequences()[i].size() != after.sequences()[i].size())
    missing_ = "the two runs cut a text to different lengths";
  if (!missing_.empty()) return;
  deviations_.resize(a.num_layers + 1);
  for (int64_t l = 0; l < std::ssize(deviations_); ++l)
    deviations_[l].add(after.state(l, i), before.state(l, i), a.d_model);
}

void Moved::write(Observed& after) const {
  if (!missing_.empty()) {
    after.missing["moved"] = missing_;
    return;
  }
  for (int64_t l = 0; l < std::ssize(deviations_); ++l) {
    const Deviation& moved = deviations_[l];
    add_row(after, "moved",
            {.layer = l,
             .cells = {std::max(1 - moved.mean_cosine(), 0.0), moved.mean_angle(),
                       moved.relative_error(), moved.max_diff(), moved.least_cosine()}});
  }
}

void compare_losses(const Measured& a, Measured& b) {
  const std::vector<double>&before = a.masked.losses, &after = b.masked.losses;
  if (before.empty() || before.size() != after.size()) return;
  std::vector<double> differences;
  for (size_t i = 0; i < before.size(); ++i) differences.push_back(after[i] - before[i]);
  const Estimate difference = estimate(differences, a.masked.texts);
  const auto [low, high] = difference.interval;
  b.tables["masked"].note = fmt::format(
      "Loss of {} less that of {}, mask by mask: {:+.3f}{}.", b.label, a.label, difference.mean,
      std::isnan(low) ? "" : fmt::format(" [{:+.3f}, {:+.3f}]", low, high));
}

}  // namespace phasor::internal
