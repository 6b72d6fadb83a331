// A linear map is one matmul primitive and one pass over its result, which is still in the cache:
// in int8 the conversion to float32, then the activation.

#include "engine/linear.h"

#include <algorithm>

#include "engine/kernels.h"
#include "engine/team.h"

namespace phasor::internal {
namespace {

constexpr int64_t kPieceRows = 256;  // twice as many are no faster

size_t cache_lines(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return static_cast<size_t>((bytes + kLine - 1) / kLine * kLine);
}

onednn::Primitive make(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like) {
  const onednn::Desc weight = like.weight.get_desc();
  const auto [in, out] = onednn::matrix_size(weight);
  const onednn::MatmulTypes types = matmul_types(like.precision);
  const onednn::Desc src = onednn::dense({num_rows, in}, types.src);
  const onednn::Desc dst = onednn::dense({num_rows, out}, types.dst);
  if (like.precision == Precision::kInt8) {
    return onednn::make_matmul(engine, src, weight, {}, dst);
  }
  return onednn::make_matmul(engine, src, weight, onednn::dense({1, out}), dst);
}

// The size of the rounded copy of x.
size_t source_bytes(int64_t num_rows, const PackedLinear& like) {
  if (like.precision == Precision::kFloat32) return 0;
  const int64_t in = onednn::matrix_size(like.weight.get_desc()).first;
  const onednn::Desc src = onednn::dense({num_rows, in}, matmul_types(like.precision).src);
  return cache_lines(static_cast<int64_t>(src.get_size()));
}

float* at(void* scratchpad, size_t offset) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(scratchpad) + offset);
}

}  // namespace

int64_t padded_rows(int64_t num_rows) {
  const int64_t step = num_rows % kPieceRows > kPieceRows / 2 ? 16 : 8;
  return (num_rows + step - 1) / step * step;
}

Linear::Piece::Piece(const dnnl::engine& engine, int64_t num_rows, int64_t count,
                     const PackedLinear& like)
    : num_rows(num_rows),
      count(count),
      source_bytes(internal::source_bytes(num_rows, like)),
      scale_bytes(like.precision == Precision::kInt8 ? cache_lines(4 * num_rows) : 0),
      matmul(make(engine, num_rows, like)) {}

Linear::Linear(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like)
    : in_(onednn::matrix_size(like.weight.get_desc()).first),
      out_(onednn::matrix_size(like.weight.get_desc()).second),
      precision_(like.precision) {
  if (num_rows >= kPieceRows) pieces_.emplace_back(engine, kPieceRows, num_rows / kPieceRows, like);
  if (num_rows % kPieceRows > 0) pieces_.emplace_back(engine, num_rows % kPieceRows, 1, like);
}

void Linear::run(const dnnl::stream& stream, const float* x, const PackedLinear& weights, float* y,
                 void* scratchpad, std::optional<Activation> activation) {
  for (Piece& piece : pieces_) {
    for (int64_t i = 0; i < piece.count; ++i) {
      run(piece, stream, x, weights, y, scratchpad, activation);
      x += piece.num_rows * in_;
      y += piece.num_rows * out_;
    }
  }
}

void Linear::run(Piece& piece, const dnnl::stream& stream, const float* x,
                 const PackedLinear& weights, float* y, void* scratchpad,
                 const std::optional<Activation>& activation) const {
  onednn::Primitive& matmul = piece.matmul;
  matmul.set(DNNL_ARG_SRC, source(piece, x, scratchpad));
  matmul.set(DNNL_ARG_WEIGHTS, weights.weight);
  matmul.set(DNNL_ARG_DST, y);
  if (precision_ != Precision::kInt8) matmul.set(DNNL_ARG_BIAS, weights.bias);
  matmul.run(stream, at(scratchpad, piece.source_bytes + piece.scale_bytes));
  if (precision_ == Precision::kInt8) {
    dequantize(piece, y, weights, at(scratchpad, piece.source_bytes), activation);
  } else if (activation) {
    activate(y, piece.num_rows, out_, *activation);
  }
}

void Linear::dequantize(const Piece& piece, float* y, const PackedLinear& weights,
                        const float* row_scales,
                        const std::optional<Activation>& activation) const {
  for_row_ranges(piece.num_rows, out_, [&](int64_t first, int64_t count) {
    kernels().dequantize(y + first * out_, count, out_,
                         {.row_scale = row_scales + first,
                          .column_scale = weights.column_scale,
                          .zero_point = weights.zero_point,
                          .bias = static_cast<const float*>(weights.bias.get_data_handle()),
                          .activation = activation ? &*activation : nullptr});
  });
}

// x, rounded to the precision.
const void* Linear::source(const Piece& piece, const float* x, void* scratchpad) const {
  if (precision_ == Precision::kFloat32) return x;
  const Kernels& convert = kernels();
  for_row_ranges(piece.num_rows, in_, [&](int64_t first, int64_t count) {
    const float* const from = x + first * in_;
    if (precision_ == Precision::kInt8) {
      convert.quantize(from, count, in_, int8_levels(),
                       static_cast<uint8_t*>(scratchpad) + first * in_,
                       at(scratchpad, piece.source_bytes) + first);
    } else if (onednn::has_fast_bfloat16()) {
      convert.to_bfloat16(from, count * in_, static_cast<uint16_t*>(scratchpad) + first * in_);
    } else {
      convert.round_to_bfloat16(from, count * in_, static_cast<float*>(scratchpad) + first * in_);
    }
  });
  return scratchpad;
}

size_t Linear::scratchpad_bytes() const {
  size_t most = 0;
  for (const Piece& piece : pieces_) {
    most = std::max(most, piece.source_bytes + piece.scale_bytes + piece.matmul.scratchpad_bytes());
  }
  return most;
}

void activate(float* x, int64_t num_rows, int64_t width, Activation activation) {
  for_row_ranges(num_rows, width, [&](int64_t first, int64_t count) {
    kernels().activate(x + first * width, count * width, activation);
  });
}

}  // namespace phasor::internal
