// The kernels of every instruction set that this machine has, against naive loops in double.
#include "engine/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/onednn.h"
#include "tests/support/expect_close.h"

namespace phasor {
using namespace internal;

namespace internal {
extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels;
#endif
}  // namespace internal

namespace {

std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> sets = {&kBaselineKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sets.push_back(&kAvx2Kernels);
  }
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni)) sets.push_back(&kAvx2VnniKernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(&kAvx512Kernels);
  }
#endif
  return sets;
}

class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels_ = *GetParam();
};

INSTANTIATE_TEST_SUITE_P(AllSets, KernelsTest, testing::ValuesIn(runnable()),
                         [](const auto& info) { return std::string(info.param->name); });

// Around the lanes of vectors and the blocks of registers.
const std::vector<int64_t> kSizes = {1,  2,  3,  4,  5,  7,  8,  9,  12, 15, 16,
                                     17, 24, 25, 31, 32, 33, 47, 63, 64, 65, 70};
const std::vector<int64_t> kHeadDims = {4, 5, 6, 8, 15, 16, 17, 32, 33, 48, 64, 65, 80, 128, 130};

constexpr float kUntouched = 12345.0f;

/// Uniform in [−spread, spread], the same on every machine.
std::vector<float> draw(int64_t count, uint64_t seed, float spread = 1) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = spread * static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  return values;
}

