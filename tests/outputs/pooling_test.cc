// Pooling against naive oracles in double, and its edges; vectors in fewer bytes, by the formulas
// of sentence-transformers' quantize_embeddings().
#include "phasor/quantize.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
namespace {

std::vector<float> random_states(int64_t num_tokens, int64_t d_model, uint64_t seed) {
  return draw(num_tokens * d_model, seed, 10);
}

/// One column at a time, each mode by its definition.
double oracle(PoolingMode mode, const std::vector<double>& column) {
  const auto T = static_cast<double>(column.size());
  double sum = 0, weighted = 0, weights = 0, largest = column[0];
  for (size_t t = 0; t < column.size(); ++t) {
    sum += column[t];
    weighted += (static_cast<double>(t) + 1) * column[t];
    weights += static_cast<double>(t) + 1;
    if (column[t] > largest) largest = column[t];
  }
  using enum PoolingMode;
  if (mode == kCls) return column.front();
  if (mode == kMax) return largest;
  if (mode == kMean) return sum / T;
  if (mode == kMeanSqrtLen) return sum / std::sqrt(T);
  if (mode == kWeightedMean) return weighted / weights;
  return column.back();
}

std::vector<double> oracle(PoolingMode mode, const std::vector<float>& states, int64_t d_model) {
  std::vector<double> pooled;
  for (int64_t c = 0; c < d_model; ++c) {
    std::vector<double> column;
    for (size_t i = c; i < states.size(); i += d_model) column.push_back(states[i]);
    pooled.push_back(oracle(mode, column));
  }
  return pooled;
}

const std::vector<PoolingMode> kAllModes =
    parse_list<PoolingMode>("cls,max,mean,mean_sqrt_len_tokens,weightedmean,lasttoken");

class PoolingModeTest : public testing::TestWithParam<PoolingMode> {};

TEST_P(PoolingModeTest, MatchesItsDefinition) {
  for (const int64_t num_tokens : {1, 2, 3, 17, 200}) {
    for (const int64_t d_model : {1, 5, 64}) {
      const std::vector<float> states = random_states(num_tokens, d_model, num_tokens + d_model);
      const std::vector<float> pooled = pool(states, d_model, {.modes = {GetParam()}});
      expect_close<float, double>(pooled, oracle(GetParam(), states, d_model), 1e-7, "pooled");
    }
  }
}

TEST_P(PoolingModeTest, WithoutThePromptItIsThatOfTheOtherTokensAtTheirPlaces) {
  const std::vector<float> states = random_states(7, 3, 4);
  const Pooling all{.modes = {GetParam()}};
  const Pooling pooling{.modes = {GetParam()}, .include_prompt = false};
  EXPECT_EQ(pool(states, 3, pooling, 0), pool(states, 3, all));
  EXPECT_EQ(pool(states, 3, all, 2), pool(states, 3, all));
  std::vector<double> expected = oracle(GetParam(), {states.begin() + 6, states.end()}, 3);
  if (GetParam() == PoolingMode::kWeightedMean) {  // with the weights 3 to 7
    for (int64_t c = 0; c < 3; ++c) {
      expected[c] = 0;
      for (int64_t t = 2; t < 7; ++t) expected[c] += static_cast<double>(t + 1) * states[3 * t + c];
      expected[c] /= 3 + 4 + 5 + 6 + 7;
    }
  }
  expect_close<float, double>(pool(states, 3, pooling, 2), expected, 1e-7, "after the prompt");
  EXPECT_EQ(pool(states, 3, pooling, 7), std::vector<float>(3));
  EXPECT_EQ(pool(states, 3, pooling, 9), std::vector<float>(3));
}

INSTANTIATE_TEST_SUITE_P(Modes, PoolingModeTest, testing::ValuesIn(kAllModes),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(PoolingTest, SeveralModesAreConcatenatedInTheirOrderAlsoRepeated) {
  const std::vector<float> states = random_states(9, 4, 2);
  Pooling all{.modes = {kAllModes.rbegin(), kAllModes.rend()}};
  all.modes.push_back(PoolingMode::kMax);
  const std::vector<float> together = pool(states, 4, all);
  ASSERT_EQ(std::ssize(together), all.width(4));
  ASSERT_EQ(together.size(), 28u);
  for (size_t m = 0; m < all.modes.size(); ++m) {
    const std::vector<float> alone = pool(states, 4, {.modes = {all.modes[m]}});
    expect_same_bits(std::span(together).subspan(4 * m, 4), alone,
                     std::string(to_string(all.modes[m])));
  }
  EXPECT_EQ(parse_list<PoolingMode>(to_string(all.modes)), all.modes);
}

TEST(PoolingTest, NormalisedVectorsHaveLengthOneAndTheSameDirection) {
  const std::vector<float> states = random_states(9, 6, 3);
  const Pooling plain{.modes = {PoolingMode::kCls, PoolingMode::kMean}};
  Pooling normalised = plain;
  normalised.normalize = true;
  const std::vector<float> x = pool(states, 6, plain);
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  std::vector<double> expected;
  for (const float value : x) expected.push_back(value / std::sqrt(squares));
  expect_close<float, double>(pool(states, 6, normalised), expected, 1e-6, "normalised");
  const std::vector<float> zero(8, 0.0f);
  EXPECT_EQ(pool(zero, 4, {.normalize = true}), std::vector<float>(4, 0.0f));
  const std::vector<float> large = {3e30f, -4e30f};  // whose squares overflow a float
  expect_close<float, double>(pool(large, 2, {.normalize = true}), std::vector{0.6, -0.8}, 1e-6,
                              "large");
}

TEST(PoolingTest, StepsComeOneAfterTheOther) {
  const Projection dense{.in = 2, .out = 3, .weight = {1, 2, 3, 4, 5, 6}, .bias = {1, 0, -1}};
  const VectorNorm norm{.weight = {1, 2, 3}, .bias = {0, 0, 1}};
  const std::vector<float> states = {3, 4};
  const auto expect_vector = [&](std::vector<PoolingStep> steps, const std::vector<double>& want) {
    expect_close<float, double>(pool(states, 2, {.steps = std::move(steps)}), want, 1e-6, "steps");
  };
  expect_vector({UnitLength()}, {0.6, 0.8});
  expect_vector({UnitLength(), UnitLength()}, {0.6, 0.8});
  expect_vector({UnitLength(), dense}, {1 + 0.6 + 1.6, 1.8 + 3.2, 3 + 4.8 - 1});
  const double length = std::sqrt(12.0 * 12 + 25 * 25 + 38 * 38);
  expect_vector({dense, UnitLength()}, {12 / length, 25 / length, 38 / length});
  const double scale = std::sqrt(2.0 * 13 * 13 / 3 + 1e-5);  // of 12, 25, 38
  expect_vector({dense, norm}, {-13 / scale, 0, 3 * 13 / scale + 1});
  Pooling all{.modes = {PoolingMode::kLastToken}, .steps = {dense}, .normalize = true};
  expect_close<float, double>(pool(std::vector<float>{9, 9, 3, 4}, 2, all),
                              std::vector{12 / length, 25 / length, 38 / length}, 1e-6, "modes");
  EXPECT_EQ((Pooling{.steps = {dense, norm}}).width(2), 3);
  EXPECT_EQ(to_string(Pooling{.steps = {UnitLength(), dense, norm}, .include_prompt = false}),
            "mean after the prompt, normalised, Dense to 3, LayerNorm");
}

TEST(PoolingTest, AProjectionEndsInAnyActivation) {
  for (const std::string_view name : names<Activation>().all) {
    const auto activation = parse<Activation>(name);
    const Projection dense{.in = 1, .out = 1, .weight = {1}, .bias = {0}, .activation = activation};
    for (const float x : {-700.0f, -5.0f, -1.5f, -0.25f, 0.0f, 0.5f, 2.0f, 7.0f, 700.0f}) {
      const double y = pool(std::vector{x}, 1, {.steps = {dense}})[0];
      const double expected = reference::activate(activation, x);
      EXPECT_NEAR(y, expected, 1e-7 * std::max(1.0, std::abs(expected))) << name << " of " << x;
    }
  }
}

TEST(PoolingTest, WhatDoesNotFitIsRefused) {
  const std::vector<float> states(6);
  EXPECT_INVALID(pool(states, 4, {}), {"6 values", "width 4"});
  EXPECT_INVALID(pool({}, 4, {}), {"0 values"});
  EXPECT_INVALID(pool(states, 0, {}), {"width 0"});
  EXPECT_INVALID(pool(states, 3, {.modes = {}}), {"no pooling", "lasttoken"});
  const Projection wide{.in = 4, .out = 1, .weight = {1, 1, 1, 1}, .bias = {0}};
  EXPECT_INVALID(pool(states, 3, {.steps = {wide}}), {"from 4 to 1", "of 3"});
  const VectorNorm narrow{.weight = {1, 1, 1}, .bias = {0, 0}};
  EXPECT_INVALID(pool(states, 3, {.steps = {narrow}}), {"2 biases", "of 3"});
}

TEST(PoolingTest, FiniteStatesGiveAFiniteVectorOrAModelError) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> states(3, most);
  EXPECT_EQ(pool(states, 1, {.modes = {PoolingMode::kMean}}), std::vector<float>{most});
  for (const bool normalize : {false, true}) {
    const Pooling sum{.modes = {PoolingMode::kMeanSqrtLen}, .normalize = normalize};
    EXPECT_REFUSED(pool(states, 1, sum), {"not finite"});
    Pooling dense{.modes = {PoolingMode::kMean}, .normalize = normalize};
    dense.steps = {Projection{.in = 1, .out = 1, .weight = {2}, .bias = {0}}};
    EXPECT_REFUSED(pool(states, 1, dense), {"Dense"});
  }
  const std::vector<float> bad = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isnan(pool(bad, 1, {.modes = {PoolingMode::kMean}})[0]));
}

