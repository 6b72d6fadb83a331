// Vectors in fewer bytes, by the formulas of sentence-transformers' quantize_embeddings().
#include "phasor/quantize.h"

#include <cmath>
#include <limits>

#include "tests/support/test.h"

namespace phasor {
namespace {

constexpr int64_t kVectors = 9;
constexpr VectorType kTypes[] = {VectorType::kFloat32, VectorType::kFloat16, VectorType::kInt8,
                                 VectorType::kUint8,   VectorType::kBinary,  VectorType::kUbinary};

int as_number(std::byte byte, bool has_sign) {
  const auto number = std::to_integer<uint8_t>(byte);
  return has_sign ? static_cast<int8_t>(number) : number;
}

// NumPy: (vectors − least) / ((most − least) / 255), less 128 for int8, rounded towards 0.
TEST(QuantizeTest, StepsAreThoseOfTheFormula) {
  constexpr int64_t kWidth = 37;
  const std::vector<float> vectors = draw(kVectors * kWidth, 3);
  ColumnRanges ranges;
  ranges.add(std::span(vectors).first(4 * kWidth), kWidth);
  ranges.add(std::span(vectors).subspan(4 * kWidth), kWidth);
  for (const VectorType type : {VectorType::kInt8, VectorType::kUint8}) {
    const bool has_sign = type == VectorType::kInt8;
    const std::vector<std::byte> bytes = quantize(vectors, kWidth, type, ranges);
    const std::vector<float> back = dequantize(bytes, kWidth, type, ranges);
    for (int64_t c = 0; c < kWidth; ++c) {
      std::vector<float> column;
      for (int64_t i = 0; i < kVectors; ++i) column.push_back(vectors[i * kWidth + c]);
      const auto [least, most] = std::ranges::minmax(column);
      EXPECT_EQ(ranges.least[c], least);
      EXPECT_EQ(ranges.most[c], most);
      const float step = (most - least) / 255.0F;
      for (int64_t i = 0; i < kVectors; ++i) {
        const float wanted = (column[i] - least) / step - (has_sign ? 128.0F : 0.0F);
        // A number at the end of a range may be a hair beyond it.
        const int number = as_number(bytes[i * kWidth + c], has_sign);
        EXPECT_EQ(number, std::min(static_cast<int>(wanted), has_sign ? 127 : 255));
        EXPECT_NEAR(back[i * kWidth + c], column[i],
                    (number == 0 && has_sign ? 1.001 : 0.501) * step);
      }
    }
  }
}

TEST(QuantizeTest, AColumnOfOneNumberStaysThatNumber) {
  const std::vector<float> vectors = {0.25F, 1, 0.25F, 2};
  ColumnRanges ranges;
  ranges.add(vectors, 2);
  for (const VectorType type : {VectorType::kInt8, VectorType::kUint8}) {
    const std::vector<float> back = dequantize(quantize(vectors, 2, type, ranges), 2, type, ranges);
    EXPECT_EQ(back[0], 0.25F);
    EXPECT_EQ(back[2], 0.25F);
  }
}

TEST(QuantizeTest, NumbersBeyondTheRangeGetItsEnds) {
  const ColumnRanges ranges = {.least = {-1, 2}, .most = {1, 2}};
  const auto bytes = [&](VectorType type) {
    const std::vector<std::byte> all =
        quantize(std::vector{-5.0F, 2.0F, 5.0F, 9.0F}, 2, type, ranges);
    std::vector<int> numbers;
    for (const std::byte byte : all) numbers.push_back(as_number(byte, type == VectorType::kInt8));
    return numbers;
  };
  EXPECT_EQ(bytes(VectorType::kInt8), (std::vector{-128, -128, 127, 127}));
  EXPECT_EQ(bytes(VectorType::kUint8), (std::vector{0, 0, 255, 255}));
}

// numpy.packbits(vectors > 0): 0 and NaN are not above 0.
TEST(QuantizeTest, BitsBeginWithTheHighest) {
  std::vector<float> vector(11, -1);
  vector[0] = vector[6] = vector[10] = 0.5F;
  vector[1] = 0;
  vector[2] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::byte> bits = quantize(vector, 11, VectorType::kUbinary);
  EXPECT_EQ(bits, (std::vector{std::byte(0b1000'0010), std::byte(0b0010'0000)}));
  const std::vector<std::byte> less = quantize(vector, 11, VectorType::kBinary);
  EXPECT_EQ(as_number(less[0], true), 0b1000'0010 - 128);
  EXPECT_EQ(as_number(less[1], true), 0b0010'0000 - 128);
  std::vector<float> signs(11, -1);
  signs[0] = signs[6] = signs[10] = 1;
  EXPECT_EQ(dequantize(bits, 11, VectorType::kUbinary), signs);
  EXPECT_EQ(dequantize(less, 11, VectorType::kBinary), signs);
}

TEST(QuantizeTest, EveryFloat16IsItself) {
  const auto type = VectorType::kFloat16;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::vector<std::byte> half = {std::byte(bits & 0xff), std::byte(bits >> 8)};
    const std::vector<float> number = dequantize(half, 1, type);
    const std::vector<std::byte> back = quantize(number, 1, type);
    if (std::isnan(number[0])) {
      ASSERT_TRUE(std::isnan(dequantize(back, 1, type)[0])) << bits;
    } else {
      ASSERT_EQ(back, half) << bits;
    }
  }
  // To the nearest, and of two to the even one: 1 + 2^-11 lies between 1 and 1 + 2^-10.
  const std::vector<float> between = {1 + 0x1p-11F, 1 + 3 * 0x1p-11F, 1 + 0x1.2p-11F, 65519};
  EXPECT_EQ(dequantize(quantize(between, 1, type), 1, type),
            (std::vector{1.0F, 1 + 0x1p-9F, 1 + 0x1p-10F, 65504.0F}));
  // The same below 2^-14, where neighbours are 2^-24 apart, and down to 0.
  const std::vector<float> small = {0x1p-25F,       -0x1.8p-24F,    0x1.1p-25F, 0x1.fffp-15F,
                                    -0x1.ffffp-15F, 0x1.00008p-14F, 1e-40F};
  EXPECT_EQ(dequantize(quantize(small, 1, type), 1, type),
            (std::vector{0.0F, -0x1p-23F, 0x1p-24F, 0x1p-14F, -0x1p-14F, 0x1p-14F, 0.0F}));
}

TEST(QuantizeTest, TheHammingDistanceCountsBits) {
  for (const int64_t size : {0, 1, 7, 8, 9, 40, 67}) {
    std::mt19937_64 random(size);
    std::vector<std::byte> a(size), b(size);
    int64_t want = 0;
    for (int64_t i = 0; i < size; ++i) {
      a[i] = std::byte(random() & 0xff), b[i] = std::byte(random() & 0xff);
      for (int bit = 0; bit < 8; ++bit)
        want += ((a[i] ^ b[i]) >> bit & std::byte(1)) != std::byte(0);
    }
    EXPECT_EQ(hamming_distance(a, b), want);
  }
  const std::vector<std::byte> one(1), two(2);
  expect_error<InvalidArgument>([&] { hamming_distance(one, two); }, {"1", "2"});
}

TEST(QuantizeTest, WhatDoesNotFitIsRefused) {
  const std::vector<float> five(5);
  const std::vector<std::byte> bytes(5);
  for (const VectorType type : kTypes) {
    expect_error<InvalidArgument>([&] { quantize(five, 2, type); }, {"5", "2"});
    expect_error<InvalidArgument>([&] { quantize(five, 0, type); }, {});
    if (vector_bytes(type, 13) > 1)
      expect_error<InvalidArgument>([&] { dequantize(bytes, 13, type); }, {"5"});
    EXPECT_TRUE(quantize({}, 3, type, {{0, 0, 0}, {0, 0, 0}}).empty());
  }
  expect_error<InvalidArgument>([&] { quantize(five, 5, VectorType::kInt8); }, {"int8", "5", "0"});
  expect_error<InvalidArgument>([&] { quantize(five, 5, static_cast<VectorType>(6)); }, {"6"});
  constexpr int64_t kWide = int64_t{1} << 62;
  expect_error<InvalidArgument>([&] { dequantize({}, kWide, VectorType::kFloat32); }, {});
  ColumnRanges ranges;
  ranges.add(five, 5);
  expect_error<InvalidArgument>([&] { ranges.add(five, 1); }, {"1", "5"});
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float number : {infinite, -infinite, std::nanf("")}) {
    const ColumnRanges one = {{0}, {1}};
    expect_error<InvalidArgument>(
        [&] {
          quantize({&number, 1}, 1, VectorType::kInt8, one);
        },
        {"no step"});
    for (const ColumnRanges& wrong : {ColumnRanges{{number}, {1}}, {{0}, {number}}, {{2}, {1}}})
      expect_error<InvalidArgument>([&] { dequantize(bytes, 1, VectorType::kUint8, wrong); },
                                    {"column 0"});
  }
  const float large = 65520;
  expect_error<InvalidArgument>(
      [&] {
        quantize({&large, 1}, 1, VectorType::kFloat16);
      },
      {"65520", "65504"});
}

}  // namespace
}  // namespace phasor
