// The kernels of every instruction set that this machine has, against naive loops in double.
#include "engine/kernels/kernels.h"

#include "engine/onednn.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
using namespace internal;

namespace internal {
extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx2VnniKernels, kAvx512Kernels;
extern const AttentionProducts kAvx512Bfloat16Products, kAmxProducts;
#endif
}  // namespace internal

namespace {

std::vector<const Kernels*> runnable() {
  std::vector<const Kernels*> sets = {&kBaselineKernels};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    sets.push_back(&kAvx2Kernels);
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni)) sets.push_back(&kAvx2VnniKernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    sets.push_back(&kAvx512Kernels);
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

std::string sizes(std::initializer_list<int64_t> list) {
  std::string text;
  for (const int64_t size : list) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
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
          for (int64_t c = 0; centred && c < width; ++c)
            mean += sum[n * width + c] / static_cast<double>(width);
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

TEST_P(KernelsTest, ARowWhoseSquaresOverflowHasNoNorm) {
  for (const int64_t width : kSizes) {
    for (const bool centred : {true, false}) {
      if (centred && width == 1) continue;  // its variance is 0
      std::vector<float> x(width, 1e20f), y(width);
      x[0] = -1e20f;
      const std::vector<float> one(width, 1.0f);
      kernels_.norm(nullptr, x.data(), 1, width, one.data(), one.data(), centred, 1e-5f, y.data());
      for (const float value : y) EXPECT_TRUE(std::isnan(value)) << width;
    }
  }
}

struct Quantized {
  explicit Quantized(int64_t rows, int64_t width)
      : q(rows * width + 1, 0xee), scales(rows, kUntouched), zero_points(rows, -1) {}
  std::vector<uint8_t> q;
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
};

Quantized quantized(const Kernels& set, const std::vector<float>& x, int64_t width, int32_t most) {
  const int64_t rows = std::ssize(x) / width;
  Quantized got(rows, width);
  set.quantize(x.data(), rows, width, most, got.q.data(), got.scales.data(),
               got.zero_points.data());
  EXPECT_EQ(got.q.back(), 0xee) << width;
  return got;
}

TEST_P(KernelsTest, QuantizingSpreadsARowsRangeAndZeroOverAllNumbers) {
  constexpr int64_t kRows = 3;
  for (const int64_t width : kSizes) {
    for (const int32_t most : {254, 126}) {
      std::vector<float> x = draw(kRows * width, width, 7);
      for (int64_t c = 0; c < width; ++c) x[width + c] = std::abs(x[width + c]);  // one without < 0
      const Quantized got = quantized(kernels_, x, width, most);
      for (int64_t n = 0; n < kRows; ++n) {
        const auto row = std::span(x).subspan(n * width, width);
        const double low = std::min(0.0f, std::ranges::min(row));
        const double high = std::max(0.0f, std::ranges::max(row));
        const double scale = (high - low) / most;
        EXPECT_FLOAT_EQ(got.scales[n], static_cast<float>(scale));
        const double half = 0.5 + most * 0x1p-22;  // as exact as float32 knows so many steps
        EXPECT_NEAR(got.zero_points[n], -low / scale, half);
        for (int64_t c = 0; c < width; ++c) {
          const int32_t q = got.q[n * width + c];
          EXPECT_NEAR(q - got.zero_points[n], row[c] / scale, half) << width << ": " << c;
          if (row[c] == low) {
            EXPECT_EQ(q, 0);
          }
          if (row[c] == high) {
            EXPECT_NEAR(q, most, 1);
          }
        }
      }
    }
  }
}

TEST_P(KernelsTest, QuantizingRoundsTiesToEvenAndZerosToTheZeroPoint) {
  const std::vector<float> x = {227, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 0, -27, 126.5f, 3.49f};
  const std::vector<int> expected = {227, 0, 2, 2, 0, -2, -2, 0, -27, 126, 3};
  std::vector<float> row;  // the same at every place of a vector
  for (int i = 0; i < 40; ++i) row.insert(row.end(), x.begin(), x.end());
  const Quantized got = quantized(kernels_, row, std::ssize(row), 254);
  EXPECT_EQ(got.scales[0], 1.0f);
  EXPECT_EQ(got.zero_points[0], 27);
  for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(got.q[i] - 27, expected[i % x.size()]) << i;
  for (const int64_t width : kSizes) {
    const Quantized zeros = quantized(kernels_, std::vector<float>(width, -0.0f), width, 126);
    EXPECT_EQ(zeros.scales[0], 0.0f);
    for (int64_t c = 0; c < width; ++c) EXPECT_EQ(zeros.q[c], zeros.zero_points[0]);
  }
}

TEST_P(KernelsTest, QuantizingTakesARangeTooSmallToDivideByForZeros) {
  constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
  for (const int32_t most : {254, 126}) {
    const float least = static_cast<float>(most) / std::numeric_limits<float>::max();
    for (const float tiny : {kDenormal, 1e-40f, 1e-38f, 1e-37f, least}) {
      for (const int64_t width : kSizes) {
        for (const float other : {0.0f, tiny, -tiny}) {
          std::vector<float> x(3 * width, other);
          x[width / 2] = tiny;
          x[width + width / 3] = -tiny;
          const Quantized got = quantized(kernels_, x, width, most);
          for (int64_t i = 0; i < std::ssize(x); ++i) {
            const int32_t zero_point = got.zero_points[i / width];
            ASSERT_GE(zero_point, 0) << tiny;
            ASSERT_LE(zero_point, most) << tiny;
            ASSERT_LE(got.q[i], most) << tiny;
            const float scale = got.scales[i / width];
            ASSERT_NEAR(static_cast<float>(got.q[i] - zero_point) * scale, x[i], 2 * least);
          }
        }
      }
    }
    const Quantized enough = quantized(kernels_, {0, 2 * least}, 2, most);
    EXPECT_EQ(enough.q[1], most);
  }
}

// low / step is a tie once it is rounded, and less before. A zero point that came of the first, and
// a value that came of the second in a fused operation, made −1, which is 255 in a byte.
TEST_P(KernelsTest, QuantizingATieAtTheLowerEndStaysThere) {
  for (const int32_t most : {254, 126}) {
    for (const float step : draw(50, 11)) {
      std::vector<float> x;  // rows of two values
      for (int32_t n = 0; n < most; ++n) {
        x.push_back(-(static_cast<float>(n) + 0.5f) * std::abs(step));
        x.push_back((static_cast<float>(most - n) - 0.5f) * std::abs(step));
      }
      const Quantized got = quantized(kernels_, x, 2, most);
      for (int32_t n = 0; n < most; ++n) {
        EXPECT_LE(got.q[2 * n], 1) << n << " of " << most << ", step " << step;
        EXPECT_GE(got.q[2 * n + 1], most - 1) << n << " of " << most << ", step " << step;
      }
    }
  }
}

TEST_P(KernelsTest, QuantizingNeverHidesWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const int64_t width : kSizes) {
      for (int64_t c = 0; c < width; ++c) {
        std::vector<float> x = draw(width, 1);
        x[c] = bad;
        const float scale = quantized(kernels_, x, width, 254).scales[0];
        EXPECT_FALSE(std::isfinite(scale)) << bad << " at " << c << " of " << width;
      }
    }
  }
}