TEST(SimilarityTest, IsTheCosineTheProductOrMinusADistance) {
  const std::vector<float> a = {3, -4}, b = {4, 3}, zero = {0, 0};
  const std::vector<float> c = {-8, -6};
  EXPECT_EQ(cosine(a, zero), 0);
  EXPECT_EQ(similarity(a, zero, Similarity::kCosine), 0);
  EXPECT_DOUBLE_EQ(similarity(a, a, Similarity::kCosine), 1);
  EXPECT_DOUBLE_EQ(cosine(b, c), -50.0 / 50);
  EXPECT_DOUBLE_EQ(cosine(a, std::vector<float>{4, -3}), 24.0 / 25);
  EXPECT_INVALID(cosine(a, std::vector<float>(3)), {"2", "3"});
  EXPECT_DOUBLE_EQ(similarity(a, b, Similarity::kDot), 12 - 12);
  EXPECT_DOUBLE_EQ(similarity(a, a, Similarity::kDot), 25);
  EXPECT_DOUBLE_EQ(similarity(a, b, Similarity::kEuclidean), -std::sqrt(50));
  EXPECT_DOUBLE_EQ(similarity(a, b, Similarity::kManhattan), -8);
  for (size_t kind = 0; kind < names<Similarity>().all.size(); ++kind)
    EXPECT_INVALID(similarity(a, std::vector<float>(3), static_cast<Similarity>(kind)), {"2", "3"});
  EXPECT_INVALID(similarity(a, b, static_cast<Similarity>(9)), {"similarity", "9", "manhattan"});
}

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
    const auto all = quantize(std::vector{-5.0F, 2.0F, 5.0F, 9.0F}, 2, type, ranges);
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
  EXPECT_INVALID(hamming_distance(one, two), {"1", "2"});
}

