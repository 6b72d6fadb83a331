// The oracle's positions in naive loops and double: sources, edits, overflow, scores.
#include "tests/support/reference_encoder.h"

namespace phasor::reference {

double sinusoid(SinusoidalLayout layout, double base, double position, int64_t d_model,
                int64_t column) {
  const auto paper_angle = [&](int64_t i) {
    return position * std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d_model));
  };
  if (layout == SinusoidalLayout::kPaper) {
    const double angle = paper_angle(column / 2);
    return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
  }
  if (layout == SinusoidalLayout::kMarian) {
    const int64_t num_sines = (d_model + 1) / 2;
    return column < num_sines ? std::sin(paper_angle(column))
                              : std::cos(paper_angle(column - num_sines));
  }
  const int64_t num_pairs = d_model / 2;
  if (column == 2 * num_pairs) return 0.0;  // the odd one out
  const int64_t i = column % num_pairs;
  const double exponent =
      num_pairs == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(num_pairs - 1);
  const double angle = position / std::pow(base, exponent);
  return column < num_pairs ? std::sin(angle) : std::cos(angle);
}

std::optional<int64_t> PositionSource::max_tokens() const {
  if (!num_rows) return std::nullopt;
  return *num_rows - first_position;
}

std::vector<double> PositionSource::row(double position, int64_t d_model) const {
  std::vector<double> out(d_model, 0.0);
  for (int64_t c = 0; c < d_model; ++c) {
    if (num_rows) {
      const auto below = static_cast<int64_t>(std::floor(position));
      const int64_t above = std::min(below + 1, *num_rows - 1);
      const double share = position - static_cast<double>(below);
      out[c] = (1.0 - share) * table[below * d_model + c] + share * table[above * d_model + c];
    } else if (!uncounted_token || position != *uncounted_token) {
      out[c] = sinusoid(layout, base, position, d_model, c);
    }
  }
  return out;
}

