// What this machine is good at.

#include "phasor/precision.h"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/onednn.h"

namespace phasor {
namespace {

constexpr std::array<std::pair<std::string_view, Precision>, 4> kNames = {
    {{"f32", Precision::kFloat32},
     {"bf16", Precision::kBfloat16},
     {"int8", Precision::kInt8},
     {"auto", Precision::kAuto}}};

}  // namespace

std::string_view precision_name(Precision precision) {
  return kNames[static_cast<size_t>(precision)].first;
}

std::optional<Precision> parse_precision(std::string_view name) {
  const auto found = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found == kNames.end()) return {};
  return found->second;
}

#if defined(__x86_64__)
constexpr bool kFastInt8 = true;  // measured with SSE4.1, AVX2, AVX-512 with and without VNNI
#else
constexpr bool kFastInt8 = false;  // not measured
#endif

Precision fastest_precision() { return kFastInt8 ? Precision::kInt8 : Precision::kFloat32; }

std::string why_slow(Precision precision) {
  if (precision == Precision::kInt8 && !kFastInt8) {
    return "nobody has measured int8 on this kind of CPU; it may be slower than f32";
  }
  if (precision == Precision::kBfloat16 && !onednn::has_fast_bfloat16()) {
    return "this CPU does not multiply bfloat16 faster than float32: bf16 is emulated, about as "
           "fast as f32";
  }
  return {};
}

}  // namespace phasor