TEST(QuantizeTest, WhatDoesNotFitIsRefused) {
  const std::vector<float> five(5);
  const std::vector<std::byte> bytes(5);
  for (const VectorType type : kTypes) {
    EXPECT_INVALID(quantize(five, 2, type), {"5", "2"});
    EXPECT_INVALID(quantize(five, 0, type), {});
    if (vector_bytes(type, 13) > 1) EXPECT_INVALID(dequantize(bytes, 13, type), {"5"});
    EXPECT_TRUE(quantize({}, 3, type, {{0, 0, 0}, {0, 0, 0}}).empty());
  }
  EXPECT_INVALID(quantize(five, 5, VectorType::kInt8), {"int8", "5", "0"});
  EXPECT_INVALID(quantize(five, 5, static_cast<VectorType>(6)), {"6"});
  constexpr int64_t kWide = int64_t{1} << 62;
  EXPECT_INVALID(dequantize({}, kWide, VectorType::kFloat32), {});
  ColumnRanges ranges;
  ranges.add(five, 5);
  EXPECT_INVALID(ranges.add(five, 1), {"1", "5"});
  const float infinite = std::numeric_limits<float>::infinity();
  for (const float number : {infinite, -infinite, std::nanf("")}) {
    const ColumnRanges one = {{0}, {1}};
    EXPECT_INVALID(quantize({&number, 1}, 1, VectorType::kInt8, one), {"no step"});
    for (const ColumnRanges& wrong : {ColumnRanges{{number}, {1}}, {{0}, {number}}, {{2}, {1}}})
      EXPECT_INVALID(dequantize(bytes, 1, VectorType::kUint8, wrong), {"column 0"});
  }
  const float large = 65520;
  EXPECT_INVALID(quantize({&large, 1}, 1, VectorType::kFloat16), {"65520", "65504"});
}

}  // namespace
}  // namespace phasor
