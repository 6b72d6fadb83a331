#include "engine/positions/position_source.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "files/refuse.h"

namespace phasor::internal {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 16 and older deduce no arguments for an aggregate

constexpr int64_t kUsualLength = 512;  // of the longest text in training, where no file says
constexpr int64_t kMostComputed = int64_t{1} << 16;  // rows of a mean, where none are stored

void check_token(int64_t index, size_t num_tokens) {
  if (index < 0 || index >= static_cast<int64_t>(num_tokens)) {
    refuse<InvalidArgument>("cannot swap the position of token {}: the tokens are 0 to {}", index,
                            num_tokens - 1);
  }
}

}  // namespace

void SinusoidTable::extend(int64_t first, int64_t end) {
  if (rows_.empty()) first_ = first;
  const auto have = static_cast<int64_t>(rows_.size()) / width_;
  const int64_t num_rows = end - first_;
  if (first != first_ || num_rows <= have) return;
  rows_.reserve(num_rows * width_);
  std::vector<float> row(width_);
  for (int64_t r = have; r < num_rows; ++r) {
    sinusoidal_row(pairs_, static_cast<double>(first_ + r), width_, row.data());
    rows_.insert(rows_.end(), row.begin(), row.end());
  }
}

void SinusoidTable::copy_row(double position, float* out) const {
  const double row = position - static_cast<double>(first_);
  const bool kept = row >= 0 && position == std::floor(position) &&
                    row * static_cast<double>(width_) < static_cast<double>(rows_.size());
  if (kept) {
    std::copy_n(&rows_[static_cast<int64_t>(row) * width_], width_, out);
  } else {
    sinusoidal_row(pairs_, position, width_, out);
  }
}

PositionTables::PositionTables(const ModelConfig& config)
    : sinusoids(config.position.layout, config.position.base, config.embedding_width()) {
  if (config.position.rotary) rotation.emplace(config);
}

PositionSource::PositionSource(const Model& model, const Positions& positions, PositionTables& own)
    : config_(model.config()), run_(positions), width_(config_.embedding_width()) {
  switch (positions.source()) {
    case Positions::Source::kModel:
      use_model(model, own);
      if (own.rotation) rotation_ = &*own.rotation;
      break;
    case Positions::Source::kNone:
      break;
    case Positions::Source::kRotary:
      if (config_.head_dim() % 2 != 0) {
        refuse<InvalidArgument>(
            "rotary positions turn pairs of columns, and this model's heads have {}; choose other "
            "positions",
            config_.head_dim());
      }
      rotation_ = &run_rotation_.emplace(config_, positions.base());
      break;
    case Positions::Source::kAlibi:
      bias_.emplace(OffsetBias::alibi(config_.num_heads));
      break;
    case Positions::Source::kLearned:
      if (!model.weights().position_table.present()) {
        refuse<InvalidArgument>(
            "this model has no position table (its positions are {}); choose none, sinusoidal, "
            "rotary or alibi, or a model trained with one",
            describe(model.config().position));
      }
      use_model(model, own);
      break;
    case Positions::Source::kSinusoidal:
      use_sinusoids(model.config().position);
      break;
    case Positions::Source::kTable:
      if (positions.replacement()->d_model != width_) {
        refuse<InvalidArgument>("the position table is {} wide; this model needs {}",
                                positions.replacement()->d_model, width_);
      }
      kind_ = PositionKind::kLearned;
      num_rows_ = positions.replacement()->rows;
      run_table_ = {
          .shape = {*num_rows_, width_},
          .data = reinterpret_cast<const std::byte*>(positions.replacement()->values.data())};
      stored_ = &run_table_;
      break;
  }
  if (positions.is_averaged() && adds()) mean_row_ = mean_of_rows();
}

void PositionSource::use_model(const Model& model, PositionTables& own) {
  const PositionConfig& config = model.config().position;
  kind_ = config.kind;
  first_position_ = config.first_position;
  uncounted_token_ = config.uncounted_token;
  if (model.weights().position_table.present()) {
    stored_ = &model.weights().position_table;
    num_rows_ = stored_->shape[0];
  } else if (kind_ == PositionKind::kSinusoidal) {
    sinusoids_ = &own.sinusoids;
  }
}

void PositionSource::use_sinusoids(const PositionConfig& own) {
  const SinusoidalLayout layout = run_.layout();
  if (layout == SinusoidalLayout::kOpenNmt && width_ % 2 != 0) {
    refuse<InvalidArgument>("the opennmt layout needs an even width, not {}; choose another layout",
                            width_);
  }
  kind_ = PositionKind::kSinusoidal;
  if (own.kind == PositionKind::kSinusoidal && own.layout == layout) {
    first_position_ = own.first_position;
    uncounted_token_ = own.uncounted_token;
  } else {
    first_position_ = usual_first_position(layout);
  }
  sinusoids_ = &run_sinusoids_.emplace(layout, run_.base(), width_);
}

int64_t PositionSource::window(int64_t layer) const {
  const bool removed = run_.source() == Positions::Source::kNone || attention_scale() == 0;
  return removed ? 0 : config_.window(layer);
}

bool PositionSource::acts_on_scores(int64_t layer) const {
  if (is_causal()) return true;
  if (attention_scale() == 0) return false;
  const PositionConfig& own = config_.position;
  const bool adds_terms = is_own() && (own.bias != ScoreBias::kNone || own.disentangled);
  return adds_terms || bias() != nullptr || rotation() != nullptr || window(layer) > 0;
}

