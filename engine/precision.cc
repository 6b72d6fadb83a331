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

Precision fastest_precision() {
  return onednn::has_int8_dot_products() ? Precision::kInt8 : Precision::kFloat32;
}

std::string why_slow(Precision precision) {
  if (precision == Precision::kInt8 && !onednn::has_int8_dot_products()) {
    return "this CPU has no int8 dot products (VNNI): int8 is not faster than f32 here, and its "
           "activations have 7 bits";
  }
  if (precision == Precision::kBfloat16 && !onednn::has_bfloat16()) {
    return "this CPU has no bfloat16 instructions: bf16 is emulated, slower than f32";
  }
  if (precision == Precision::kBfloat16 && !onednn::has_fast_bfloat16()) {
    return "this CPU's bfloat16 instructions are no faster than f32 (it has no AMX)";
  }
  return {};
}

}  // namespace phasor