double activated(const Activation* activation, double x) {
  return activation == nullptr ? x : reference::activate(*activation, x);
}

std::vector<Activation> all_activations() {
  std::vector<Activation> all;
  for (const std::string_view name : names<Activation>().all)
    all.push_back(parse<Activation>(name));
  return all;
}

bool is_coarser(Activation activation) {
  return activation == Activation::kGeluErf || activation == Activation::kGelu10;
}

constexpr double kCoarse = 5e-5;  // the error of a coarse GELU

TEST_P(KernelsTest, AnActivationIsItsFormulaWithinItsError) {
  constexpr int kSteps = 24000;
  std::vector<float> x;
  for (int i = -kSteps; i <= kSteps; ++i) x.push_back(12.0f * static_cast<float>(i) / kSteps);
  for (const float far : {20.0f, 40.0f, 100.0f, 2e9f}) x.insert(x.end(), {far, -far});
  for (const Activation activation : all_activations()) {
    for (const bool coarse : {false, true}) {
      std::vector<float> y = x;
      kernels_.activate(y.data(), std::ssize(y), activation, coarse);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = activated(&activation, x[i]);
        const double error = 1e-6 * std::max(1.0, std::abs(expected)) + (coarse ? kCoarse : 0);
        ASSERT_NEAR(y[i], expected, error) << x[i] << ", " << coarse;
      }
    }
    std::vector<float> bad = {NAN, 1, NAN};
    kernels_.activate(bad.data(), 3, activation, true);
    EXPECT_TRUE(std::isnan(bad[0]) && std::isfinite(bad[1]) && std::isnan(bad[2]));
  }
}

