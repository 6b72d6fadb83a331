#include "phasor/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "files/refuse.h"
#include "phasor/model.h"
#include "phasor/names.h"

namespace phasor {

using namespace internal;

namespace {

constexpr float kSteps = 255;
constexpr int64_t kMostWidth = int64_t{1} << 48;

bool is_bits(VectorType type) {
  return type == VectorType::kBinary || type == VectorType::kUbinary;
}
bool has_steps(VectorType type) { return type == VectorType::kInt8 || type == VectorType::kUint8; }

/// The number of vectors in `size` numbers or bytes, of which each has `each`.
int64_t count_vectors(int64_t size, int64_t each, int64_t width, VectorType type,
                      const ColumnRanges& ranges) {
  check_value(names<VectorType>(), static_cast<size_t>(type));
  if (width < 1 || size % each != 0)
    refuse<InvalidArgument>("{} are no whole vectors of {}", size, each);
  if (!has_steps(type)) return size / each;
  if (std::ssize(ranges.least) != width || std::ssize(ranges.most) != width) {
    refuse<InvalidArgument>("{} needs the range of each of {} columns; there are {} and {}",
                            to_string(type), width, ranges.least.size(), ranges.most.size());
  }
  for (int64_t c = 0; c < width; ++c) {
    const float least = ranges.least[c], most = ranges.most[c];
    if (least <= most && std::isfinite(most - least)) continue;
    refuse<InvalidArgument>("column {} has the range {} to {}", c, least, most);
  }
  return size / each;
}

float step_of(const ColumnRanges& ranges, int64_t column) {
  const float range = ranges.most[column] - ranges.least[column];
  const float step = range / kSteps;
  return step > 0 ? step : 1 / kSteps;
}

/// The nearest float16, of two equally near ones that whose last bit is 0; infinite from 65520 on.
uint16_t half_of(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number), size = bits & 0x7fffffff;
  const float magnitude = std::bit_cast<float>(size);
  uint32_t half = std::isnan(number) ? 0x7e00 : 0x7c00;
  if (magnitude < 0x1p-14F) {  // a multiple of 2^-24, which are the last bits of such a sum
    half = std::bit_cast<uint32_t>(magnitude + 0.5F) - std::bit_cast<uint32_t>(0.5F);
  } else if (magnitude < 65520) {
    constexpr uint32_t kRebias = (127 - 15) << 10;
    half = ((size + 0xfff + (size >> 13 & 1)) >> 13) - kRebias;
  }
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | half);
}

/// Whether the highest bit of a byte of bits is stored inverted: a byte less 128 is that in int8.
std::byte flip(VectorType type) { return std::byte(type == VectorType::kBinary ? 0x80 : 0); }

}  // namespace

void ColumnRanges::add(std::span<const float> vectors, int64_t width) {
  count_vectors(std::ssize(vectors), width, width, VectorType::kFloat32, {});
  const bool first = least.empty() && most.empty();
  if (!first && (std::ssize(least) != width || std::ssize(most) != width))
    refuse<InvalidArgument>("vectors of width {} and others of {}", width, least.size());
  for (; !vectors.empty(); vectors = vectors.subspan(width)) {
    if (least.empty() && most.empty()) {
      least.assign(vectors.begin(), vectors.begin() + width);
      most = least;
    }
    for (int64_t i = 0; i < width; ++i) {
      least[i] = std::min(least[i], vectors[i]);
      most[i] = std::max(most[i], vectors[i]);
    }
  }
}

int64_t vector_bytes(VectorType type, int64_t width) {
  if (width < 1 || width > kMostWidth)
    refuse<InvalidArgument>("vectors of width {}; it must be 1 to 2^48", width);
  if (is_bits(type)) return (width + 7) / 8;
  if (has_steps(type)) return width;
  return width * (type == VectorType::kFloat16 ? 2 : 4);
}

