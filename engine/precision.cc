// The fastest precision on this machine.

#include "phasor/precision.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"

namespace phasor {
using namespace internal;

#if defined(__x86_64__)
constexpr bool kFastInt8 = true;  // measured with SSE4.1, AVX2, AVX-512 with and without VNNI
#else
constexpr bool kFastInt8 = false;  // not measured
#endif

Precision fastest_precision() { return kFastInt8 ? Precision::kInt8 : Precision::kFloat32; }

// By `./dev bench --shape 1x16,1x128,32x32,32x128,8x512` on one thread (Zen 4: two), and on STS-B's
// sentences.
std::span<const PrecisionGain> precision_gains() {
#if defined(__x86_64__)
  using enum Precision;
  static constexpr PrecisionGain kZen4[] = {{kBfloat16, 1.9, 0.99999}, {kInt8, 3.3, 0.999}};
  static constexpr PrecisionGain kVnni[] = {{kInt8, 2.9, 0.999}};
  static constexpr PrecisionGain kAvx2[] = {{kInt8, 1.7, 0.996}};
  if (onednn::may_use(dnnl::cpu_isa::avx512_core_amx)) return {};
  if (onednn::has_fast_bfloat16_vectors()) return kZen4;
  if (onednn::may_use(dnnl::cpu_isa::avx512_core_vnni)) return kVnni;
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni) || onednn::may_use(dnnl::cpu_isa::avx512_core)) {
    return {};
  }
  if (onednn::may_use(dnnl::cpu_isa::avx2)) return kAvx2;
#endif
  return {};
}

std::string faster_than_float32() {
  std::vector<std::string> each;
  for (const PrecisionGain& gain : precision_gains()) {
    each.push_back(
        fmt::format("{} makes {} times as many vectors a second as f32 (mean cosine "
                    "with f32's {})",
                    to_string(gain.precision), gain.speed, gain.mean_cosine));
  }
  if (each.empty()) return {};
  return fmt::format("measured with a MiniLM on a CPU like this, {}", fmt::join(each, ", "));
}

std::string why_slow(Precision precision) {
  if (precision == Precision::kInt8 && !kFastInt8) {
    return "nobody has measured int8 on this kind of CPU; it may be slower than f32";
  }
  if (precision == Precision::kBfloat16 && !onednn::has_fast_bfloat16()) {
    if (kernels().linear_bfloat16 != nullptr && onednn::may_use(dnnl::cpu_isa::avx2)) {
      return "this CPU does not multiply bfloat16: batches are about as fast as with f32, "
             "and one short text through a large model is faster: half the bytes of weights are "
             "read";
    }
    return "this CPU does not multiply bfloat16 faster than float32: bf16 is emulated, about as "
           "fast as f32";
  }
  return {};
}

}  // namespace phasor