TEST_P(KernelsTest, AnActivationIsTransformersOfItsName) {
  constexpr float kX[] = {-12, -3, -0.5f, 0.7f, 12};
  // ACT2FN[name](x), in double (gelu_tanh: of gelu_pytorch_tanh).
  const std::map<std::string_view, std::vector<double>> expected = {
      {"gelu", {0, -0.00404969409, -0.154268769, 0.530625443, 12}},
      {"gelu_tanh", {0, -0.00363739208, -0.15428599, 0.530570135, 12}},
      {"relu", {0, 0, 0, 0.7, 12}},
      {"silu", {-7.37300952e-05, -0.14227762, -0.188770334, 0.467731441, 11.9999263}},
      {"tanh", {-1, -0.995054754, -0.462117157, 0.604367777, 1}},
      {"linear", {-12, -3, -0.5, 0.7, 12}},
      {"sigmoid", {6.1441746e-06, 0.0474258732, 0.377540669, 0.668187772, 0.999993856}},
      {"quick_gelu", {-1.61864178e-08, -0.0180713097, -0.149611563, 0.536893952, 12}},
      {"gelu_10", {0, -0.00404969409, -0.154268769, 0.530625443, 10}},
      {"relu2", {0, 0, 0, 0.49, 144}},
      {"relu6", {0, 0, 0, 0.7, 6}},
      {"leaky_relu", {-0.12, -0.03, -0.005, 0.7, 12}},
      {"hardswish", {0, 0, -0.208333333, 0.431666667, 12}},
      {"mish", {-7.37303217e-05, -0.145647461, -0.220743775, 0.561148378, 12}},
      {"laplace", {0, 0, 9.38338117e-06, 0.489950255, 1}}};
  ASSERT_EQ(expected.size(), names<Activation>().all.size());
  for (const auto& [name, values] : expected) {
    std::vector<float> y(std::begin(kX), std::end(kX));
    kernels_.activate(y.data(), std::ssize(y), parse<Activation>(name), false);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], values[i], 1e-6 * std::max(1.0, std::abs(values[i]))) << name;
  }
}

