#include "lens/study/estimate.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace phasor::internal {

Interval Intervals::of(std::span<const double> sums, std::span<const double> weights) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (std::ranges::count_if(weights, [](double w) { return w > 0; }) < 2 || sums.empty())
    return {kNaN, kNaN};
  if (!draws_ || draws_->num_texts() != std::ssize(sums)) draws_.emplace(std::ssize(sums));
  return draws_->ratio(sums, weights);
}

Estimate estimate(std::span<const double> values, std::span<const int64_t> texts) {
  const int64_t most = values.empty() ? -1 : std::ranges::max(texts);
  std::vector<double> sums(std::min(most + 1, kMostBlocks)), weights(sums.size());
  for (size_t i = 0; i < values.size(); ++i) {
    sums[texts[i] % kMostBlocks] += values[i];
    ++weights[texts[i] % kMostBlocks];
  }
  const double count = static_cast<double>(values.size());
  return {.mean = count > 0 ? std::accumulate(sums.begin(), sums.end(), 0.0) / count : 0,
          .interval = Intervals().of(sums, weights)};
}

}  // namespace phasor::internal