std::optional<int64_t> PositionSource::max_tokens() const {
  if (!num_rows_) return {};
  return std::max<int64_t>(0, *num_rows_ - first_position_);
}

std::vector<double> PositionSource::place(std::span<const int32_t> token_ids, Overflow overflow) {
  std::vector<double> positions;
  positions.reserve(token_ids.size());
  int64_t next = first_position_;
  for (const int32_t id : token_ids) {
    positions.push_back(static_cast<double>(id == uncounted_token_ ? id : next++));
  }
  apply_edits(positions);
  if (sinusoids_ != nullptr) sinusoids_->extend(first_position_, next);
  if (rotation_ != nullptr) rotation_->extend(first_position_, next);
  if (!num_rows_) return positions;
  if (overflow == Overflow::kInterpolate) interpolate(positions);
  if (overflow == Overflow::kClamp) {
    for (double& p : positions) p = std::min(p, last_row());
  }
  check(positions);
  return positions;
}

void PositionSource::apply_edits(std::vector<double>& p) const {
  const auto apply = Overloaded{
      [&](const Positions::Shift& shift) {
        for (double& position : p) position += static_cast<double>(shift.offset);
      },
      [&](const Positions::Swap& swap) {
        check_token(swap.i, p.size());
        check_token(swap.j, p.size());
        std::swap(p[swap.i], p[swap.j]);
      },
      [&](const Positions::Reverse&) { std::ranges::reverse(p); },
      [&](const Positions::Shuffle& shuffle) {  // Fisher–Yates; std::shuffle differs by library
        std::mt19937_64 random(shuffle.seed);
        for (size_t i = p.size() - 1; i > 0; --i) std::swap(p[i], p[random() % (i + 1)]);
      },
      [&](const Positions::Repeat&) { std::ranges::fill(p, p.front()); },
      [&](const Positions::At& at) {
        if (at.position_ids.size() != p.size()) {
          refuse<InvalidArgument>("{} positions were given for {} tokens", at.position_ids.size(),
                                  p.size());
        }
        p.assign(at.position_ids.begin(), at.position_ids.end());
      }};
  for (const Positions::Edit& edit : run_.edits()) std::visit(apply, edit);
}

// Scales the counted tokens' positions to fit the table: first + t becomes first + t·(L−1)/(T−1).
void PositionSource::interpolate(std::vector<double>& positions) const {
  const auto first = static_cast<double>(first_position_);
  const double last = *std::ranges::max_element(positions);
  if (last <= last_row()) return;
  const auto squeezed = [&](double p) {  // multiplied first: the last is the last row exactly
    return first + (p - first) * (last_row() - first) / (last - first);
  };
  for (double& p : positions) {
    if (p > first) p = squeezed(p);
  }
}

void PositionSource::check(const std::vector<double>& positions) const {
  const auto outside =
      std::ranges::find_if(positions, [&](double p) { return p < 0 || p > last_row(); });
  if (outside == positions.end()) return;
  const auto num_tokens = static_cast<int64_t>(positions.size());
  if (num_tokens > *max_tokens()) {
    refuse<InvalidArgument>(
        ErrorCode::kTooLong,
        "{} tokens are too many: the model's position table ends after {}; shorten the text or "
        "choose an overflow policy (truncate, clamp, interpolate, window)",
        num_tokens, *max_tokens());
  }
  refuse<InvalidArgument>("token {} was moved to position {}; the table has rows 0 to {}",
                          outside - positions.begin(), *outside, *num_rows_ - 1);
}

void PositionSource::rows(std::span<const double> positions, float* out) const {
  const float scale = run_.scale();
  for (const double position : positions) {
    if (mean_row_.empty()) {
      row(position, out);
    } else {
      std::copy(mean_row_.begin(), mean_row_.end(), out);
    }
    for (int64_t c = 0; c < width_; ++c) out[c] *= scale;
    out += width_;
  }
}

void PositionSource::row(double position, float* out) const {
  if (sinusoids_ == nullptr) {
    table_row(position, out);
  } else if (uncounted_token_ && position == *uncounted_token_) {
    std::fill_n(out, width_, 0.0f);
  } else {
    sinusoids_->copy_row(position, out);
  }
}

std::vector<float> PositionSource::mean_of_rows() const {
  const int64_t trained = config_.max_positions > 0 ? config_.max_positions : kUsualLength;
  int64_t count = std::min(trained, max_tokens().value_or(trained));
  if (sinusoids_ != nullptr) count = std::min(count, kMostComputed);
  std::vector<float> values(width_);
  std::vector<double> mean(width_);
  for (int64_t t = 0; t < count; ++t) {
    row(static_cast<double>(first_position_ + t), values.data());
    for (int64_t c = 0; c < width_; ++c) mean[c] += values[c] / static_cast<double>(count);
  }
  return {mean.begin(), mean.end()};
}

void PositionSource::table_row(double position, float* out) const {
  const auto read = [&](int64_t row, float* to) { stored_->copy_to(to, row * width_, width_); };
  const double floor = std::floor(position);
  read(static_cast<int64_t>(floor), out);
  if (position == floor) return;
  std::vector<float> next(width_);
  read(static_cast<int64_t>(floor) + 1, next.data());
  const auto weight = static_cast<float>(position - floor);
  for (int64_t c = 0; c < width_; ++c) out[c] += weight * (next[c] - out[c]);
}

}  // namespace phasor::internal