std::string sizes(std::initializer_list<int64_t> list) {
  std::string text;
  for (const int64_t size : list) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

/// [rows, width] -> [rows, stride], the rest zeros.
std::vector<float> padded(const std::vector<float>& x, int64_t width, int64_t stride) {
  const auto rows = static_cast<int64_t>(x.size()) / width;
  std::vector<float> out(rows * stride);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(&x[r * width], width, &out[r * stride]);
  return out;
}

TEST_P(KernelsTest, ScoresAreScaledDotProducts) {
  const int64_t W = kernels_.tile_queries;
  constexpr float kScale = 0.3f;
  for (const int64_t head_dim : kHeadDims) {
    const int64_t stride = packed_head_stride(head_dim), q_stride = head_dim + 5;
    for (const int64_t num_keys : kSizes) {
      const int64_t num_queries = 1 + (num_keys + head_dim) % W;
      const std::vector<float> keys = draw(num_keys * head_dim, 1);
      // Behind a row lies another head's, which must not count.
      const std::vector<float> q = draw(num_queries * q_stride + W, 2);
      std::vector<float> transposed(stride * W), tile((num_keys + 1) * W, kUntouched);
      kernels_.scores(q.data(), q_stride, num_queries, padded(keys, head_dim, stride).data(),
                      num_keys, head_dim, stride, kScale, transposed.data(), tile.data());
      std::vector<double> got, expected;
      for (int64_t j = 0; j < num_keys; ++j) {
        for (int64_t i = 0; i < num_queries; ++i) {
          double sum = 0;
          for (int64_t d = 0; d < head_dim; ++d) {
            sum += double{q[i * q_stride + d]} * keys[j * head_dim + d];
          }
          got.push_back(tile[j * W + i]);
          expected.push_back(kScale * sum);
        }
      }
      const std::string what =
          "queries, keys, head_dim " + sizes({num_queries, num_keys, head_dim});
      expect_close<double, double>(got, expected, 2e-6, what);
      EXPECT_EQ(tile[num_keys * W], kUntouched) << what;
    }
  }
}

/// scores [num_keys, W]: a column for each query of a tile.
void expect_softmax(const Kernels& kernels, const std::vector<float>& scores, int64_t num_keys,
                    const std::string& what) {
  const int64_t W = kernels.tile_queries;
  std::vector<float> tile = scores, inverse_sums(W);
  tile.resize(num_keys * W + 1, kUntouched);
  kernels.softmax(tile.data(), num_keys, inverse_sums.data());
  EXPECT_EQ(tile.back(), kUntouched) << what;
  for (int64_t i = 0; i < W; ++i) {
    float largest = scores[i];
    for (int64_t j = 0; j < num_keys; ++j) largest = std::max(largest, scores[j * W + i]);
    double sum = 0;
    std::vector<double> expected(num_keys), got(num_keys);
    for (int64_t j = 0; j < num_keys; ++j) {
      const float below = scores[j * W + i] - largest;  // as float32 has it
      sum += expected[j] = std::exp(double{below});
      got[j] = double{tile[j * W + i]} * inverse_sums[i];
    }
    for (int64_t j = 0; j < num_keys; ++j) {
      expected[j] /= sum;
      EXPECT_NEAR(got[j], expected[j], 1e-6 * expected[j] + 1e-37) << what << ", key " << j;
    }
  }
}

TEST_P(KernelsTest, SoftmaxMakesShares) {
  const int64_t W = kernels_.tile_queries;
  for (const int64_t num_keys : kSizes) {
    const int64_t count = num_keys * W;
    expect_softmax(kernels_, draw(count, 1, 5), num_keys, "small scores");
    expect_softmax(kernels_, draw(count, 2, 80), num_keys, "large scores");
    expect_softmax(kernels_, std::vector<float>(count, 0.0f), num_keys, "zeros");
    expect_softmax(kernels_, std::vector<float>(count, -1e30f), num_keys, "equal and far below 0");
    expect_softmax(kernels_, std::vector<float>(count, 1e30f), num_keys, "equal and far above 0");
    std::vector<float> one_wins(count, -1e5f);
    for (int64_t i = 0; i < W; ++i) one_wins[(i * 7 % num_keys) * W + i] = 1e5f;
    expect_softmax(kernels_, one_wins, num_keys, "one far above the others");
  }
}

TEST_P(KernelsTest, SoftmaxKeepsANanInItsLane) {
  const int64_t W = kernels_.tile_queries;
  for (const int64_t num_keys : kSizes) {
    for (int64_t j = 0; j < num_keys; ++j) {
      std::vector<float> tile = draw(num_keys * W, 1), inverse_sums(W);
      tile[j * W + 1] = std::numeric_limits<float>::quiet_NaN();
      kernels_.softmax(tile.data(), num_keys, inverse_sums.data());
      EXPECT_TRUE(std::isnan(inverse_sums[1])) << "key " << j << " of " << num_keys;
      EXPECT_FALSE(std::isnan(inverse_sums[0])) << "key " << j << " of " << num_keys;
    }
  }
}

TEST_P(KernelsTest, MixingWeighsTheValues) {
  const int64_t W = kernels_.tile_queries;
  for (const int64_t head_dim : kHeadDims) {
    const int64_t stride = packed_head_stride(head_dim), z_stride = head_dim + 3;
    for (const int64_t num_keys : kSizes) {
      const int64_t num_queries = 1 + (num_keys + head_dim) % W;
      const std::vector<float> values = draw(num_keys * head_dim, 1);
      const std::vector<float> tile = draw(num_keys * W, 2), inverse_sums = draw(W, 3);
      std::vector<float> z(num_queries * z_stride + W, kUntouched);
      kernels_.mix(tile.data(), inverse_sums.data(), num_queries,
                   padded(values, head_dim, stride).data(), num_keys, head_dim, stride, z.data(),
                   z_stride);
      std::vector<double> got, expected;
      for (int64_t i = 0; i < num_queries; ++i) {
        for (int64_t d = 0; d < head_dim; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < num_keys; ++j) {
            sum += double{tile[j * W + i]} * values[j * head_dim + d];
          }
          got.push_back(std::exchange(z[i * z_stride + d], kUntouched));
          expected.push_back(sum * inverse_sums[i]);
        }
      }
      const std::string what =
          "queries, keys, head_dim " + sizes({num_queries, num_keys, head_dim});
      expect_close<double, double>(got, expected, 2e-6, what);
      for (const float beside : z) ASSERT_EQ(beside, kUntouched) << what << ": wrote beside z";
    }
  }
}

