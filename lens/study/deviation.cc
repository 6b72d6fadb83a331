#include "lens/study/deviation.h"

#include <cmath>

namespace phasor::internal {

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

}  // namespace phasor::internal
