// Attention's products with AMX-BF16. The flags of CMakeLists.txt are those of AVX512_BF16, which
// packs; what AMX adds is assembly, because compilers want literal numbers of tiles.

#if defined(__AVX512BF16__)

#include "engine/kernels_amx.inc"

namespace phasor::internal {
namespace {

/// The CPU's tiles. Their configuration is the thread's, so the former one comes back: oneDNN
/// relies on its own.
class Tiles {
 public:
  explicit Tiles(const TileShapes& shapes) {
    asm volatile("sttilecfg %0" : "=m"(former_));
    asm volatile("ldtilecfg %0" : : "m"(shapes));
  }
  ~Tiles() { asm volatile("ldtilecfg %0" : : "m"(former_)); }
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

}  // namespace

extern const AttentionProducts kAmxProducts;
const AttentionProducts kAmxProducts = {.name = "avx512_amx",
                                        .values_per_float = 2,
                                        .pack_keys = pack_keys,
                                        .pack_values = pack_values,
                                        .scores = tile_scores<Tiles>,
                                        .mix = tile_mix<Tiles>};

}  // namespace phasor::internal

#endif