TEST_P(KernelsTest, NormsAreThoseOfEachRow) {
  constexpr int64_t kRows = 3;
  constexpr float kEps = 1e-3f;
  for (const int64_t width : kSizes) {
    for (const bool centred : {true, false}) {
      for (const bool adds : {true, false}) {
        const std::vector<float> f = draw(kRows * width, 1), weight = draw(width, 2),
                                 bias = draw(width, 3);
        std::vector<float> x = draw(kRows * width, 4, 3);
        std::fill_n(&x[width], width, 2.5f);  // without variance, where nothing is added
        std::vector<double> sum(x.begin(), x.end()), expected;
        for (size_t i = 0; adds && i < sum.size(); ++i) sum[i] += f[i];
        for (int64_t n = 0; n < kRows; ++n) {
          double mean = 0, squares = 0;
          for (int64_t c = 0; centred && c < width; ++c) {
            mean += sum[n * width + c] / static_cast<double>(width);
          }
          for (int64_t c = 0; c < width; ++c) squares += std::pow(sum[n * width + c] - mean, 2);
          for (int64_t c = 0; c < width; ++c) {
            expected.push_back((sum[n * width + c] - mean) /
                                   std::sqrt(squares / static_cast<double>(width) + double{kEps}) *
                                   weight[c] +
                               bias[c]);
          }
        }
        std::vector<float> out(kRows * width + 1, kUntouched);
        kernels_.norm(adds ? f.data() : nullptr, x.data(), kRows, width, weight.data(), bias.data(),
                      centred, kEps, out.data());
        EXPECT_EQ(out.back(), kUntouched);
        out.pop_back();
        const std::string what = "width " + sizes({width}) + (centred ? ", centred" : "");
        expect_close<float, double>(out, expected, 5e-6, what);
        expect_close<float, double>(x, sum, 1e-7, what + ": the sum");
      }
    }
  }
}

