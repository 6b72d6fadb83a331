// Attention's products in AMX's tiles: of 16 keys with 16 queries, 32 columns at a time, and of 16
// queries with 16 columns, 32 keys at a time. They read what bfloat16.inc packs. The flags
// of CMakeLists.txt are those of AVX512_BF16, which packs; what AMX adds is assembly, because
// compilers want literal numbers of tiles.

#if defined(__AVX512BF16__) && defined(__x86_64__)

#include <utility>

#include "engine/kernels/bfloat16.inc"

namespace phasor::internal {
namespace {

constexpr int kTileBytes = 64;  // of a row

/// The instructions' configuration: the shapes of eight tiles.
struct TileShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  /// A tile without rows or columns is configured as one without either.
  void set(int tile, int64_t num_rows, int64_t bytes) {
    rows[tile] = static_cast<uint8_t>(bytes > 0 ? num_rows : 0);
    row_bytes[tile] = static_cast<uint16_t>(num_rows > 0 ? bytes : 0);
  }
};
static_assert(sizeof(TileShapes) == 64);

TileShapes full_tiles() {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) shapes.set(tile, 16, kTileBytes);
  return shapes;
}

/// The CPU's tiles. Their configuration is the thread's, so the former one comes back: oneDNN
/// relies on its own.
class Tiles {
 public:
  explicit Tiles(const TileShapes& shapes) {
    asm volatile("sttilecfg %0" : "=m"(former_));
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
  ~Tiles() {
    if (former_.palette == 0) {  // the initial state, which tilerelease restores sooner
      asm volatile("tilerelease");
    } else {
      asm volatile("ldtilecfg %0" : : "m"(former_));
    }
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  template <int kTile>
  PHASOR_INLINE void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  /// Rows `stride` bytes apart.
  template <int kTile>
  PHASOR_INLINE void load(const float* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  PHASOR_INLINE void store(float* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(kTile) : "memory");
  }
  /// sum[m, n] += Σ_k a[m, k] · b[k, n], over pairs k of bfloat16.
  template <int kSum, int kA, int kB>
  PHASOR_INLINE void dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kA), "i"(kB));
  }

 private:
  TileShapes former_;
};

/// Scores of as many blocks of keys as there are sums; the tile unit holds keys in kKeys.
template <int kKeys, int... kSums>
PHASOR_INLINE void score_blocks(Tiles& tiles, const float* keys, int64_t stride,
                                const float* queries, float* tile) {
  constexpr int kQueries = 5;
  (tiles.zero<kSums>(), ...);
  for (int64_t p = 0; p < stride; p += W) {
    tiles.load<kQueries>(queries + W * p, kTileBytes);
    const auto add = [&]<int kSum>(std::integral_constant<int, kSum>, int64_t block)
        __attribute__((always_inline)) {
      tiles.load<kKeys>(keys + W * block * stride + p, 4 * stride);
      tiles.dot<kSum, kKeys, kQueries>();
    };
    int64_t block = 0;
    (add(std::integral_constant<int, kSums>(), block++), ...);
  }
  int64_t block = 0;
  (tiles.store<kSums>(tile + W * W * block++, kTileBytes), ...);
}

void tile_scores(const float* q, int64_t q_stride, int64_t num_queries, const float* keys,
                 int64_t num_keys, int64_t head_dim, int64_t head_stride, float scale,
                 float* transposed, float* tile) {
  pack_queries(q, q_stride, num_queries, head_dim, scale, transposed);
  const int64_t rest = num_keys % W;
  TileShapes shapes = full_tiles();
  shapes.set(6, rest, kTileBytes);
  shapes.set(7, rest, kTileBytes);
  Tiles tiles(shapes);
  int64_t j = 0;
  for (; j + 4 * W <= num_keys; j += 4 * W) {
    score_blocks<4, 0, 1, 2, 3>(tiles, keys + j * head_stride, head_stride, transposed,
                                tile + W * j);
  }
  for (; j + W <= num_keys; j += W) {
    score_blocks<4, 0>(tiles, keys + j * head_stride, head_stride, transposed, tile + W * j);
  }
  if (rest > 0) {
    score_blocks<7, 6>(tiles, keys + j * head_stride, head_stride, transposed, tile + W * j);
  }
}

