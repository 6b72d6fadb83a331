// Attention's products of AMX with a tile unit in plain C++, for machines without AMX. It traps
// where the instructions would fault.

#if defined(__AVX512BF16__)

#include "engine/kernels_amx.inc"

namespace phasor::internal {
namespace {

class EmulatedTiles {
 public:
  explicit EmulatedTiles(const TileShapes& shapes) : shapes_(shapes) {
    for (int tile = 0; tile < 8; ++tile) {
      must(shapes.rows[tile] <= 16 && shapes.row_bytes[tile] <= kTileBytes);
      must((shapes.rows[tile] == 0) == (shapes.row_bytes[tile] == 0));
    }
  }

  template <int kTile>
  void zero() {
    __builtin_memset(values_[kTile], 0, sizeof values_[kTile]);
  }
  template <int kTile>
  void load(const float* from, int64_t stride) {
    zero<kTile>();
    must(shapes_.rows[kTile] > 0);
    for (int r = 0; r < shapes_.rows[kTile]; ++r) {
      __builtin_memcpy(values_[kTile][r], reinterpret_cast<const char*>(from) + r * stride,
                       shapes_.row_bytes[kTile]);
    }
  }
  template <int kTile>
  void store(float* to, int64_t stride) {
    must(shapes_.rows[kTile] > 0);
    for (int r = 0; r < shapes_.rows[kTile]; ++r) {
      __builtin_memcpy(reinterpret_cast<char*>(to) + r * stride, values_[kTile][r],
                       shapes_.row_bytes[kTile]);
    }
  }
  template <int kSum, int kA, int kB>
  void dot() {
    must(kSum != kA && kA != kB && kSum != kB);
    must(shapes_.rows[kSum] == shapes_.rows[kA] && shapes_.rows[kSum] > 0);
    must(shapes_.row_bytes[kSum] == shapes_.row_bytes[kB]);
    must(shapes_.row_bytes[kA] == 4 * shapes_.rows[kB]);
    for (int m = 0; m < shapes_.rows[kSum]; ++m) {
      for (int n = 0; n < shapes_.row_bytes[kSum] / 4; ++n) {
        for (int k = 0; k < shapes_.rows[kB]; ++k) {
          const uint32_t a = values_[kA][m][k], b = values_[kB][k][n];
          const auto lower = [](uint32_t pair) { return bits_as<float>(pair << 16); };
          const auto upper = [](uint32_t pair) { return bits_as<float>(pair & 0xffff0000); };
          const float sum = bits_as<float>(values_[kSum][m][n]);
          values_[kSum][m][n] = bits_as<uint32_t>(sum + lower(a) * lower(b) + upper(a) * upper(b));
        }
      }
    }
  }

 private:
  static void must(bool holds) {
    if (!holds) __builtin_trap();
  }

  TileShapes shapes_;
  uint32_t values_[8][16][16] = {};
};

}  // namespace

extern const AttentionProducts kEmulatedAmxProducts;
const AttentionProducts kEmulatedAmxProducts = {.name = "emulated_amx",
                                                .values_per_float = 2,
                                                .pack_keys = pack_keys,
                                                .pack_values = pack_values,
                                                .scores = tile_scores<EmulatedTiles>,
                                                .mix = tile_mix<EmulatedTiles>};

}  // namespace phasor::internal

#endif