TEST_P(KernelsTest, QuantizingRoundsToTheNearestLevel) {
  constexpr int64_t kRows = 3;
  for (const int64_t width : kSizes) {
    for (const int32_t levels : {127, 63}) {
      const std::vector<float> x = draw(kRows * width, width, 7);
      std::vector<uint8_t> q(kRows * width + 1, 0xee);
      std::vector<float> scales(kRows);
      kernels_.quantize(x.data(), kRows, width, levels, q.data(), scales.data());
      EXPECT_EQ(q.back(), 0xee) << width;
      for (int64_t n = 0; n < kRows; ++n) {
        const std::span<const float> row = std::span(x).subspan(n * width, width);
        const double largest = largest_magnitude(row);
        EXPECT_FLOAT_EQ(scales[n], static_cast<float>(largest / levels));
        for (int64_t c = 0; c < width; ++c) {
          const int32_t whole = q[n * width + c] - levels;
          const double steps = row[c] / largest * levels;
          EXPECT_NEAR(whole, steps, 0.5 + 1e-5) << width << ": " << c;
          if (std::abs(row[c]) == largest) {
            EXPECT_EQ(whole, row[c] > 0 ? levels : -levels);
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, QuantizingRoundsTiesToEvenAndZerosToTheZeroPoint) {
  const std::vector<float> x = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0, -127, 126.5f, 3.49f};
  const std::vector<int> expected = {127, 0, 2, 2, 0, -2, -2, 0, -127, 126, 3};
  std::vector<float> rows;  // the same at every place of a vector
  for (int i = 0; i < 40; ++i) rows.insert(rows.end(), x.begin(), x.end());
  std::vector<uint8_t> q(rows.size());
  float scale = 0;
  kernels_.quantize(rows.data(), 1, std::ssize(rows), 127, q.data(), &scale);
  EXPECT_EQ(scale, 1.0f);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(q[i] - 127, expected[i % x.size()]) << i;

  for (const int64_t width : kSizes) {
    const std::vector<float> zeros(width, -0.0f);
    scale = kUntouched;
    kernels_.quantize(zeros.data(), 1, width, 63, q.data(), &scale);
    EXPECT_EQ(scale, 0.0f);
    for (int64_t c = 0; c < width; ++c) EXPECT_EQ(q[c], 63);
  }
}

TEST_P(KernelsTest, QuantizingNeverHidesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const int64_t width : kSizes) {
      for (int64_t c = 0; c < width; ++c) {
        std::vector<float> x = draw(width, 1);
        x[c] = bad;
        std::vector<uint8_t> q(width);
        float scale = 0;
        kernels_.quantize(x.data(), 1, width, 127, q.data(), &scale);
        EXPECT_FALSE(std::isfinite(scale)) << bad << " at " << c << " of " << width;
      }
    }
  }
}

double activated(const Activation* activation, double x) {
  if (activation == nullptr) return x;
  switch (*activation) {
    case Activation::kGeluErf:
      return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
  }
  return NAN;
}

TEST_P(KernelsTest, DequantizingScalesShiftsAndActivates) {
  constexpr int64_t kRows = 3;
  constexpr Activation kActivations[] = {Activation::kGeluErf, Activation::kGeluTanh,
                                         Activation::kRelu, Activation::kSilu, Activation::kTanh};
  std::vector<const Activation*> activations = {nullptr};
  for (const Activation& activation : kActivations) activations.push_back(&activation);
  for (const int64_t width : kSizes) {
    for (const Activation* activation : activations) {
      const std::vector<float> row_scale = draw(kRows, 1, 1e-2f),
                               column_scale = draw(width, 2, 1e-2f), bias = draw(width, 3),
                               drawn = draw(kRows * width, 4, 1e5f);
      std::vector<int32_t> sums(drawn.begin(), drawn.end()), zero_point(width);
      for (int64_t c = 0; c < width; ++c) zero_point[c] = static_cast<int32_t>(100 * c - 777);
      std::vector<double> expected;
      for (int64_t n = 0; n < kRows; ++n) {
        for (int64_t c = 0; c < width; ++c) {
          const double x =
              double{row_scale[n]} * column_scale[c] * (sums[n * width + c] - zero_point[c]) +
              bias[c];
          expected.push_back(activated(activation, x));
        }
      }
      sums.push_back(4242);
      kernels_.dequantize(sums.data(), kRows, width,
                          {.row_scale = row_scale.data(),
                           .column_scale = column_scale.data(),
                           .zero_point = zero_point.data(),
                           .bias = bias.data(),
                           .activation = activation});
      EXPECT_EQ(sums.back(), 4242);
      std::vector<float> got(kRows * width);
      std::memcpy(got.data(), sums.data(), got.size() * sizeof(float));
      expect_close<float, double>(
          got, expected, 2e-6,
          "width " + sizes({width}) + ", activation " +
              (activation ? std::to_string(static_cast<int>(*activation)) : "none"));
    }
  }
}

TEST_P(KernelsTest, ActivationsEndInTheirAsymptotes) {
  constexpr Activation kActivations[] = {Activation::kGeluErf, Activation::kGeluTanh,
                                         Activation::kRelu, Activation::kSilu, Activation::kTanh};
  const float one = 1, zero = 0;
  const int32_t none = 0;
  for (const Activation& activation : kActivations) {
    for (const int32_t x : {-2000000000, -100, -40, -20, 0, 20, 40, 100, 2000000000}) {
      int32_t sum = x;
      kernels_.dequantize(&sum, 1, 1,
                          {.row_scale = &one,
                           .column_scale = &one,
                           .zero_point = &none,
                           .bias = &zero,
                           .activation = &activation});
      const double expected = activated(&activation, x);
      EXPECT_NEAR(std::bit_cast<float>(sum), expected, 1e-6 * std::abs(expected) + 1e-6) << x;
    }
  }
}

/// The nearer of the two bfloat16 around x, and of equally near ones that whose last bit is 0.
uint16_t nearest_bfloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const auto below = static_cast<uint16_t>(bits >> 16);  // towards 0
  const auto above = static_cast<uint16_t>(below + 1);
  const auto value = [](uint16_t half) -> double {
    if ((half & 0x7fff) == 0x7f80) return std::copysign(0x1p128, half & 0x8000 ? -1 : 1);
    return std::bit_cast<float>(uint32_t{half} << 16);
  };
  const double down = std::abs(x - value(below)), up = std::abs(value(above) - x);
  if (down == up) return below % 2 == 0 ? below : above;
  return down < up ? below : above;
}

TEST_P(KernelsTest, Bfloat16IsTheNearestAndTheEvenOneOfTwo) {
  EXPECT_EQ(nearest_bfloat16(1.0f + 0x1p-8f), 0x3f80) << "a tie goes down to an even one";
  EXPECT_EQ(nearest_bfloat16(1.0f + 0x3p-8f), 0x3f82) << "and up";
  std::vector<float> x = {0.0f,        -0.0f,          1.0f,    1.0f + 0x1p-8f, 1.0f + 0x3p-8f,
                          -3.25f,      1.0f + 0x1p-9f, 3.4e38f, -3.4e38f,       0x1p-126f,
                          0x1.8p-133f, 0x1p-149f,      65536,   1e-20f};
  const std::vector<float> drawn = draw(500, 1, 100);
  x.insert(x.end(), drawn.begin(), drawn.end());
  for (uint32_t upper = 0x3f80; upper < 0x3fa0; ++upper) {  // every tie of an octave, and beside it
    for (const uint32_t lower : {0x7fffu, 0x8000u, 0x8001u}) {
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
      x.push_back(-x.back());
    }
  }
  for (const int64_t count : kSizes) {
    for (int64_t first = 0; first + count <= std::ssize(x); first += count) {
      std::vector<uint16_t> halves(count + 1, 0xeeee);
      std::vector<float> wide(count + 1, kUntouched);
      kernels_.to_bfloat16(&x[first], count, halves.data());
      kernels_.round_to_bfloat16(&x[first], count, wide.data());
      EXPECT_EQ(halves.back(), 0xeeee);
      EXPECT_EQ(wide.back(), kUntouched);
      for (int64_t i = 0; i < count; ++i) {
        const uint16_t expected = nearest_bfloat16(x[first + i]);
        ASSERT_EQ(halves[i], expected) << x[first + i];
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), uint32_t{expected} << 16) << x[first + i];
      }
    }
  }
}

