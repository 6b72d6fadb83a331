// Linear maps over the rows of a packed batch, in any precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/onednn.h"
#include "engine/packed_weights.h"

namespace phasor::internal {

/// y = f(x·W + b) compiled for one row count; weights are given at each run, so that all layers
/// share one compiled map. Rows are taken in pieces of 256 and a rest, so that oneDNN compiles and
/// keeps few sizes of a map for all batches.
class Linear {
 public:
  /// For weights of the same size, layout and precision as `like`.
  Linear(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like);

  /// x [N, in] -> y [N, out], both float32. `scratchpad` is aligned to a cache line and has
  /// scratchpad_bytes().
  void run(const dnnl::stream& stream, const float* x, const PackedLinear& weights, float* y,
           void* scratchpad, std::optional<Activation> activation = {});

  Precision precision() const { return precision_; }
  size_t scratchpad_bytes() const;
  const std::string& impl_info() const { return pieces_.front().matmul.impl_info(); }

 private:
  struct Piece {
    Piece(const dnnl::engine& engine, int64_t num_rows, int64_t count, const PackedLinear& like);

    int64_t num_rows;
    int64_t count;        // number of runs, one after the other
    size_t source_bytes;  // of the scratchpad: x as the matmul reads it,
    size_t scale_bytes;   // then its rows' scales, then the matmul's scratchpad
    onednn::Primitive matmul;
  };

  void run(Piece& piece, const dnnl::stream& stream, const float* x, const PackedLinear& weights,
           float* y, void* scratchpad, const std::optional<Activation>& activation) const;
  const void* source(const Piece& piece, const float* x, void* scratchpad) const;
  void dequantize(const Piece& piece, float* y, const PackedLinear& weights,
                  const float* row_scales, const std::optional<Activation>& activation) const;

  int64_t in_;
  int64_t out_;
  Precision precision_;
  std::vector<Piece> pieces_;
};

/// The row count that is compiled for `num_rows`: up to 8 more, or 16 if the rest is more than 128.
int64_t padded_rows(int64_t num_rows);

/// x = f(x) for x [num_rows, width].
void activate(float* x, int64_t num_rows, int64_t width, Activation activation);

}  // namespace phasor::internal