namespace {

int64_t first_position_of(SinusoidalLayout layout) {
  if (layout == SinusoidalLayout::kFairseq) return 2;
  return layout == SinusoidalLayout::kOpenNmt ? 1 : 0;
}

std::vector<double> widen(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

PositionSource position_source(const Model& model, const Positions& positions) {
  const PositionConfig& config = model.config().position;
  const Tensor& stored = model.weights().position_table;
  PositionSource source = {.present = true,
                           .num_rows = std::nullopt,
                           .table = {},
                           .layout = config.layout,
                           .base = config.base,
                           .first_position = config.first_position,
                           .uncounted_token = config.uncounted_token};
  const auto use_stored_table = [&] {
    source.num_rows = stored.shape[0];
    source.table = widen(stored.to_float());
  };
  switch (positions.source()) {
    case Positions::Source::kNone:
    case Positions::Source::kRotary:
    case Positions::Source::kAlibi:
      return {};
    case Positions::Source::kModel:
      source.present = config.kind != PositionKind::kNone;
      if (stored.present()) use_stored_table();
      break;
    case Positions::Source::kSinusoidal:
      if (config.kind != PositionKind::kSinusoidal || config.layout != positions.layout()) {
        source.layout = positions.layout();
        source.first_position = first_position_of(positions.layout());
        source.uncounted_token = std::nullopt;
      }
      source.base = positions.base();
      break;
    case Positions::Source::kLearned:
      if (!stored.present()) throw InvalidArgument("the model has no table of positions");
      use_stored_table();
      break;
    case Positions::Source::kTable:
      source.num_rows = positions.replacement()->rows;
      source.table = widen(positions.replacement()->values);
      source.first_position = 0;
      source.uncounted_token = std::nullopt;
      break;
  }
  return source;
}

namespace {

struct ApplyEdit {
  std::vector<double>& p;  // p_0 … p_{T−1}

  void operator()(const Positions::Shift& edit) const {
    for (double& position : p) position += static_cast<double>(edit.offset);
  }
  void operator()(const Positions::Swap& edit) const { std::swap(p.at(edit.i), p.at(edit.j)); }
  void operator()(const Positions::Reverse&) const { std::reverse(p.begin(), p.end()); }
  void operator()(const Positions::Shuffle& edit) const {
    std::mt19937_64 rng(edit.seed);
    for (size_t i = p.size() - 1; i >= 1; --i) std::swap(p[i], p[rng() % (i + 1)]);
  }
  void operator()(const Positions::Repeat&) const { p.assign(p.size(), p.front()); }
  void operator()(const Positions::At& edit) const {
    if (edit.position_ids.size() != p.size()) throw InvalidArgument("one position for each token");
    p.assign(edit.position_ids.begin(), edit.position_ids.end());
  }
};

/// The positions of one window. [T]
std::vector<double> positions_of(const PositionSource& source, std::span<const int32_t> token_ids,
                                 const RunOptions& options) {
  std::vector<double> p;
  int64_t next = source.first_position;
  for (const int32_t id : token_ids)
    p.push_back(static_cast<double>(id == source.uncounted_token ? id : next++));
  for (const auto& edit : options.positions.edits()) std::visit(ApplyEdit{p}, edit);
  if (!source.num_rows) return p;
  const auto first = static_cast<double>(source.first_position);
  const auto last_row = static_cast<double>(*source.num_rows - 1);
  const double largest = *std::max_element(p.begin(), p.end());
  for (double& position : p) {
    if (options.overflow == Overflow::kClamp) position = std::min(position, last_row);
    if (options.overflow == Overflow::kInterpolate && largest > last_row && position > first) {
      // u = t·(L−1)/(T−1), counted from the first position
      position = first + (position - first) * (last_row - first) / (largest - first);
    }
    if (position < 0 || position > last_row) throw InvalidArgument("outside the table");
  }
  return p;
}

}  // namespace

std::vector<Window> plan_windows(const PositionSource& source, std::span<const int32_t> token_ids,
                                 const RunOptions& options) {
  const auto limit = source.max_tokens();
  auto num_tokens = static_cast<int64_t>(token_ids.size());
  const bool too_long = limit && num_tokens > *limit;
  if (too_long && options.overflow == Overflow::kTruncate) num_tokens = *limit;
  std::vector<int64_t> starts = {0};
  int64_t length = num_tokens;
  if (too_long && options.overflow == Overflow::kWindow) {
    length = *limit;
    const int64_t step = std::max<int64_t>(1, length / 2);
    while (starts.back() + length < num_tokens)
      starts.push_back(std::min(starts.back() + step, num_tokens - length));
  }
  std::vector<Window> windows;
  for (const int64_t start : starts) {
    const auto ids = token_ids.subspan(start, length);
    windows.push_back({start, {ids.begin(), ids.end()}, positions_of(source, ids, options)});
  }
  return windows;
}

std::optional<RotaryConfig> rotation(const ModelConfig& config, const Positions& positions,
                                     int64_t layer) {
  RotaryConfig rotary;
  if (positions.source() == Positions::Source::kRotary) {
    if (config.head_dim() % 2 != 0) throw InvalidArgument("heads of odd width do not turn");
    rotary.base = positions.base();
  } else if (positions.source() == Positions::Source::kModel && config.position.rotary) {
    rotary = *config.position.rotary;
    if (!config.layer_attention.empty() && config.layer_attention[layer].rotary_base > 0)
      rotary.base = config.layer_attention[layer].rotary_base;
  } else {
    return std::nullopt;
  }
  return rotary;
}

void rotate(const RotaryConfig& rotary, int64_t num_tokens, double position,
            std::span<double> head) {
  const int64_t dims = rotary.dims > 0 ? rotary.dims : std::ssize(head);
  const auto d = static_cast<double>(dims);
  double base = rotary.base;
  if (rotary.ntk_length > 0 && num_tokens > rotary.ntk_length) {
    const double longer = static_cast<double>(num_tokens) / static_cast<double>(rotary.ntk_length);
    base *= std::pow(rotary.ntk_factor * longer - rotary.ntk_factor + 1.0, d / (d - 2.0));
  }
  for (int64_t i = 0; i < dims / 2; ++i) {
    const double frequency = rotary.factor / std::pow(base, 2.0 * static_cast<double>(i) / d);
    const double sine = std::sin(frequency * position), cosine = std::cos(frequency * position);
    double& first = head[rotary.interleaved ? 2 * i : i];
    double& second = head[rotary.interleaved ? 2 * i + 1 : i + dims / 2];
    const double turned = first * cosine - second * sine;
    second = first * sine + second * cosine;
    first = turned;
  }
}

std::vector<double> mean_row(const PositionSource& source, const ModelConfig& config,
                             int64_t d_model) {
  int64_t length = config.max_positions == 0 ? 512 : config.max_positions;
  if (source.num_rows) length = std::min(length, *source.num_rows - source.first_position);
  std::vector<double> sum(d_model);
  for (int64_t t = 0; t < length; ++t) {
    const double position = static_cast<double>(source.first_position + t);
    const std::vector<double> row = source.row(position, d_model);
    for (int64_t c = 0; c < d_model; ++c) sum[c] += row[c];
  }
  for (double& value : sum) value /= static_cast<double>(length);
  return sum;
}

double attention_scale(const Positions& positions) {
  return positions.is_averaged() ? 0 : static_cast<double>(positions.scale());
}

bool sees(const ModelConfig& config, const Positions& positions, int64_t layer, double offset) {
  if (config.layer_attention.empty() || config.layer_attention[layer].window == 0) return true;
  if (positions.source() == Positions::Source::kNone || attention_scale(positions) == 0)
    return true;
  return std::abs(offset) <= static_cast<double>(config.layer_attention[layer].window);
}

namespace {

/// Press et al.'s, by their code: for a power of two a geometric series that begins with its ratio,
/// else that of the power below, and every second one of the power above.
double alibi_slope(int64_t head, int64_t num_heads) {
  int64_t below = 1;
  while (2 * below <= num_heads) below *= 2;
  const double ratio = std::pow(2.0, -8.0 / static_cast<double>(below));
  if (head < below) return std::pow(ratio, static_cast<double>(head + 1));
  return std::pow(std::sqrt(ratio), static_cast<double>(2 * (head - below) + 1));
}

/// T5's bucket of the distance from token i to token j, after Raffel et al.'s own code: the first
/// half of the buckets looks back; of each half, the first half holds one distance each.
int64_t relative_bucket(const PositionConfig& config, int64_t distance) {
  const int64_t half = config.num_buckets / 2, exact = half / 2;
  int64_t bucket = distance > 0 ? half : 0;
  const auto length = static_cast<double>(std::abs(distance));
  if (length < static_cast<double>(exact)) return bucket + std::abs(distance);
  // How far up the logarithmic half; the small number lifts what rounding put below a whole one.
  const double up = std::log(length / static_cast<double>(exact)) /
                    std::log(static_cast<double>(config.max_distance) / static_cast<double>(exact));
  const auto steps = static_cast<int64_t>(up * static_cast<double>(half - exact) + 1e-9);
  return bucket + std::min(exact + steps, half - 1);
}

}  // namespace

double score_bias(const Model& model, const Positions& positions, int64_t head, double offset) {
  const ModelConfig& config = model.config();
  const double scale = attention_scale(positions);
  ScoreBias kind = ScoreBias::kNone;
  if (positions.source() == Positions::Source::kModel) kind = config.position.bias;
  if (positions.source() == Positions::Source::kAlibi) kind = ScoreBias::kAlibi;
  const int64_t distance = std::llround(offset);
  if (kind == ScoreBias::kNone) return 0;
  if (kind == ScoreBias::kAlibi)
    return -scale * alibi_slope(head, config.num_heads) * static_cast<double>(std::abs(distance));
  float bias = 0;
  const int64_t bucket = relative_bucket(config.position, distance);
  model.weights().relative_bias.copy_to(&bias, bucket * config.num_heads + head, 1);
  return scale * static_cast<double>(bias);
}

// He et al.'s own code gathers k_j·Q_r at −bucket(j − i), which is bucket(i − j): the buckets are
// odd, and the bound is applied after the sign. So both terms read the same row.
int64_t disentangled_row(const DisentangledConfig& config, double offset) {
  const int64_t distance = std::llround(offset), length = std::abs(distance);
  const int64_t middle = config.num_buckets / 2;
  int64_t bucket = length;
  if (config.max_distance > 0 && length > middle) {
    // In float32 as in the source, whose rounding decides what is above a whole number.
    const auto mid = static_cast<double>(middle);
    const auto all = static_cast<float>(static_cast<double>(config.max_distance - 1) / mid);
    const auto part = static_cast<float>(static_cast<double>(length) / mid);
    const float up = std::log(part) / std::log(all) * static_cast<float>(middle - 1);
    bucket = static_cast<int64_t>(std::ceil(up)) + middle;
  }
  if (distance < 0) bucket = -bucket;
  return std::clamp<int64_t>(bucket + config.num_buckets, 0, 2 * config.num_buckets - 1);
}

}  // namespace phasor::reference