// [out, in] -> panels of 16 columns whose steps have `unit` inputs; columns that are missing are 0.
template <typename T>
std::vector<T> panels_of(const std::vector<T>& rows, int64_t in, int64_t out, int64_t unit) {
  const int64_t columns = (out + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  std::vector<T> panels(columns * in);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) {
      const int64_t panel = o / kPanelColumns, column = o % kPanelColumns;
      panels[((panel * in / unit + i / unit) * kPanelColumns + column) * unit + i % unit] =
          rows[o * in + i];
    }
  }
  return panels;
}

// Around the blocks of rows, the panels, and the part of a panel that is taken at a time.
const std::vector<int64_t> kMapRows = {1, 2, 5, 6, 7, 11, 12, 13, 16, 17, 23};
const std::vector<int64_t> kMapInputs = {1, 3, 8, 383, 384, 385, 1000};
const std::vector<int64_t> kMapOutputs = {1, 15, 16, 17, 32, 50};

TEST_P(KernelsTest, ALinearMapIsAProductPlusTheBias) {
  if (kernels_.linear == nullptr) GTEST_SKIP() << "oneDNN's matmul is used";
  for (const int64_t in : kMapInputs) {
    for (const int64_t out : kMapOutputs) {
      const std::vector<float> weight = draw(in * out, in), panels = panels_of(weight, in, out, 1);
      std::vector<float> bias = draw(out, 7);
      bias.resize(out + kPanelColumns);
      const std::vector<float> x = draw(kMapRows.back() * in, out);
      const int64_t stride = out + 3;
      std::vector<float> all;  // of the most rows
      for (auto rows = kMapRows.rbegin(); rows != kMapRows.rend(); ++rows) {
        std::vector<float> y(*rows * stride, kUntouched);
        kernels_.linear(x.data(), *rows, in, panels.data(), out, bias.data(), y.data(), stride);
        if (all.empty()) all = y;
        for (int64_t n = 0; n < *rows; ++n) {
          for (int64_t o = 0; o < stride; ++o) {
            const float got = y[n * stride + o];
            if (o >= out) {
              ASSERT_EQ(got, kUntouched);
              continue;
            }
            double sum = bias[o], size = std::abs(bias[o]);
            for (int64_t i = 0; i < in; ++i) {
              const double product = static_cast<double>(x[n * in + i]) * weight[o * in + i];
              sum += product;
              size += std::abs(product);
            }
            ASSERT_NEAR(got, sum, 1e-6 * size) << n << ", " << o << " of " << in << "x" << out;
            ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(all[n * stride + o]))
                << "depends on the other rows";
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, ALinearMapOfIntegersIsExactBeforeItsScales) {
  if (kernels_.linear_int8 == nullptr) GTEST_SKIP() << "oneDNN's matmul is used";
  std::mt19937 random(5);
  // AVX2 without dot products takes 7 bits.
  std::uniform_int_distribution<int> inputs(0, std::string(kernels_.name) == "avx2" ? 126 : 254);
  std::uniform_int_distribution<int> weights(-127, 127);
  for (const int64_t in : {int64_t{4}, int64_t{32}, int64_t{1532}, int64_t{1536}, int64_t{1540}}) {
    for (const int64_t out : kMapOutputs) {
      const int64_t rows = 13, columns = out + kPanelColumns;
      std::vector<int8_t> weight(in * out);
      std::vector<uint8_t> x(rows * in);
      for (int8_t& w : weight) w = static_cast<int8_t>(weights(random));
      for (uint8_t& v : x) v = static_cast<uint8_t>(inputs(random));
      std::fill_n(x.begin(), in, static_cast<uint8_t>(inputs.max()));  // the largest sums
      std::fill_n(weight.begin(), in, static_cast<int8_t>(127));
      const std::vector<int8_t> panels = panels_of(weight, in, out, 4);
      const std::vector<float> ones(columns, 1.0f), zeros(columns);
      std::vector<int32_t> zero_point(columns);
      for (int64_t o = 0; o < out; ++o) zero_point[o] = static_cast<int32_t>(100 * in + o);
      std::vector<float> y(rows * out);
      kernels_.linear_int8(x.data(), rows, in, panels.data(), out,
                           {.row_scale = ones.data(),
                            .column_scale = ones.data(),
                            .zero_point = zero_point.data(),
                            .bias = zeros.data(),
                            .activation = nullptr},
                           y.data(), out);
      const std::vector<float> row_scale = draw(columns, 1), column_scale = draw(columns, 2),
                               bias = draw(columns, 3);
      std::vector<float> scaled(rows * out);
      kernels_.linear_int8(x.data(), rows, in, panels.data(), out,
                           {.row_scale = row_scale.data(),
                            .column_scale = column_scale.data(),
                            .zero_point = zero_point.data(),
                            .bias = bias.data(),
                            .activation = nullptr},
                           scaled.data(), out);
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t o = 0; o < out; ++o) {
          int64_t sum = -zero_point[o];
          for (int64_t i = 0; i < in; ++i) sum += int64_t{x[n * in + i]} * weight[o * in + i];
          ASSERT_EQ(y[n * out + o], static_cast<float>(sum)) << n << ", " << o;
          const double whole = static_cast<double>(sum) * row_scale[n] * column_scale[o];
          ASSERT_NEAR(scaled[n * out + o], whole + bias[o],
                      1e-6 * (std::abs(whole) + std::abs(bias[o])));
        }
      }
    }
  }
}

TEST(KernelsChoiceTest, TheSetIsTheBestThatOneDnnMayUse) {
  const char* const limit = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (limit == nullptr) {
    EXPECT_STREQ(kernels().name, runnable().back()->name);
  } else if (std::string(limit) == "AVX2") {
    EXPECT_STRNE(kernels().name, "avx512");
  } else if (std::string(limit) == "SSE41") {
    EXPECT_STREQ(kernels().name, "baseline");
  }
}

}  // namespace
}  // namespace phasor
