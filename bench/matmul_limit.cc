// Timing tall matmuls with packed weights, on every thread at once.

#include "bench/matmul_limit.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <numeric>

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "engine/packed_weights.h"
#include "engine/scratch.h"
#include "engine/team.h"

namespace infer {

using namespace phasor;
using namespace phasor::internal;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A matrix shape and how many such matrices each token passes on its way through the model.
struct LinearShape {
  int64_t in, out, count;

  double row_operations() const {  // of one of them
    return 2.0 * static_cast<double>(in) * static_cast<double>(out);
  }
};

std::vector<LinearShape> linear_shapes(const ModelConfig& config) {
  const int64_t heads = config.attention_width();
  std::vector<LinearShape> shapes = {
      {config.d_model, 3 * heads, config.num_layers},  // q, k, v: as one they can be faster
      {heads, config.d_model, config.num_layers},
      {config.d_model, config.d_ff, (config.gated_mlp ? 2 : 1) * config.num_layers},
      {config.d_ff, config.d_model, config.num_layers}};
  if (config.d_embedding > 0) shapes.push_back({config.d_embedding, config.d_model, 1});
  return shapes;
}

double attention_operations(const ModelConfig& config, std::span<const int64_t> lengths) {
  double pairs = 0;
  for (const int64_t length : lengths) {
    pairs += static_cast<double>(length) * static_cast<double>(length);
  }
  const auto width = static_cast<double>(config.num_layers * config.attention_width());
  return 2 * 2.0 * pairs * width;  // scores and values
}

double num_tokens(std::span<const int64_t> lengths) {
  return static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}));
}

/// [rows, in] · [in, out], for one thread, on memory of its own but for the weights.
class Matmul {
 public:
  Matmul(const dnnl::engine& engine, int64_t rows, const LinearShape& shape,
         const onednn::MatmulTypes& types, const dnnl::memory& weights)
      : x_(rows * shape.in, 0.5f),
        y_(rows * shape.out),
        matmul_(onednn::make_matmul(engine, onednn::dense({rows, shape.in}, types.src),
                                    weights.get_desc(), {},
                                    onednn::dense({rows, shape.out}, types.dst))) {
    scratchpad_.reserve_bytes(matmul_.scratchpad_bytes());
    matmul_.set(DNNL_ARG_SRC, x_.data());
    matmul_.set(DNNL_ARG_WEIGHTS, weights);
    matmul_.set(DNNL_ARG_DST, y_.data());
  }

  /// The fastest of the runs within `seconds`.
  double time(double seconds) {
    double fastest = std::numeric_limits<double>::max();
    const auto begin = Clock::now();
    for (int run = 0; run < 4 || seconds_since(begin) < seconds; ++run) {
      const auto start = Clock::now();
      matmul_.run(scratchpad_.data());
      if (run > 0) fastest = std::min(fastest, seconds_since(start));
    }
    return fastest;
  }

 private:
  std::vector<float> x_, y_;  // as wide as any of the types
  onednn::Primitive matmul_;
  ScratchBuffer scratchpad_;
};

/// The time of one run where all threads run at once, each for itself, so that none ever waits.
double fastest_run(const dnnl::engine& engine, int threads, int64_t rows, const LinearShape& shape,
                   const onednn::MatmulTypes& types, const dnnl::memory& weights, double seconds) {
  std::vector<double> fastest(threads);
  parallel_for(threads, threads, [&](int64_t i) {
    fastest[i] = Matmul(engine, rows, shape, types, weights).time(seconds);
  });
  return *std::ranges::min_element(fastest);
}

/// Seconds a row at the best of several row counts: what stays in a cache is not known beforehand.
double seconds_per_row(const dnnl::engine& engine, int threads, const LinearShape& shape,
                       const onednn::MatmulTypes& types, double seconds) {
  const auto layout = onednn::preferred_weights(engine, shape.in, shape.out, types);
  const std::vector<float> plain(shape.in * shape.out, 0.25f);  // as wide as any of the types
  const dnnl::memory weights = onednn::pack(engine, plain.data(), layout);
  double best = std::numeric_limits<double>::max();
  constexpr int64_t kRows[] = {128, 256, 512};
  for (const int64_t rows : kRows) {
    const double run =
        fastest_run(engine, threads, rows, shape, types, weights, seconds / std::size(kRows));
    best = std::min(best, run / static_cast<double>(rows * threads));
  }
  return best;
}

}  // namespace

MatmulLimit::MatmulLimit(const ModelConfig& config, const MatmulLimitOptions& options)
    : config_(config) {
  validate(config);
  const int threads = team_size(options.threads);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const std::vector<LinearShape> shapes = linear_shapes(config);
  const onednn::MatmulTypes types = matmul_types(precision_for(config, options.precision));
  const bool narrow = types.weights != onednn::Type::f32;
  const double share = options.seconds / static_cast<double>(shapes.size() + (narrow ? 1 : 0));
  for (const LinearShape& shape : shapes) {
    const double seconds = seconds_per_row(engine, threads, shape, types, share);
    seconds_per_row_ += seconds * static_cast<double>(shape.count);
    best_rate_ = std::max(best_rate_, shape.row_operations() / seconds);
  }
  attention_rate_ = best_rate_;
  if (narrow) {  // attention multiplies float32, or bfloat16 where that is fast
    const bool halves = attention_products(options.precision).values_per_float == 2;
    attention_rate_ =
        shapes.front().row_operations() /
        seconds_per_row(engine, threads, shapes.front(),
                        halves ? matmul_types(Precision::kBfloat16) : onednn::MatmulTypes(), share);
  }
}

double MatmulLimit::seconds(std::span<const int64_t> lengths) const {
  return num_tokens(lengths) * seconds_per_row_ +
         attention_operations(config_, lengths) / attention_rate_;
}

}  // namespace infer