/// In place: [num_keys, W] -> pairs of keys, [⌈num_keys / 32⌉, W, 16].
PHASOR_INLINE void pack_shares(float* tile, int64_t num_keys) {
  const auto row = [&](int64_t key) __attribute__((always_inline)) {
    return key < num_keys ? _mm512_loadu_ps(tile + W * key) : _mm512_setzero_ps();
  };
  for (int64_t j = 0; j < num_keys; j += 2 * W) {
    Vector pairs[W];
    PHASOR_UNROLL
    for (int p = 0; p < W; ++p) {
      pairs[p] = bits_as<Vector>(interleaved(row(j + 2 * p), row(j + 2 * p + 1)));
    }
    transpose(pairs);
    PHASOR_UNROLL
    for (int i = 0; i < W; ++i) store(tile + W * (j / 2 + i), pairs[i]);
  }
}

/// Columns of z, as many blocks as there are sums.
template <int... kSums>
PHASOR_INLINE void mix_columns(Tiles& tiles, const float* shares, const float* inverse_sums,
                               int64_t num_queries, const float* values, int64_t num_keys,
                               int64_t stride, int64_t num_columns, float* z, int64_t z_stride) {
  const auto add = [&]<int kShares, int kValues>(std::integer_sequence<int, kShares, kValues>,
                                                 int64_t j) __attribute__((always_inline)) {
    tiles.load<kShares>(shares + W * j / 2, kTileBytes);
    ((tiles.load<kValues>(values + j * stride + W * kSums, 8 * stride),
      tiles.dot<kSums, kShares, kValues>()),
     ...);
  };
  (tiles.zero<kSums>(), ...);
  int64_t j = 0;
  for (; j + 2 * W <= num_keys; j += 2 * W) add(std::integer_sequence<int, 4, 5>(), j);
  if (j < num_keys) add(std::integer_sequence<int, 6, 7>(), j);
  alignas(kTileBytes) float sums[W][W];
  const auto finish = [&](int64_t first) __attribute__((always_inline)) {
    for (int64_t i = 0; i < num_queries; ++i) {
      store_some(z + i * z_stride + first, load(sums[i]) * inverse_sums[i], num_columns - first);
    }
  };
  ((tiles.store<kSums>(sums[0], kTileBytes), finish(W * kSums)), ...);
}

void tile_mix(float* tile, const float* inverse_sums, int64_t num_queries, const float* values,
              int64_t num_keys, int64_t head_dim, int64_t head_stride, float* z, int64_t z_stride) {
  pack_shares(tile, num_keys);
  const int64_t rest = (num_keys % (2 * W) + 1) / 2;  // pairs
  TileShapes shapes = full_tiles();
  shapes.set(6, W, 4 * rest);
  shapes.set(7, rest, kTileBytes);
  Tiles tiles(shapes);
  const auto mix = [&]<int... kSums>(std::integer_sequence<int, kSums...>, int64_t d) {
    mix_columns<kSums...>(tiles, tile, inverse_sums, num_queries, values + d, num_keys, head_stride,
                          head_dim - d, z + d, z_stride);
  };
  int64_t d = 0;
  for (; head_dim - d > 2 * W; d += 4 * W) mix(std::make_integer_sequence<int, 4>(), d);
  if (head_dim - d > W) {
    mix(std::make_integer_sequence<int, 2>(), d);
  } else if (head_dim > d) {
    mix(std::make_integer_sequence<int, 1>(), d);
  }
}

}  // namespace

extern const AttentionProducts kAmxProducts;
const AttentionProducts kAmxProducts = {.name = "avx512_amx",
                                        .values_per_float = 2,
                                        .pack_keys = pack_keys,
                                        .pack_values = pack_values,
                                        .scores = tile_scores,
                                        .mix = tile_mix};

}  // namespace phasor::internal

#endif
