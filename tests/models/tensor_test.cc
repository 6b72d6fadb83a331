// Every float16 and bfloat16 there is, against the formula of the standard.
#include "tests/support/test.h"

namespace phasor {
namespace {

/// IEEE 754: (−1)^sign · mantissa · 2^exponent, from the fields, by ldexp.
double value_of(uint16_t bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  const int implied = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(mantissa + implied, std::max(exponent, 1) - bias - mantissa_bits);
}

void expect_all_values(DType dtype, int exponent_bits) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const Tensor tensor{
      .dtype = dtype, .shape = {65536}, .data = reinterpret_cast<const std::byte*>(all.data())};
  const std::vector<float> floats = tensor.to_float();
  ASSERT_EQ(floats.size(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const double expected = value_of(all[i], exponent_bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(floats[i])) << i;
    } else {
      EXPECT_EQ(std::bit_cast<uint32_t>(floats[i]),
                std::bit_cast<uint32_t>(static_cast<float>(expected)))
          << i << ": " << floats[i] << " is not " << expected;
    }
  }
}

TEST(TensorTest, EveryFloat16IsConvertedExactly) { expect_all_values(DType::kFloat16, 5); }
TEST(TensorTest, EveryBFloat16IsConvertedExactly) { expect_all_values(DType::kBFloat16, 8); }

TEST(TensorTest, AFloat64BecomesTheNearestFloat32) {
  const float most = std::numeric_limits<float>::max(), least = 0x1p-149f, inf = INFINITY;
  // Ties go to even, as 1 + 0x1p-24.
  const std::vector<std::pair<double, float>> all = {{0.1, 0.1f},
                                                     {-0.0, -0.0f},
                                                     {1 + 0x1p-24, 1},
                                                     {1 + 0x3p-24, 1 + 0x1p-22f},
                                                     {1 + 0x1p-24 + 0x1p-50, 1 + 0x1p-23f},
                                                     {0x1p-149, least},
                                                     {0x1.8p-150, least},
                                                     {0x1p-150, 0},
                                                     {double{most}, most},
                                                     {0x1.ffffffp127 - 0x1p90, most},
                                                     {0x1.ffffffp127, inf},
                                                     {-1e300, -inf},
                                                     {NAN, NAN}};
  std::vector<std::byte> bytes(8 * all.size() + 1);  // unaligned
  for (size_t i = 0; i < all.size(); ++i) {
    std::memcpy(bytes.data() + 1 + 8 * i, &all[i].first, 8);
  }
  const Tensor tensor{
      .dtype = DType::kFloat64, .shape = {std::ssize(all)}, .data = bytes.data() + 1};
  EXPECT_EQ(tensor.num_bytes(), 8 * std::ssize(all));
  const std::vector<float> floats = tensor.to_float();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(floats[i]), std::bit_cast<uint32_t>(all[i].second)) << i;
  }
  EXPECT_TRUE(std::isnan(floats.back()));
}

TEST(TensorTest, CopiesOnlyTheElementsAskedFor) {
  const std::vector<uint16_t> halves = {0x3c00, 0x4000, 0x4200, 0x4400};  // 1, 2, 3, 4
  const Tensor tensor{.dtype = DType::kFloat16,
                      .shape = {4},
                      .data = reinterpret_cast<const std::byte*>(halves.data())};
  std::vector<float> out(3, -1.0f);
  tensor.copy_to(out.data(), 1, 2);
  EXPECT_EQ(out, (std::vector<float>{2.0f, 3.0f, -1.0f}));
}

TEST(TensorTest, ElementsBeyondTheEndAreRefused) {
  const std::vector<float> values = {1.0f, 2.0f};
  const Tensor tensor{.shape = {2}, .data = reinterpret_cast<const std::byte*>(values.data())};
  std::vector<float> out(4);
  expect_error<InvalidArgument>([&] { tensor.copy_to(out.data(), 1, 2); }, {"1 to 3", "has 2"});
  expect_error<InvalidArgument>([&] { tensor.copy_to(out.data(), -1, 1); }, {"-1"});
  expect_error<InvalidArgument>([&] { Tensor().copy_to(out.data(), 0, 1); }, {"absent"});
}

TEST(TensorTest, AnAbsentTensorHasNoValues) {
  EXPECT_FALSE(Tensor().present());
  EXPECT_TRUE(Tensor().to_float().empty());
  EXPECT_EQ(Tensor().num_bytes(), 0);
}

}  // namespace
}  // namespace phasor
