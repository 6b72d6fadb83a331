// Lengths of states, and distances between them.

#include "lens/rows.h"
#include "phasor/lens/residual.h"
#include "phasor/pooling.h"

namespace phasor {
using namespace internal;

double mean_norm(std::span<const float> x, int64_t d_model) {
  const int64_t rows = num_rows(x, d_model);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) sum += norm(&x[t * d_model], d_model);
  return sum / static_cast<double>(rows);
}

double mean_cosine_distance(std::span<const float> a, std::span<const float> b, int64_t d_model) {
  const int64_t rows = num_rows(a, b, d_model);
  double sum = 0;
  for (int64_t t = 0; t < rows; ++t) {
    sum += 1 - cosine(a.subspan(t * d_model, d_model), b.subspan(t * d_model, d_model));
  }
  return sum / static_cast<double>(rows);
}

PartShare share_of(std::span<const double> part, std::span<const float> states, int64_t d_model) {
  const int64_t rows = num_rows(part, states, d_model);
  PartShare share;
  for (int64_t t = 0; t < rows; ++t) {
    const double* d = &part[t * d_model];
    const float* h = &states[t * d_model];
    const double length = norm(h, d_model);
    if (!(length > 0)) continue;
    share.norm += norm(d, d_model) / length;
    share.alignment += dot(d, h, d_model) / (length * length);
  }
  share.norm /= static_cast<double>(rows);
  share.alignment /= static_cast<double>(rows);
  return share;
}

}  // namespace phasor
