// LayerNorm by hand: oneDNN 2.6's is a reference loop, and joining it with the residual's add saves
// a pass over memory.

#include "engine/norm.h"

#include <algorithm>
#include <cmath>

// One clone for each instruction set, chosen when the program starts. The sanitizers' runtimes are
// not up yet when that choice is made.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PHASOR_VECTORIZED __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define PHASOR_VECTORIZED
#endif

namespace phasor {
namespace {

constexpr int64_t kParallelRows = 64;  // fewer are not worth waking threads for

inline void normalize_row(const float* x, int64_t d_model, const Norm& norm, float eps,
                          float* out) {
  const float* weight = norm.weight.data();
  const float* bias = norm.bias.data();
  float sum = 0;
  if (norm.kind == NormKind::kLayerNorm) {
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < d_model; ++c) sum += x[c];
  }
  const float mean = sum / static_cast<float>(d_model);  // 0 in an RMS norm
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t c = 0; c < d_model; ++c) squares += (x[c] - mean) * (x[c] - mean);
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(d_model) + eps);
#pragma omp simd
  for (int64_t c = 0; c < d_model; ++c) out[c] = (x[c] - mean) * scale * weight[c] + bias[c];
}

PHASOR_VECTORIZED
void norm_rows(const float* x, int64_t first, int64_t last, const Norm& norm, float eps,
               float* out) {
  const auto d_model = static_cast<int64_t>(norm.weight.size());
  for (int64_t t = first; t < last; ++t) {
    normalize_row(x + t * d_model, d_model, norm, eps, out + t * d_model);
  }
}

PHASOR_VECTORIZED
void add_norm_rows(const float* f, int64_t first, int64_t last, const Norm& norm, float eps,
                   float* x, float* out) {
  const auto d_model = static_cast<int64_t>(norm.weight.size());
  for (int64_t t = first; t < last; ++t) {
    const float* f_row = f + t * d_model;
    float* x_row = x + t * d_model;
#pragma omp simd
    for (int64_t c = 0; c < d_model; ++c) x_row[c] += f_row[c];
    normalize_row(x_row, d_model, norm, eps, out + t * d_model);
  }
}

// Splits rows over the threads of the caller's team, if there are enough of them.
template <typename Body>
void for_row_ranges(int64_t num_rows, Body body) {
  const int64_t ranges = (num_rows + kParallelRows - 1) / kParallelRows;
#pragma omp parallel for if (ranges > 1)
  for (int64_t r = 0; r < ranges; ++r) {
    body(r * kParallelRows, std::min(num_rows, (r + 1) * kParallelRows));
  }
}

}  // namespace

void layer_norm(const float* x, int64_t num_rows, const Norm& norm, float eps, float* out) {
  for_row_ranges(num_rows,
                 [&](int64_t first, int64_t last) { norm_rows(x, first, last, norm, eps, out); });
}

void add(const float* f, int64_t num_values, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < num_values; ++i) x[i] += f[i];
}

void multiply(const float* f, int64_t num_values, float* x) {
#pragma omp simd
  for (int64_t i = 0; i < num_values; ++i) x[i] *= f[i];
}

void add_layer_norm(const float* f, int64_t num_rows, const Norm& norm, float eps, float* x,
                    float* out) {
  for_row_ranges(num_rows, [&](int64_t first, int64_t last) {
    add_norm_rows(f, first, last, norm, eps, x, out);
  });
}

}  // namespace phasor
