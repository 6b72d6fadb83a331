// A part of a linear map is one matmul and one pass over its result, which is still in the cache:
// in int8 the conversion to float32, then the activation. One thread runs a oneDNN matmul over all
// columns, which writes to y; several threads run some columns each in memory of their own, because
// oneDNN's fast matmuls write no columns of a wider matrix.

#include "engine/linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/kernels/kernels.h"

namespace phasor::internal {
namespace {

constexpr int64_t kPieceRows = 256;  // twice as many are no faster

size_t cache_lines(size_t bytes) {
  constexpr size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

bool is_coarse(Precision precision) { return precision != Precision::kFloat32; }

/// How many columns a part has; the last of several panels may have fewer.
int64_t part_columns(const dnnl::engine& engine, const PackedLinear& like, int threads) {
  const int64_t share = like.out / threads;
  if (like.panels != nullptr) {
    constexpr int64_t kMost = 128;  // whose results stay in the cache
    return std::clamp(share / 2 / kPanelColumns * kPanelColumns, kPanelColumns, kMost);
  }
  constexpr int64_t kUnit = 64;  // oneDNN's kernels take so many at a time
  if (threads == 1 || like.out % kUnit != 0) return like.out;
  // A part for each thread and no more: to start a matmul takes a microsecond.
  int64_t columns = kUnit;
  for (int64_t more = kUnit; more <= share; more += kUnit) {
    if (like.out % more == 0) columns = more;
  }
  const onednn::Desc part =
      onednn::preferred_weights(engine, like.in, columns, matmul_types(like.precision));
  return onednn::is_part(part, like.weight.get_desc()) ? columns : like.out;
}

/// How many rows a part of all columns has: threads share rows where the packed weights cannot be
/// divided, because their sizes are not round.
int64_t part_rows(int64_t num_rows, int threads) {
  return std::min(kPieceRows, padded_rows((num_rows + threads - 1) / threads));
}

onednn::Primitive make_matmul(const dnnl::engine& engine, int64_t num_rows, int64_t columns,
                              const PackedLinear& like) {
  const onednn::MatmulTypes types = matmul_types(like.precision);
  const onednn::Desc src = onednn::dense({num_rows, like.in}, types.src);
  const onednn::Desc dst = onednn::dense({num_rows, columns}, types.dst);
  const onednn::Desc weight = columns == like.out
                                  ? like.weight.get_desc()
                                  : onednn::preferred_weights(engine, like.in, columns, types);
  if (like.precision == Precision::kInt8) return onednn::make_matmul(engine, src, weight, {}, dst);
  return onednn::make_matmul(engine, src, weight, onednn::dense({1, columns}), dst);
}

}  // namespace

int64_t padded_rows(int64_t num_rows) {
  const int64_t step = num_rows % kPieceRows > kPieceRows / 2 ? 16 : 8;
  return (num_rows + step - 1) / step * step;
}

struct Linear::Source {
  const std::byte* rows;
  size_t row_bytes;
  float* scales;         // of the rows; int8 only
  int32_t* zero_points;  // the same
};

struct Linear::Part {
  int64_t first_row, num_rows;
  int64_t first_column, num_columns;
  float* y;  // its first value
};

Linear::Linear(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like, int threads)
    : num_rows_(num_rows),
      in_(like.in),
      out_(like.out),
      precision_(like.precision),
      value_bytes_(dnnl::memory::data_type_size(matmul_types(like.precision).src)),
      columns_(part_columns(engine, like, threads)),
      rows_(columns_ < out_ ? kPieceRows : part_rows(num_rows, threads)) {
  if (precision_ != Precision::kFloat32) {
    source_bytes_ =
        cache_lines(num_rows * in_ * value_bytes_) + 2 * cache_lines(num_rows * sizeof(float));
  }
  if (num_rows >= rows_) add_piece(engine, rows_, like, threads);
  if (num_rows % rows_ > 0) add_piece(engine, num_rows % rows_, like, threads);
}

void Linear::add_piece(const dnnl::engine& engine, int64_t num_rows, const PackedLinear& like,
                       int threads) {
  Piece& piece = pieces_.emplace_back(Piece{num_rows, {}});
  if (like.panels != nullptr) return;
  piece.matmuls.push_back(make_matmul(engine, num_rows, columns_, like));
  while (std::ssize(piece.matmuls) < threads) {
    piece.matmuls.push_back(piece.matmuls.front().with_own_arguments());
  }
  if (columns_ < out_) {
    values_bytes_ = std::max(values_bytes_, cache_lines(num_rows * columns_ * sizeof(float)));
  }
  const size_t own = cache_lines(piece.matmuls.front().scratchpad_bytes());
  matmul_bytes_ = std::max(matmul_bytes_, own);
}

void Linear::run(const Threads& threads, const float* x, const PackedLinear& weights, float* y,
                 void* scratchpad, std::optional<Activation> activation) {
  const Source from = source(threads, x, scratchpad);
  const int64_t row_parts = (num_rows_ + rows_ - 1) / rows_;
  threads.run(row_parts * ((out_ + columns_ - 1) / columns_), [&](int64_t task, int thread) {
    const int64_t row = task % row_parts * rows_, column = task / row_parts * columns_;
    const Part part = {.first_row = row,
                       .num_rows = std::min(rows_, num_rows_ - row),
                       .first_column = column,
                       .num_columns = std::min(columns_, out_ - column),
                       .y = y + row * out_ + column};
    multiply(from, weights, part, thread,
             static_cast<std::byte*>(scratchpad) + source_bytes_ +
                 thread * (values_bytes_ + matmul_bytes_),
             activation ? &*activation : nullptr);
  });
}

void Linear::multiply(const Source& x, const PackedLinear& weights, const Part& part, int thread,
                      std::byte* scratchpad, const Activation* activation) {
  const std::byte* const rows = x.rows + part.first_row * x.row_bytes;
  const auto* const bias =
      static_cast<const float*>(weights.bias.get_data_handle()) + part.first_column;
  if (weights.panels != nullptr) {
    const std::byte* const panels =
        weights.panels + part.first_column * in_ * panel_value_bytes(precision_);
    if (precision_ == Precision::kInt8) {
      kernels().linear_int8(reinterpret_cast<const uint8_t*>(rows), part.num_rows, in_, panels,
                            part.num_columns, dequantization(x, weights, part), part.y, out_);
    } else {
      const auto run =
          precision_ == Precision::kBfloat16 ? kernels().linear_bfloat16 : kernels().linear;
      run(reinterpret_cast<const float*>(rows), part.num_rows, in_, panels, part.num_columns, bias,
          part.y, out_);
    }
    if (activation == nullptr) return;
    for (int64_t n = 0; n < part.num_rows; ++n) {
      kernels().activate(part.y + n * out_, part.num_columns, *activation, is_coarse(precision_));
    }
    return;
  }
  const bool whole = columns_ == out_;
  float* const values = whole ? part.y : reinterpret_cast<float*>(scratchpad);
  const bool first = part.num_rows == pieces_.front().num_rows;
  onednn::Primitive& matmul = (first ? pieces_.front() : pieces_.back()).matmuls[thread];
  matmul.set(DNNL_ARG_SRC, rows);
  if (whole) {
    matmul.set(DNNL_ARG_WEIGHTS, weights.weight);
  } else {
    const auto* const packed = static_cast<const std::byte*>(weights.weight.get_data_handle());
    matmul.set(DNNL_ARG_WEIGHTS, packed + part.first_column * in_ * value_bytes_);
  }
  matmul.set(DNNL_ARG_DST, values);
  if (precision_ != Precision::kInt8) matmul.set(DNNL_ARG_BIAS, bias);
  matmul.run(scratchpad + values_bytes_);
  finish(x, weights, part, values, activation);
}

Dequantization Linear::dequantization(const Source& x, const PackedLinear& weights,
                                      const Part& part) const {
  const auto* const bias = static_cast<const float*>(weights.bias.get_data_handle());
  return {.row_scale = x.scales + part.first_row,
          .zero_point = x.zero_points + part.first_row,
          .column_scale = weights.column_scale + part.first_column,
          .column_sum = weights.column_sum + part.first_column,
          .bias = bias + part.first_column,
          .activation = nullptr};
}

void Linear::finish(const Source& x, const PackedLinear& weights, const Part& part, float* values,
                    const Activation* activation) const {
  if (precision_ == Precision::kInt8) {
    Dequantization how = dequantization(x, weights, part);
    how.activation = activation;
    kernels().dequantize(values, part.num_rows, columns_, how);
  } else if (activation != nullptr) {
    kernels().activate(values, part.num_rows * columns_, *activation, is_coarse(precision_));
  }
  if (values == part.y) return;
  for (int64_t n = 0; n < part.num_rows; ++n) {
    std::copy_n(values + n * columns_, columns_, part.y + n * out_);
  }
}

Linear::Source Linear::source(const Threads& threads, const float* x, void* scratchpad) const {
  const size_t row_bytes = in_ * value_bytes_;
  if (precision_ == Precision::kFloat32) {
    return {reinterpret_cast<const std::byte*>(x), row_bytes, nullptr, nullptr};
  }
  auto* const rows = static_cast<std::byte*>(scratchpad);
  std::byte* const after_rows = rows + cache_lines(num_rows_ * row_bytes);
  auto* const scales = reinterpret_cast<float*>(after_rows);
  auto* const zero_points =
      reinterpret_cast<int32_t*>(after_rows + cache_lines(num_rows_ * sizeof(float)));
  threads.run_rows(num_rows_, in_, [&](int64_t first, int64_t count) {
    const float* const from = x + first * in_;
    std::byte* const to = rows + first * row_bytes;
    if (precision_ == Precision::kInt8) {
      kernels().quantize(from, count, in_, most_int8_input(), reinterpret_cast<uint8_t*>(to),
                         scales + first, zero_points + first);
    } else if (value_bytes_ == sizeof(uint16_t)) {
      kernels().to_bfloat16(from, count * in_, reinterpret_cast<uint16_t*>(to));
    } else {
      kernels().round_to_bfloat16(from, count * in_, reinterpret_cast<float*>(to));
    }
  });
  return {rows, row_bytes, scales, zero_points};
}

std::string Linear::impl_info() const {
  const std::vector<onednn::Primitive>& matmuls = pieces_.front().matmuls;
  return matmuls.empty() ? fmt::format("panels:{}", kernels().name) : matmuls.front().impl_info();
}

void activate(const Threads& threads, float* x, int64_t num_rows, int64_t width,
              Activation activation, Precision precision) {
  threads.run_rows(num_rows, width, [&](int64_t first, int64_t count) {
    kernels().activate(x + first * width, count * width, activation, is_coarse(precision));
  });
}

}  // namespace phasor::internal
