// Timing tall matmuls with packed weights.

#include "phasor/matmul_limit.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <numeric>

#include "engine/onednn.h"
#include "engine/team.h"

namespace phasor {
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

/// The fastest of the runs of [rows, in] · [in, out] + bias within `seconds`.
double matmul_seconds(const dnnl::engine& engine, int64_t rows, const LinearShape& shape,
                      double seconds) {
  const auto [in, out, count] = shape;
  const std::vector<float> x(rows * in, 0.5f), weight(out * in, 0.25f), bias(out, 0.125f);
  std::vector<float> y(rows * out);
  const auto layout = onednn::preferred_weights(engine, in, out);
  const dnnl::memory packed = onednn::pack(engine, weight.data(), in, out, layout);
  auto matmul = onednn::make_matmul(engine, onednn::dense({rows, in}), layout,
                                    onednn::dense({1, out}), onednn::dense({rows, out}), {});
  matmul.set(DNNL_ARG_SRC, x.data());
  matmul.set(DNNL_ARG_WEIGHTS, packed);
  matmul.set(DNNL_ARG_BIAS, bias.data());
  matmul.set(DNNL_ARG_DST, y.data());
  std::vector<std::byte> scratchpad(matmul.scratchpad_bytes());
  const dnnl::stream stream(engine);

  double fastest = std::numeric_limits<double>::max();
  const auto begin = Clock::now();
  for (int run = 0; run < 4 || seconds_since(begin) < seconds; ++run) {
    const auto start = Clock::now();
    matmul.run(stream, scratchpad.data());
    if (run > 0) fastest = std::min(fastest, seconds_since(start));
  }
  return fastest;
}

/// Seconds a row at the best of several row counts: what stays in a cache is not known beforehand.
double seconds_per_row(const dnnl::engine& engine, const LinearShape& shape, double seconds) {
  double best = std::numeric_limits<double>::max();
  constexpr int64_t kRows[] = {256, 1024, 4096};
  for (const int64_t rows : kRows) {
    const double fastest = matmul_seconds(engine, rows, shape, seconds / std::size(kRows));
    best = std::min(best, fastest / static_cast<double>(rows));
  }
  return best;
}

}  // namespace

double matmul_operations(const ModelConfig& config, std::span<const int64_t> lengths) {
  double a_token = 0;
  for (const LinearShape& shape : linear_shapes(config)) {
    a_token += shape.row_operations() * static_cast<double>(shape.count);
  }
  return num_tokens(lengths) * a_token + attention_operations(config, lengths);
}

MatmulLimit::MatmulLimit(const ModelConfig& config, const MatmulLimitOptions& options)
    : config_(config) {
  validate(config);
  const TeamSize team(team_size(options.threads));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const std::vector<LinearShape> shapes = linear_shapes(config);
  const double share = options.seconds / static_cast<double>(shapes.size());
  for (const LinearShape& shape : shapes) {
    const double seconds = seconds_per_row(engine, shape, share);
    seconds_per_row_ += seconds * static_cast<double>(shape.count);
    best_rate_ = std::max(best_rate_, shape.row_operations() / seconds);
  }
}

double MatmulLimit::seconds(std::span<const int64_t> lengths) const {
  return num_tokens(lengths) * seconds_per_row_ +
         attention_operations(config_, lengths) / best_rate_;
}

}  // namespace phasor
