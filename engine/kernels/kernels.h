// The loops that phasor implements itself: attention over a tile of queries, linear maps where
// oneDNN's are slower, norms, activations, quantization.
// Each is compiled for several instruction sets, and one set is chosen at run time.
//
// Rows are `stride` values apart. No kernel allocates or reads another thread's data.
#pragma once

#include <cstdint>

#include "phasor/config.h"
#include "phasor/precision.h"

namespace phasor::internal {

/// Converts a linear map's int8 result to float32: y[n, o] = f(row_scale[n] · column_scale[o] ·
/// (acc[n, o] − zero_point[n] · column_sum[o]) + bias[o]).
struct Dequantization {
  const float* row_scale;        // [N]
  const int32_t* zero_point;     // [N], of the inputs
  const float* column_scale;     // [out]
  const int32_t* column_sum;     // [out], of the weights
  const float* bias;             // [out]
  const Activation* activation;  // null: none
};

/// The products of attention, in one number format; sums are float32. Packed rows have room for
/// head_stride = packed_head_stride(…) floats. W is Kernels::tile_queries.
struct AttentionProducts {
  const char* name;          // "avx512"
  int64_t values_per_float;  // of packed rows: 2 of bfloat16

  /// Both pack the first head_dim values of rows `stride` apart. Packed values can be read from
  /// even rows only, and take an even number of rows.
  void (*pack_keys)(const float* rows, int64_t num_rows, int64_t stride, int64_t head_dim,
                    int64_t head_stride, float* packed);
  void (*pack_values)(const float* rows, int64_t num_rows, int64_t stride, int64_t head_dim,
                      int64_t head_stride, float* packed);
  /// tile[j, i] = scale · q_i · k_j, for num_queries ≤ W rows of q. `transposed` is scratch of
  /// [head_stride, W]; q is read up to the next multiple of W, past head_dim.
  void (*scores)(const float* q, int64_t q_stride, int64_t num_queries, const float* keys,
                 int64_t num_keys, int64_t head_dim, int64_t head_stride, float scale,
                 float* transposed, float* tile);
  /// z_i = inverse_sums[i] · Σ_j tile[j, i] · v_j. Overwrites the tile, which has room for the next
  /// multiple of W rows.
  void (*mix)(float* tile, const float* inverse_sums, int64_t num_queries, const float* values,
              int64_t num_keys, int64_t head_dim, int64_t head_stride, float* z, int64_t z_stride);
};

struct Kernels {
  const char* name;  // "avx512"
  /// The number of queries of a tile, which are the lanes of one vector: W below. A tile is
  /// [num_keys, W].
  int64_t tile_queries;

  AttentionProducts products;  // in float32
  /// tile[j, i] += row[i − j], for a row that can be read from 1 − num_keys to W − 1.
  void (*add_by_offset)(float* tile, int64_t num_keys, const float* row);
  /// tile[j, i] += of_queries[r, i] + of_keys[j / W, r, j % W], with r = rows[i − j] and both of
  /// row_count rows; a null pointer adds nothing. Key 0 of the tile is key first_key of of_keys.
  void (*add_by_row)(float* tile, int64_t num_keys, const int32_t* rows, const float* of_queries,
                     const float* of_keys, int64_t first_key, int64_t row_count);
  /// tile[j, i] = exp(tile[j, i] − max_j); multiplied by inverse_sums [W] it is the pattern.
  void (*softmax)(float* tile, int64_t num_keys, float* inverse_sums);

  /// Turns the pairs among the first `dims` columns of each head, in place: x_c = x_c·table[c] +
  /// x_d·table[dims + c], where d is the other column of c's pair (see RotaryConfig::interleaved).
  /// x has num_rows rows of num_heads heads, `stride` apart; table [num_rows, 2·dims].
  void (*rotate)(float* x, int64_t num_rows, int64_t stride, int64_t num_heads, int64_t head_dim,
                 const float* table, int64_t dims, bool interleaved);

  /// y[n, c] = Σ_k x[n, k] · w[k, c] + bias[c] for columns whose weights are in panels of 16:
  /// [num_columns / 16, in, 16], the last of them filled up; the bias can be read as far. bias and
  /// y begin with the first panel's first column; y's rows are `out` apart; x [num_rows, in]. The
  /// bits of a row do not depend on the other rows. Null where oneDNN's matmul is faster.
  void (*linear)(const float* x, int64_t num_rows, int64_t in, const void* panels,
                 int64_t num_columns, const float* bias, float* y, int64_t out);
  /// The same for weights in bfloat16, half the bytes to read: panels [num_columns / 16, in, 8] of
  /// 32 bits, column c in the upper half of number c and column c + 8 in its lower half.
  void (*linear_bfloat16)(const float* x, int64_t num_rows, int64_t in, const void* panels,
                          int64_t num_columns, const float* bias, float* y, int64_t out);
  /// The same in int8, for panels [num_columns / 16, in / 4, 16, 4], with the conversion to float32
  /// but not its activation. `how` begins with x's first row and the first panel's first column.
  void (*linear_int8)(const uint8_t* x, int64_t num_rows, int64_t in, const void* panels,
                      int64_t num_columns, const Dequantization& how, float* y, int64_t out);

  /// out = (x − mean) / √(var + eps) · weight + bias, row by row; `centred`: with the mean (a
  /// LayerNorm), without it an RMS norm. x += f first, if f is not null. All [num_rows, width].
  void (*norm)(const float* f, float* x, int64_t num_rows, int64_t width, const float* weight,
               const float* bias, bool centred, float eps, float* out);

  /// x += f and x *= f, element by element.
  void (*add)(const float* f, int64_t num_values, float* x);
  void (*multiply)(const float* f, int64_t num_values, float* x);

  /// x = f(x), element by element. `coarse`: with errors of up to 5e-5, which bfloat16 and int8 do
  /// not keep.
  void (*activate)(float* x, int64_t num_values, Activation activation, bool coarse);

  /// Rounds each row to whole numbers from 0, for its least value or 0, to `most`, for its largest
  /// or 0; a tie at both ends can make it most + 1. 0 has a number of its own, the zero point:
  /// x ≈ scale · (q − zero_point). x [num_rows, width] -> q, scales and zero_points [num_rows]. The
  /// scale of a row that is not finite is NaN or infinite.
  void (*quantize)(const float* x, int64_t num_rows, int64_t width, int32_t most, uint8_t* q,
                   float* scales, int32_t* zero_points);
  /// In place: int32 sums [num_rows, width] -> float32. The activation is the coarse one.
  void (*dequantize)(void* sums, int64_t num_rows, int64_t width, const Dequantization& how);
  /// Rounds to the nearest bfloat16, ties to even; the second keeps the format of float32.
  void (*to_bfloat16)(const float* x, int64_t num_values, uint16_t* out);
  void (*round_to_bfloat16)(const float* x, int64_t num_values, float* out);
};

inline constexpr int64_t kPanelColumns = 16;  // of Kernels::linear

/// The kernels for this machine and the instruction sets that oneDNN may use.
const Kernels& kernels();

/// Those for an encoder of this precision: in bfloat16 where it is asked for less than float32 and
/// the CPU is fast at it.
const AttentionProducts& attention_products(Precision precision);

/// The row length of packed keys and values in floats, a compile-time constant for usual head
/// widths.
int64_t packed_head_stride(const AttentionProducts& products, int64_t head_dim);

}  // namespace phasor::internal
