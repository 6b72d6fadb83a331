// Linear maps over panels, of every instruction set that this machine has, against naive loops.
#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "tests/support/draw.h"
#include "tests/support/test.h"

namespace phasor {
using namespace internal;

namespace internal {
extern const Kernels kBaselineKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx2VnniKernels;
#endif
}  // namespace internal

namespace {

constexpr float kUnwritten = 12345.0f;

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
        std::vector<float> y(*rows * stride, kUnwritten);
        GetParam()->linear(x.data(), *rows, in, panels.data(), out, bias.data(), y.data(), stride);
        if (all.empty()) all = y;
        for (int64_t n = 0; n < *rows; ++n) {
          for (int64_t o = 0; o < stride; ++o) {
            const float got = y[n * stride + o];
            if (o >= out) {
              ASSERT_EQ(got, kUnwritten);
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