TEST_P(KernelsTest, DequantizingScalesShiftsAndActivates) {
  constexpr int64_t kRows = 3;
  const std::vector<Activation> all = all_activations();
  std::vector<const Activation*> activations = {nullptr};
  for (const Activation& activation : all) activations.push_back(&activation);
  for (const int64_t width : kSizes) {
    for (const Activation* activation : activations) {
      const std::vector<float> row_scale = draw(kRows, 1, 1e-2f),
                               column_scale = draw(width, 2, 1e-2f), bias = draw(width, 3),
                               drawn = draw(kRows * width, 4, 1e5f);
      std::vector<int32_t> sums(drawn.begin(), drawn.end()), column_sum(width);
      const std::vector<int32_t> zero_point = {3, 0, 254};
      for (int64_t c = 0; c < width; ++c) column_sum[c] = static_cast<int32_t>(c - 77);
      std::vector<double> expected;
      for (int64_t n = 0; n < kRows; ++n) {
        for (int64_t c = 0; c < width; ++c) {
          const double x = double{row_scale[n]} * column_scale[c] *
                               (sums[n * width + c] - zero_point[n] * column_sum[c]) +
                           bias[c];
          expected.push_back(activated(activation, x));
        }
      }
      sums.push_back(4242);
      kernels_.dequantize(sums.data(), kRows, width,
                          {.row_scale = row_scale.data(),
                           .zero_point = zero_point.data(),
                           .column_scale = column_scale.data(),
                           .column_sum = column_sum.data(),
                           .bias = bias.data(),
                           .activation = activation});
      EXPECT_EQ(sums.back(), 4242);
      std::vector<float> got(kRows * width);
      std::memcpy(got.data(), sums.data(), got.size() * sizeof(float));
      const bool coarse = activation != nullptr && is_coarser(*activation);
      const double largest = largest_magnitude(std::span<const double>(expected));
      expect_close<float, double>(
          got, expected, 2e-6 + (coarse ? kCoarse / largest : 0),
          "width " + sizes({width}) + ", activation " +
              (activation ? std::to_string(static_cast<int>(*activation)) : "none"));
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

struct ProductsCase {
  int64_t W;
  const AttentionProducts* products;
};

std::vector<ProductsCase> runnable_products() {
  std::vector<ProductsCase> cases;
  for (const Kernels* set : runnable()) cases.push_back({set->tile_queries, &set->products});
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) {
    cases.push_back({16, &kAvx512Bfloat16Products});
#if defined(__linux__)
    cases.push_back({16, &kAmxProducts});
#endif
  }
#endif
  return cases;
}

class AttentionProductsTest : public testing::TestWithParam<ProductsCase> {
 protected:
  /// x as it is multiplied.
  double factor(float x) const {
    if (products_.values_per_float == 1) return x;
    return std::bit_cast<float>(uint32_t{nearest_bfloat16(x)} << 16);
  }

  const AttentionProducts& products_ = *GetParam().products;
  const int64_t W_ = GetParam().W;
#if defined(__x86_64__) && defined(__linux__)
  const AmxEmulator emulator_;
#endif
};

INSTANTIATE_TEST_SUITE_P(AllFormats, AttentionProductsTest, testing::ValuesIn(runnable_products()),
                         [](const auto& info) { return std::string(info.param.products->name); });

/// Also around the tiles' blocks of four.
std::vector<int64_t> key_counts() {
  std::vector<int64_t> counts = kSizes;
  counts.insert(counts.end(), {97, 130});
  return counts;
}

/// `count` rows `stride` apart; behind each lies another head's, which must not count.
std::vector<float> draw_rows(int64_t count, int64_t width, int64_t stride, uint64_t seed) {
  std::vector<float> rows(count * stride + 16, std::numeric_limits<float>::quiet_NaN());
  const std::vector<float> drawn = draw(count * width, seed);
  for (int64_t n = 0; n < count; ++n) std::copy_n(&drawn[n * width], width, &rows[n * stride]);
  return rows;
}

TEST_P(AttentionProductsTest, ScoresAreScaledDotProducts) {
  constexpr float kScale = 0.3f;
  for (const int64_t head_dim : kHeadDims) {
    const int64_t head_stride = packed_head_stride(products_, head_dim), stride = head_dim + 5;
    for (const int64_t num_keys : key_counts()) {
      const int64_t num_queries = 1 + (num_keys + head_dim) % W_;
      const std::vector<float> keys = draw_rows(num_keys, head_dim, stride, 1);
      const std::vector<float> q = draw_rows(num_queries, head_dim, stride, 2);
      std::vector<float> packed(num_keys * head_stride + 1, kUntouched);
      std::vector<float> transposed(head_stride * W_), tile((num_keys + 1) * W_, kUntouched);
      products_.pack_keys(keys.data(), num_keys, stride, head_dim, head_stride, packed.data());
      products_.scores(q.data(), stride, num_queries, packed.data(), num_keys, head_dim,
                       head_stride, kScale, transposed.data(), tile.data());
      std::vector<double> got, expected;
      for (int64_t j = 0; j < num_keys; ++j) {
        for (int64_t i = 0; i < num_queries; ++i) {
          double sum = 0;
          for (int64_t d = 0; d < head_dim; ++d)
            sum += factor(kScale * q[i * stride + d]) * factor(keys[j * stride + d]);
          got.push_back(tile[j * W_ + i]);
          expected.push_back(sum);
        }
      }
      const std::string what = "queries, keys, dims " + sizes({num_queries, num_keys, head_dim});
      expect_close<double, double>(got, expected, 2e-6, what);
      EXPECT_EQ(tile[num_keys * W_], kUntouched) << what;
      EXPECT_EQ(packed.back(), kUntouched) << what;
    }
  }
}

TEST_P(AttentionProductsTest, MixingWeighsTheValues) {
  for (const int64_t head_dim : kHeadDims) {
    const int64_t head_stride = packed_head_stride(products_, head_dim), stride = head_dim + 3;
    for (const int64_t num_keys : key_counts()) {
      const int64_t num_queries = 1 + (num_keys + head_dim) % W_;
      const int64_t first_key = num_keys % 3 * 2, num_all = first_key + num_keys;
      const std::vector<float> values = draw_rows(num_all, head_dim, stride, 1);
      const std::vector<float> shares = draw(num_keys * W_, 2), inverse_sums = draw(W_, 3);
      std::vector<float> packed((num_all + 1) / 2 * 2 * head_stride + 1, kUntouched);
      std::vector<float> tile = shares;
      tile.resize((num_keys + W_) * W_);
      std::vector<float> z(num_queries * stride + W_, kUntouched);
      products_.pack_values(values.data(), num_all, stride, head_dim, head_stride, packed.data());
      products_.mix(tile.data(), inverse_sums.data(), num_queries, &packed[first_key * head_stride],
                    num_keys, head_dim, head_stride, z.data(), stride);
      std::vector<double> got, expected;
      for (int64_t i = 0; i < num_queries; ++i) {
        for (int64_t d = 0; d < head_dim; ++d) {
          double sum = 0;
          for (int64_t j = 0; j < num_keys; ++j)
            sum += factor(shares[j * W_ + i]) * factor(values[(first_key + j) * stride + d]);
          got.push_back(std::exchange(z[i * stride + d], kUntouched));
          expected.push_back(sum * inverse_sums[i]);
        }
      }
      const std::string what = "queries, keys, dims " + sizes({num_queries, num_keys, head_dim});
      expect_close<double, double>(got, expected, 2e-6, what);
      for (const float beside : z) ASSERT_EQ(beside, kUntouched) << what << ": wrote beside z";
      EXPECT_EQ(packed.back(), kUntouched) << what;
    }
  }
}

#if defined(__x86_64__) && defined(__linux__)
TEST(AmxTest, TheTilesOfAnotherOwnerStayConfigured) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "needs AVX512_BF16";
  const AmxEmulator emulator;
  using Config = std::array<uint8_t, 64>;
  Config none = {}, one_tile = {};
  one_tile[0] = 1;    // palette
  one_tile[16] = 32;  // bytes of a row of tile 0
  one_tile[48] = 7;   // its rows
  const auto configured = [] {
    Config config;
    asm volatile("sttilecfg %0" : "=m"(config));
    return config;
  };
  constexpr int64_t kKeys = 20, kWidth = 32, kStride = kWidth / 2, kQueries = 16;
  const std::vector<float> q(kQueries * kWidth), keys(kKeys * kStride), values(kKeys * kStride),
      inverse_sums(kQueries);
  std::vector<float> transposed(kQueries * kStride), tile(2 * kQueries * kKeys), z(q.size());
  for (const Config& config : {one_tile, none}) {
    asm volatile("ldtilecfg %0" : : "m"(config));
    kAmxProducts.scores(q.data(), kWidth, kQueries, keys.data(), kKeys, kWidth, kStride, 1,
                        transposed.data(), tile.data());
    EXPECT_EQ(configured(), config);
    kAmxProducts.mix(tile.data(), inverse_sums.data(), kQueries, values.data(), kKeys, kWidth,
                     kStride, z.data(), kWidth);
    EXPECT_EQ(configured(), config);
  }
}
#endif

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

#if !defined(__x86_64__)
TEST(KernelsChoiceTest, OtherCpusHaveNoneOfX86sSets) {
  for (const auto isa : {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx, dnnl::cpu_isa::avx2,
                         dnnl::cpu_isa::avx2_vnni, dnnl::cpu_isa::avx512_core})
    EXPECT_FALSE(onednn::may_use(isa)) << static_cast<int>(isa);
  EXPECT_FALSE(onednn::has_int8_dot_products());
}
#endif

// Linear maps over panels.

std::vector<const Kernels*> sets_for_integers() {
  std::vector<const Kernels*> sets;
#if defined(__x86_64__)
  if (onednn::may_use(dnnl::cpu_isa::avx2)) sets.push_back(&kAvx2Kernels);
  if (onednn::may_use(dnnl::cpu_isa::avx2_vnni)) sets.push_back(&kAvx2VnniKernels);
#endif
  return sets;
}

std::vector<const Kernels*> sets_for_floats() {
  std::vector<const Kernels*> sets = sets_for_integers();
  sets.push_back(&kBaselineKernels);
  return sets;
}

class FloatMapTest : public testing::TestWithParam<const Kernels*> {};
class IntegerMapTest : public testing::TestWithParam<const Kernels*> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IntegerMapTest);  // without AVX2