std::vector<std::byte> quantize(std::span<const float> vectors, int64_t width, VectorType type,
                                const ColumnRanges& ranges) {
  const int64_t count = count_vectors(std::ssize(vectors), width, width, type, ranges);
  const int64_t row = vector_bytes(type, width);
  std::vector<std::byte> bytes(count * row);
  for (int64_t i = 0; i < count; ++i) {
    const std::span<const float> from = vectors.subspan(i * width, width);
    std::byte* const to = bytes.data() + i * row;
    if (type == VectorType::kFloat32) std::memcpy(to, from.data(), row);
    for (int64_t c = 0; c < width && type == VectorType::kFloat16; ++c) {
      const uint16_t half = half_of(from[c]);
      if (std::isfinite(from[c]) && (half & 0x7fff) == 0x7c00)
        refuse<InvalidArgument>("a vector has the number {}, and float16's largest is 65504",
                                from[c]);
      std::memcpy(to + 2 * c, &half, sizeof half);
    }
    for (int64_t c = 0; c < width && has_steps(type); ++c) {  // in float32, as there
      if (!std::isfinite(from[c]))
        refuse<InvalidArgument>("a vector has the number {}, which has no step", from[c]);
      const float step = (from[c] - ranges.least[c]) / step_of(ranges, c);
      if (type == VectorType::kUint8)
        to[c] = std::byte(static_cast<uint8_t>(std::clamp(step, 0.0F, 255.0F)));
      else
        to[c] = std::byte(static_cast<int8_t>(std::clamp(step - 128, -128.0F, 127.0F)));
    }
    if (!is_bits(type)) continue;
    for (int64_t c = 0; c < width; ++c)
      if (from[c] > 0) to[c / 8] |= std::byte(0x80 >> c % 8);
    for (int64_t b = 0; b < row; ++b) to[b] ^= flip(type);
  }
  return bytes;
}

std::vector<float> dequantize(std::span<const std::byte> bytes, int64_t width, VectorType type,
                              const ColumnRanges& ranges) {
  const int64_t row = vector_bytes(type, width);
  const int64_t count = count_vectors(std::ssize(bytes), row, width, type, ranges);
  std::vector<float> vectors(count * width);
  for (int64_t i = 0; i < count; ++i) {
    const std::byte* const from = bytes.data() + i * row;
    float* const to = &vectors[i * width];
    if (type == VectorType::kFloat32) std::memcpy(to, from, row);
    if (type == VectorType::kFloat16)
      Tensor{.dtype = DType::kFloat16, .shape = {width}, .data = from}.copy_to(to, 0, width);
    for (int64_t c = 0; c < width && has_steps(type); ++c) {
      float step = static_cast<float>(from[c]) + 0.5F;
      if (type == VectorType::kInt8) {  // numbers were rounded to 0
        const auto number = static_cast<float>(static_cast<int8_t>(from[c]));
        step = number + (number > 0 ? 128.5F : number < 0 ? 127.5F : 128.0F);
      }
      to[c] = ranges.least[c] + step * ((ranges.most[c] - ranges.least[c]) / kSteps);
    }
    for (int64_t c = 0; c < width && is_bits(type); ++c) {
      const std::byte bits = from[c / 8] ^ flip(type);
      to[c] = (bits & std::byte(0x80 >> c % 8)) != std::byte(0) ? 1.0F : -1.0F;
    }
  }
  return vectors;
}

int64_t hamming_distance(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size())
    refuse<InvalidArgument>("vectors of {} and {} bytes", a.size(), b.size());
  int64_t distance = 0;
  size_t i = 0;
  for (uint64_t x = 0, y = 0; i + sizeof x <= a.size(); i += sizeof x) {
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    distance += std::popcount(x ^ y);
  }
  for (; i < a.size(); ++i)
    distance += std::popcount(static_cast<unsigned>(std::to_integer<uint8_t>(a[i] ^ b[i])));
  return distance;
}

}  // namespace phasor
