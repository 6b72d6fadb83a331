// Linear maps over the rows of a packed batch, in any precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "engine/packed_weights.h"
#include "engine/team.h"

namespace phasor::internal {

/// y = f(x·W + b) compiled for one row count; weights are given at each run, so that all layers
/// share one compiled map. Rows are taken in pieces of 256 and a rest, so that oneDNN compiles and
/// keeps few sizes of a map for all batches; several threads also take parts of the columns, or
/// fewer rows.
class Linear {
 public:
  /// For weights of the same size, layout and precision as `like`, on that many threads.
  Linear(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like, int threads = 1);

  /// x [N, in] -> y [N, out], both float32. `scratchpad` is aligned to a cache line and has
  /// scratchpad_bytes().
  void run(const Threads& threads, const float* x, const PackedLinear& weights, float* y,
           void* scratchpad, std::optional<Activation> activation = {});

  /// Whether it can run these weights.
  bool suits(const PackedLinear& weights) const {
    return in_ == weights.in && out_ == weights.out && precision_ == weights.precision;
  }
  size_t scratchpad_bytes() const {
    return source_bytes_ + pieces_.front().matmuls.size() * (values_bytes_ + matmul_bytes_);
  }
  std::string impl_info() const;

 private:
  struct Piece {
    int64_t num_rows;
    std::vector<onednn::Primitive> matmuls;  // one for each thread; empty: Kernels::linear
  };
  struct Source;  // x in the format of the matmul
  struct Part;    // some rows and columns of y

  void add_piece(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like,
                 int threads);
  Source source(const Threads& threads, const float* x, void* scratchpad) const;
  void multiply(const Source& x, const PackedLinear& weights, const Part& part, int thread,
                std::byte* scratchpad, const Activation* activation);
  void finish(const Source& x, const PackedLinear& weights, const Part& part, float* values,
              const Activation* activation) const;
  Dequantization dequantization(const Source& x, const PackedLinear& weights,
                                const Part& part) const;

  int64_t num_rows_;
  int64_t in_;
  int64_t out_;
  Precision precision_;
  size_t value_bytes_;  // of the matmul's input
  int64_t columns_;     // of a part, and
  int64_t rows_;        // of all but the last
  std::vector<Piece> pieces_;
  // The scratchpad: x in the matmul's format with its scales; then, for each thread,
  size_t source_bytes_ = 0;
  size_t values_bytes_ = 0;  // the result of a part, and
  size_t matmul_bytes_ = 0;  // the matmul's own scratchpad
};

/// The row count that is compiled for `num_rows`: up to 8 more, or 16 if the rest is more than 128.
int64_t padded_rows(int64_t num_rows);

/// x = f(x) for x [num_rows, width], as Linear::run() does in that precision.
void activate(const Threads& threads, float* x, int64_t num_rows, int64_t width,
              Activation activation, Precision precision);

}  // namespace phasor::internal