const auto name_of_set = [](const auto& info) { return std::string(info.param->name); };
INSTANTIATE_TEST_SUITE_P(, FloatMapTest, testing::ValuesIn(sets_for_floats()), name_of_set);
INSTANTIATE_TEST_SUITE_P(, IntegerMapTest, testing::ValuesIn(sets_for_integers()), name_of_set);

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

TEST_P(FloatMapTest, IsAProductPlusTheBias) {
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
        GetParam()->linear(x.data(), *rows, in, panels.data(), out, bias.data(), y.data(), stride);
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

TEST_P(IntegerMapTest, IsExactBeforeItsScales) {
  std::mt19937 random(5);
  // AVX2 without dot products takes 7 bits.
  std::uniform_int_distribution<int> inputs(0, std::string(GetParam()->name) == "avx2" ? 127 : 255);
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
      std::vector<int32_t> zero_point(rows), column_sum(columns);
      for (int64_t n = 0; n < rows; ++n) zero_point[n] = static_cast<int32_t>(20 * n);
      for (int64_t o = 0; o < out; ++o) column_sum[o] = static_cast<int32_t>(in + o);
      const auto map = [&](const auto& row_scales, const auto& column_scales, const auto& biases) {
        std::vector<float> result(rows * out);
        GetParam()->linear_int8(x.data(), rows, in, panels.data(), out,
                                {.row_scale = row_scales.data(),
                                 .zero_point = zero_point.data(),
                                 .column_scale = column_scales.data(),
                                 .column_sum = column_sum.data(),
                                 .bias = biases.data(),
                                 .activation = nullptr},
                                result.data(), out);
        return result;
      };
      const std::vector<float> row_scale = draw(columns, 1), column_scale = draw(columns, 2),
                               bias = draw(columns, 3);
      const std::vector<float> y = map(ones, ones, zeros);
      const std::vector<float> scaled = map(row_scale, column_scale, bias);
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t o = 0; o < out; ++o) {
          int64_t sum = -int64_t{zero_point[n]} * column_sum[o];
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

}  // namespace
}  // namespace phasor
