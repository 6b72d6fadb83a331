// The steps of the forward pass behind one interface, so that they can be phasor's own kernels
// (kernel_steps.cc) or oneDNN's primitives alone (onednn_steps.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/attention.h"
#include "engine/batch.h"
#include "engine/packed_weights.h"
#include "engine/positions/rotary.h"
#include "engine/team.h"
#include "phasor/run.h"

namespace phasor::internal {

/// Steps over the N rows of a prepared group, which a step spreads over the group's threads.
/// Matrices are row-major and float32. Unless said, operands do not overlap. Belongs to one run at
/// a time.
class Steps {
 public:
  virtual ~Steps() = default;

  /// N for a group of so many rows: unused ones make it a round number.
  virtual int64_t padded(int64_t num_rows) const = 0;
  /// For N = padded(num_rows). Borrows the threads' team.
  virtual void prepare(const Threads& threads, int64_t num_rows) = 0;

  /// y = f(x·W + b): x [N, in] -> y [N, out].
  virtual void linear(const PackedLinear& weights, const float* x, float* y,
                      std::optional<Activation> f = {}) = 0;
  /// x = f(x), [N, width], in the precision of the linear maps.
  virtual void activate(Activation f, int64_t width, float* x) = 0;
  /// out = norm(x); out may be x. [N, C]
  void norm(const Norm& norm, float* x, float* out) { add_norm(nullptr, norm, x, out); }
  /// x += f, then out = norm(x); nothing is added where f is null. [N, C]
  virtual void add_norm(const float* f, const Norm& norm, float* x, float* out) = 0;
  /// x += f and x *= f, [N, width].
  virtual void add(const float* f, int64_t width, float* x) = 0;
  virtual void multiply(const float* f, int64_t width, float* x) = 0;
  /// Norms each of `heads` heads of x, `stride` apart from row to row, in place: [N, heads, D].
  virtual void norm_heads(const Norm& norm, int64_t heads, int64_t stride, float* x) = 0;
  /// Turns queries and keys in qkv [N, H + 2·G, D] by `rows` [N, Rotation::row_size()].
  virtual void rotate(const Rotation& rotation, const float* rows, float* qkv) = 0;
  /// All of attention or one step of it. As attend().
  virtual void attention(std::optional<AttentionStep> only, std::span<const AttentionOperands> all,
                         const AttentionMaps& maps, float* scratch) = 0;

  /// The implementations of the prepared group's steps.
  virtual std::vector<PrimitiveInfo> primitives() const = 0;
};

/// What a compiled plan is for: so many rows, or tokens of a sequence, and threads.
using PlanSize = std::pair<int64_t, int>;

/// Keeps the compiled plans of the last max_plans row counts. Borrows all but the engine.
std::unique_ptr<Steps> make_kernel_steps(const dnnl::engine& engine, const ModelConfig& config,
                                         const PackedWeights& weights, size_t max_plans);
std::unique_ptr<Steps> make_onednn_steps(const dnnl::engine& engine, const ModelConfig& config,
                                         const PackedWeights& weights, size_t max_plans);

}  // namespace phasor::internal
