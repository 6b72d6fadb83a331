// The conversion of tensors to float32.

#include <bit>
#include <cstring>

#include "files/refuse.h"
#include "phasor/model.h"

namespace phasor {

using namespace internal;

namespace {

static_assert(std::endian::native == std::endian::little,
              "safetensors are little-endian and are read in place");

// Masks instead of branches, so that the loops below become vector code.
float float_of_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;  // exponent (5 bits, bias 15) and mantissa (10 bits)
  const uint32_t rebias = (127u - 15u) << 23;
  const uint32_t number = (rest << 13) + rebias + (rest >= 0x7c00u ? rebias : 0);  // or inf, NaN
  // Below 0x400 the number is rest · 2^−24, which int-to-float conversion computes exactly.
  const float subnormal = static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f;
  const uint32_t is_subnormal = rest < 0x400u ? ~0u : 0;
  const uint32_t bits =
      (std::bit_cast<uint32_t>(subnormal) & is_subnormal) | (number & ~is_subnormal);
  return std::bit_cast<float>(sign | bits);
}

float float_of_bfloat16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

template <typename Number>
float float_of(Number value) {
  return static_cast<float>(value);
}

template <typename Stored, float (*Convert)(Stored)>
void convert(const std::byte* source, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, source + i * sizeof stored, sizeof stored);  // may be unaligned
    out[i] = Convert(stored);
  }
}

int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

}  // namespace

int64_t Tensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t Tensor::num_bytes() const { return present() ? num_elements() * bytes_of(dtype) : 0; }

void Tensor::copy_to(float* out, int64_t first, int64_t count) const {
  if (first < 0 || count < 0 || first > num_elements() - count) {
    refuse<InvalidArgument>("elements {} to {} of a tensor that has {}", first, first + count,
                            present() ? num_elements() : 0);
  }
  if (count == 0) return;
  if (!present()) throw InvalidArgument("elements of an absent tensor");
  const std::byte* const source = data + bytes_of(dtype) * first;
  switch (dtype) {
    case DType::kFloat32:
      std::memcpy(out, source, sizeof(float) * static_cast<size_t>(count));
      return;
    case DType::kFloat16:
      return convert<uint16_t, float_of_half>(source, out, count);
    case DType::kBFloat16:
      return convert<uint16_t, float_of_bfloat16>(source, out, count);
    case DType::kFloat64:
      return convert<double, float_of<double>>(source, out, count);
  }
}

std::vector<float> Tensor::to_float() const {
  if (!present()) return {};
  std::vector<float> values(num_elements());
  copy_to(values.data(), 0, num_elements());
  return values;
}

}  // namespace phasor
