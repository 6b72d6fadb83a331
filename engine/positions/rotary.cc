#include "engine/positions/rotary.h"

#include <algorithm>
#include <cmath>

#include "engine/kernels/kernels.h"
#include "engine/team.h"

namespace phasor::internal {
namespace {

int64_t rotated_columns(const RotaryConfig& rotary, int64_t head_dim) {
  return rotary.dims > 0 ? rotary.dims : head_dim;
}

}  // namespace

Rotation::Rotation(const ModelConfig& config)
    : config_(*config.position.rotary), dims_(rotated_columns(config_, config.head_dim())) {
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const double base = config.rotary_base(layer);
    const auto same =
        std::ranges::find_if(tables_, [&](const Table& table) { return table.base == base; });
    table_of_.push_back(same - tables_.begin());
    if (same == tables_.end()) tables_.push_back({base, frequencies(base, 0), {}});
  }
}

Rotation::Rotation(const ModelConfig& config, double base)
    : config_{.base = base}, dims_(config.head_dim()), table_of_(config.num_layers, 0) {
  tables_.push_back({base, frequencies(base, 0), {}});
}

std::vector<double> Rotation::frequencies(double base, int64_t num_tokens) const {
  const auto dims = static_cast<double>(dims_);
  if (config_.ntk_length > 0 && num_tokens > config_.ntk_length) {
    const double longer = static_cast<double>(num_tokens) / static_cast<double>(config_.ntk_length);
    base *= std::pow(config_.ntk_factor * longer - config_.ntk_factor + 1, dims / (dims - 2));
  }
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dims_ / 2; ++i) {
    frequencies.push_back(config_.factor * std::pow(base, -2 * static_cast<double>(i) / dims));
  }
  return frequencies;
}

std::pair<int64_t, int64_t> Rotation::pair(int64_t i) const {
  const int64_t a = config_.interleaved ? 2 * i : i;
  return {a, config_.interleaved ? a + 1 : a + dims_ / 2};
}

std::vector<float> Rotation::swaps() const {
  std::vector<float> swaps(dims_ * dims_);
  for (int64_t i = 0; i < dims_ / 2; ++i) {
    const auto [a, b] = pair(i);
    swaps[a * dims_ + b] = swaps[b * dims_ + a] = 1;
  }
  return swaps;
}

// (a, b) turns to (a·cos − b·sin, b·cos + a·sin).
void Rotation::write_row(std::span<const double> frequencies, double position, float* row) const {
  float* const other = row + dims_;
  for (int64_t i = 0; i < dims_ / 2; ++i) {
    const auto [a, b] = pair(i);
    const double angle = frequencies[i] * position;
    row[a] = row[b] = static_cast<float>(std::cos(angle));
    other[b] = static_cast<float>(std::sin(angle));
    other[a] = -other[b];
  }
}

void Rotation::extend(int64_t first, int64_t end) {
  if (tables_.front().rows.empty()) first_ = first;
  if (first != first_) return;
  for (Table& table : tables_) {
    const int64_t have = std::ssize(table.rows) / row_size();
    if (end - first <= have) continue;
    table.rows.resize((end - first) * row_size());
    for (int64_t r = have; r < end - first; ++r) {
      write_row(table.frequencies, static_cast<double>(first + r), &table.rows[r * row_size()]);
    }
  }
}

void Rotation::rows(int64_t number, std::span<const double> positions, double scale,
                    float* out) const {
  const Table& table = tables_[number];
  const int64_t T = std::ssize(positions);
  const bool stretched = config_.ntk_length > 0 && T > config_.ntk_length;
  const std::vector<double> own = stretched ? frequencies(table.base, T) : std::vector<double>();
  for (const double position : positions) {
    const double row = position - static_cast<double>(first_);
    const bool kept =
        !stretched && scale == 1 && row >= 0 && row == std::floor(row) &&
        row * static_cast<double>(row_size()) < static_cast<double>(table.rows.size());
    if (kept) {
      std::copy_n(&table.rows[static_cast<int64_t>(row) * row_size()], row_size(), out);
    } else {
      write_row(stretched ? own : table.frequencies, scale * position, out);
    }
    out += row_size();
  }
}

void Rotation::turn(const Threads& threads, const float* rows, int64_t num_tokens, int64_t stride,
                    int64_t num_heads, int64_t head_dim, float* x) const {
  threads.run_rows(num_tokens, num_heads * head_dim, [&](int64_t t, int64_t count) {
    kernels().rotate(x + t * stride, count, stride, num_heads, head_dim, rows + t * row_size(),
                     dims_, config_.interleaved);
  });
}

}  // namespace phasor::internal
