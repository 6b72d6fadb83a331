// The precisions of linear maps: their names, and that what is multiplied is rounded as
// phasor/precision.h says; that weights are packed as oneDNN expects, and what its matmuls become.
#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "engine/packed_weights.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/family_files.h"
#include "tests/support/reference_encoder.h"

namespace phasor {
using namespace internal;

namespace {

constexpr Precision kAll[] = {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8};
constexpr Precision kLower[] = {Precision::kBfloat16, Precision::kInt8};

TEST(PrecisionTest, AutoIsOneThatIsNotSlowHere) {
  const auto model = random_model(small_config(), 1);
  EXPECT_NE(fastest_precision(), Precision::kAuto);
  EXPECT_EQ(why_slow(fastest_precision()), "");
  EXPECT_EQ(why_slow(Precision::kFloat32), "");
  EXPECT_EQ(why_slow(Precision::kAuto), "");
  const Encoder encoder(model, {.precision = Precision::kAuto});
  EXPECT_EQ(encoder.precision(), fastest_precision());
  EXPECT_EQ(Encoder(model).precision(), Precision::kFloat32);
  for (const Precision precision : kAll) {
    const Encoder asked(model, {.precision = precision});
    EXPECT_EQ(asked.precision(), precision) << "slow or not";
  }
}

TEST(PrecisionTest, WhatIsSaidToBeFasterIsNotSlowHere) {
  double last = 1;
  for (const PrecisionGain& gain : precision_gains()) {
    EXPECT_EQ(why_slow(gain.precision), "");
    EXPECT_GT(gain.speed, last) << "or it would cost accuracy for nothing";
    last = gain.speed;
  }
}

/// The rounding of phasor/precision.h, with as many steps as this machine's dot products allow.
reference::Rounding rounding_of(Precision precision, KernelLibrary kernels = KernelLibrary::kOwn) {
  return {.precision = precision,
          .steps = onednn::has_int8_dot_products() ? 254 : 126,
          .symmetric = kernels == KernelLibrary::kOneDnn,
          .attention = attention_products(precision).values_per_float == 2,
          .late = kernels == KernelLibrary::kOneDnn};
}

struct Family {
  std::string name;
  std::shared_ptr<const Model> model;
};

/// One of each family's, with sizes that fill no vector, and heads wider than the kernels' blocks.
std::vector<Family> families() {
  std::vector<Family> models;
  std::vector<FamilyCase> cases = all_families();
  cases.push_back(bert_case());
  cases.back().meaning.family = "wide heads";
  std::set<std::string> seen;
  for (const FamilyCase& family : cases) {
    ModelConfig config = family.meaning;
    if (!seen.insert(config.family).second) continue;
    const bool wide = config.family == "wide heads";
    config.d_model = wide ? 240 : 36;  // 3 heads
    config.d_ff = wide ? 96 : 77;
    config.score_cap = 0;  // queries are divided by it before they are rounded
    if (config.activation == Activation::kGeluErf) {  // is coarse here: see kernels_test.cc
      config.activation = Activation::kGeluTanh;
    }
    models.push_back({config.family, random_model(config, seen.size(),
                                                  {.token_types = family.extras.token_types})});
  }
  return models;
}

/// Whether int8 might round a value of the row to either side, so close is it to the middle.
bool is_near_a_tie(std::span<const double> row, int all_steps) {
  const double range = std::max(0.0, std::ranges::max(row)) - std::min(0.0, std::ranges::min(row));
  return std::any_of(row.begin(), row.end(), [&](double x) {
    const double steps = std::abs(x) / range * all_steps;
    return std::abs(steps - std::floor(steps) - 0.5) < 1e-4;
  });
}

/// Holds `y` against the oracle's map of `x`, row by row. Returns how many rows no tie forbade.
int64_t expect_map(const LinearWeights& weights, const std::vector<float>& x,
                   const std::vector<float>& y, const reference::Rounding& rounding,
                   const std::string& what) {
  const int64_t out = weights.weight.shape[0], in = weights.weight.shape[1];
  const std::vector<double> source(x.begin(), x.end());
  const std::vector<double> expected = reference::linear(weights, source, rounding);
  const auto rows = static_cast<int64_t>(x.size()) / in;
  int64_t checked = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const std::span<const double> row = std::span(source).subspan(n * in, in);
    if (rounding.precision == Precision::kInt8 && is_near_a_tie(row, rounding.steps)) continue;
    expect_close(std::span(y).subspan(n * out, out), std::span(expected).subspan(n * out, out),
                 1e-5, what + ", row " + std::to_string(n));
    ++checked;
  }
  return checked;
}

TEST(PrecisionTest, EveryMapMultipliesWhatWasRoundedAsDocumented) {
  constexpr int64_t kTokens = 12;
  for (const Family& family : families()) {
    const ModelConfig& config = family.model->config();
    const TokenIds ids = random_ids(*family.model, kTokens, 7);
    for (const Precision precision : kLower) {
      Recorder seen;
      Encoder(family.model, {.precision = precision}).encode_ids(ids, {.observer = &seen});
      const reference::Rounding rounding = rounding_of(precision);
      int64_t maps = 0, checked = 0;
      for (int64_t layer = 0; layer < config.num_layers; ++layer) {
        const BlockWeights& block = family.model->weights().blocks[config.block_of(layer)];
        const auto expect = [&](const LinearWeights& weights, Hook from, Hook to) {
          checked += expect_map(weights, seen.values(from, layer), seen.values(to, layer), rounding,
                                family.name + " in " + std::string(to_string(precision)) + ", " +
                                    hook_path(to, layer));
          ++maps;
        };
        if (config.norm_order == NormOrder::kPostNorm) {  // else they read what no hook shows
          expect(block.q, Hook::kResidPre, Hook::kQ);
          expect(block.k, Hook::kResidPre, Hook::kK);
          expect(block.v, Hook::kResidPre, Hook::kV);
        }
        if (config.branch_norms) continue;
        expect(block.out, Hook::kZ, Hook::kAttnOut);
        expect(block.down, Hook::kMlpPost, Hook::kMlpOut);
      }
      EXPECT_GE(checked, maps * kTokens * 8 / 10) << family.name << ": too many rows near a tie";
    }
  }
}

/// ‖a − b‖ / ‖b‖
template <typename T, typename U>
double relative_error(std::span<const T> a, std::span<const U> b) {
  double difference = 0, length = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / length);
}

// Engine and oracle know a value to six digits. Now and then it lies so near the middle of two
// levels that they round it to different sides, and the rest of the network sees that, as it sees
// all rounding. No such value occurs in most sequences; the best of six has none.
TEST(PrecisionTest, WholeNetworksAgreeWithTheOracleOfTheSameRounding) {
  for (const Family& family : families()) {
    for (const Precision precision : kLower) {
      const std::string what = family.name + " in " + std::string(to_string(precision));
      Encoder encoder(family.model, {.precision = precision}), f32(family.model);
      Encoder onednn(family.model, {.precision = precision, .kernels = KernelLibrary::kOneDnn});
      std::vector<double> errors, of_onednn;
      for (uint64_t seed = 0; seed < 6; ++seed) {
        const TokenIds ids = random_ids(*family.model, 8, seed);
        const auto rounded = [&](KernelLibrary kernels) {
          return reference::encode(*family.model, ids, {}, rounding_of(precision, kernels)).hidden;
        };
        const std::vector<double> own = rounded(KernelLibrary::kOwn);
        const Encoding got = encoder.encode_ids(ids), exact = f32.encode_ids(ids);
        const double cost = relative_error<double, float>(own, exact[0].hidden);
        EXPECT_LT(cost, precision == Precision::kInt8 ? 0.05 : 0.01) << what;
        errors.push_back(relative_error<float, double>(got[0].hidden, own));
        EXPECT_LT(errors.back(), cost) << what;
        const Encoding other = onednn.encode_ids(ids);
        of_onednn.push_back(
            relative_error<float, double>(other[0].hidden, rounded(KernelLibrary::kOneDnn)));
        EXPECT_LT(of_onednn.back(), cost) << what;
      }
      EXPECT_LT(*std::min_element(errors.begin(), errors.end()), 2e-6) << what;
      EXPECT_LT(std::ranges::min(of_onednn), 2e-6) << what << " of oneDNN";
    }
  }
}

/// One layer of width 2 whose MLP's second map reads `in` [d_ff] for every token, by way of the
/// first one's bias, and multiplies them by `down` [2, d_ff].
std::shared_ptr<const Model> mlp_of(const std::vector<float>& in, const std::vector<float>& down) {
  ModelConfig config = small_config();
  config.d_model = 2;
  config.num_heads = config.num_layers = 1;
  config.d_ff = std::ssize(in);
  config.activation = Activation::kRelu;
  return random_model(config, 8, {.change = [&](Weights& weights) {
                        const BlockWeights& block = weights.blocks[0];
                        std::ranges::fill(drawn_values(block.up.weight), 0.0f);
                        std::ranges::copy(in, drawn_values(block.up.bias).begin());
                        std::ranges::copy(down, drawn_values(block.down.weight).begin());
                      }});
}

/// Whole numbers from 0 to `largest` over it, which no rounding to levels can move, with a 1.
std::vector<float> on_levels(int64_t count, int largest, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(random() % (largest + 1)) / static_cast<float>(largest);
  values.front() = 1;
  return values;
}

TEST(PrecisionTest, Int8SumsAreExactUpToTheWidestMap) {
  const reference::Rounding rounding = rounding_of(Precision::kInt8);
  const int64_t width = max_int8_width();
  // Of width inputs, each of one more than the steps at most, by weights of at most 127.
  EXPECT_LE(width * (rounding.steps + 1) * 127, int64_t{INT32_MAX});
  EXPECT_GT((width + 1) * (rounding.steps + 1) * 127, int64_t{INT32_MAX});
  std::vector<float> extreme(2 * width, 1.0f);  // the largest sum of all, and the smallest
  std::fill_n(&extreme[width], width, -1.0f);
  std::vector<float> mixed = on_levels(2 * width, 127, 1);
  for (size_t i = 0; i < mixed.size(); i += 3) mixed[i] = -mixed[i];
  mixed[width] = 1;
  std::vector<float> one(width);  // which is what is left of two sums of 2^30
  one.front() = 1;
  for (const auto& inputs :
       {std::vector<float>(width, 1.0f), one, on_levels(width, rounding.steps, 2)}) {
    for (const auto& down : {extreme, mixed}) {
      const auto model = mlp_of(inputs, down);
      Recorder seen;
      Encoder(model, {.precision = Precision::kInt8})
          .encode_ids(TokenIds{1, 2, 3}, {.observer = &seen});
      EXPECT_EQ(expect_map(model->weights().blocks[0].down, seen.values(Hook::kMlpPost, 0),
                           seen.values(Hook::kMlpOut, 0), rounding, "the widest map"),
                3);
    }
  }
}

TEST(PrecisionTest, Int8TakesNumbersTooSmallToDivideByForZeros) {
  const std::vector<float> one = {1, 1, 1, 1}, tiny = {0, 1e-37f, 0, 1e-40f};
  std::vector<float> weights = tiny;
  weights.insert(weights.end(), one.begin(), one.end());
  for (const KernelLibrary kernels : {KernelLibrary::kOwn, KernelLibrary::kOneDnn}) {
    for (const auto& inputs : {one, tiny}) {
      const auto model = mlp_of(inputs, weights);
      Recorder seen;
      Encoder(model, {.precision = Precision::kInt8, .kernels = kernels})
          .encode_ids(TokenIds{1}, {.observer = &seen});
      EXPECT_EQ(expect_map(model->weights().blocks[0].down, seen.values(Hook::kMlpPost, 0),
                           seen.values(Hook::kMlpOut, 0), rounding_of(Precision::kInt8, kernels),
                           "tiny numbers"),
                1);
    }
  }
}

TEST(PrecisionTest, Int8RefusesAMapWhoseSumsMayOverflowAndAutoLeavesItAside) {
  const int64_t width = max_int8_width() + 1;
  const auto model = mlp_of(std::vector<float>(width, 1.0f), std::vector<float>(2 * width, 1.0f));
  expect_error<InvalidArgument>(
      [&] { Encoder encoder(model, {.precision = Precision::kInt8}); },
      {std::to_string(width), std::to_string(max_int8_width()), "int8", "f32 or bf16"});
  Encoder chosen(model, {.precision = Precision::kAuto});
  EXPECT_EQ(chosen.precision(),
            onednn::has_fast_bfloat16() ? Precision::kBfloat16 : Precision::kFloat32);
  const Encoding result = chosen.encode_ids(TokenIds{1, 2}),
                 exact = Encoder(model).encode_ids(TokenIds{1, 2});
  expect_close(result[0].hidden, exact[0].hidden, 0.05, "auto");
}

TEST(PrecisionTest, Int8TakesAQuarterOfTheMemory) {
  ModelConfig config = small_config();
  config.num_heads = 4;  // sizes that no layout pads
  config.d_model = 128;
  config.d_ff = 512;
  const auto model = random_model(config, 1);
  const auto bytes = [&](Precision precision) {
    return static_cast<double>(Encoder(model, {.precision = precision}).packed_bytes());
  };
  EXPECT_LT(bytes(Precision::kInt8), 0.3 * bytes(Precision::kFloat32));
}

TEST(PrecisionTest, PackedBytesAreCountedAhead) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  for (uint64_t seed = 1; seed < kFirstBlocksSeed + 30; ++seed) {
    const auto model = drawn_model(seed);
    for (const Precision precision : kAll) {
      EXPECT_EQ(packed_bytes(*model, engine, precision, KernelLibrary::kOwn),
                Encoder(model, {.threads = 1, .precision = precision}).packed_bytes())
          << seed << ' ' << to_string(precision);
    }
  }
}

TEST(PrecisionTest, PackingTakesNoMoreThanInProportionToTheWeights) {
  ModelConfig narrow = small_config();  // its columns are filled up
  narrow.num_heads = 1;
  narrow.d_model = 1;
  narrow.d_ff = 1 << 20;
  const ModelConfig far =  // a bias for each offset and head
      small_config({.bias = ScoreBias::kBuckets, .num_buckets = 32, .max_distance = 1 << 23});
  ModelConfig relative =  // keys and queries of each bucket in each layer
      small_config({.disentangled = DisentangledConfig{.num_buckets = 4096, .max_distance = 0}});
  relative.num_layers = 500;
  for (const ModelConfig& config : {narrow, far, relative}) {
    const auto model = random_model(config, 1);
    EXPECT_REFUSED(Encoder(model, {.threads = 1}), {"packed weights"});
  }
}

std::vector<PrimitiveInfo> primitives(const ModelConfig& config, Precision precision,
                                      const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<PrimitiveInfo> primitives;
  Encoder(random_model(config, 1), {.threads = 2, .precision = precision})
      .encode_ids(sequences, {.primitives = &primitives});
  return primitives;
}

ModelConfig config_of_width(int64_t d_model) {
  ModelConfig config = small_config();
  config.d_model = d_model;
  config.d_ff = 4 * d_model;
  config.num_layers = 1;
  config.num_heads = 4;
  return config;
}

/// That dst [in, out] = I [in, in] · packed weights is the transpose of the weights [out, in]:
/// whole numbers, of which `source` and `weight` make the matmul's values.
template <typename Result, typename ToSource, typename ToWeight>
void expect_packed(const onednn::MatmulTypes& types, ToSource source, ToWeight weight) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  std::mt19937 random(1);
  const std::vector<int64_t> sizes = {1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 65, 100, 200, 257};
  for (const int64_t in : sizes) {
    std::vector<decltype(source(0))> identity(in * in, source(0));
    for (int64_t i = 0; i < in; ++i) identity[i * in + i] = source(1);
    for (const int64_t out : sizes) {
      SCOPED_TRACE(fmt::format("{} x {}", in, out));
      std::vector<int> numbers(out * in);
      std::vector<decltype(weight(0))> weights;
      for (int& number : numbers) {
        number = static_cast<int>(random() % 255) - 127;
        weights.push_back(weight(number));
      }
      const onednn::Desc layout = onednn::preferred_weights(engine, in, out, types);
      std::vector<std::byte> place(layout.get_size(), std::byte{0xff});  // NaN, where not written
      const dnnl::memory packed = onednn::pack(engine, weights.data(), layout, place.data());
      onednn::Primitive matmul =
          onednn::make_matmul(engine, onednn::dense({in, in}, types.src), layout, {},
                              onednn::dense({in, out}, types.dst));
      std::vector<Result> dst(in * out);
      std::vector<std::byte> scratchpad(matmul.scratchpad_bytes());
      matmul.set(DNNL_ARG_SRC, identity.data());
      matmul.set(DNNL_ARG_WEIGHTS, packed);
      matmul.set(DNNL_ARG_DST, dst.data());
      matmul.run(scratchpad.data());
      for (int64_t i = 0; i < in; ++i)
        for (int64_t o = 0; o < out; ++o)
          ASSERT_EQ(dst[i * out + o], numbers[o * in + i]) << i << ' ' << o;
    }
  }
}

// It is moved, and never copied.
static_assert(!std::is_copy_constructible_v<onednn::Primitive>);
static_assert(!std::is_copy_assignable_v<onednn::Primitive>);

TEST(PrimitivesTest, PackedWeightsAreTheWeights) {
  using onednn::Type;
  const auto to_float = [](int number) { return static_cast<float>(number); };
  expect_packed<float>({}, to_float, to_float);
  expect_packed<int32_t>(
      {Type::u8, Type::s8, Type::s32}, [](int number) { return static_cast<uint8_t>(number); },
      [](int number) { return static_cast<int8_t>(number); });
  if (!onednn::has_fast_bfloat16()) return;
  const auto to_bfloat16 = [](int number) {
    const auto value = static_cast<float>(number);
    uint16_t half = 0;
    kernels().to_bfloat16(&value, 1, &half);
    return half;
  };
  expect_packed<float>({Type::bf16, Type::bf16, Type::f32}, to_bfloat16, to_bfloat16);
}

TEST(PrimitivesTest, ARunSaysWhatItWasCompiledTo) {
  EXPECT_EQ(std::ranges::count(Encoder::backend_version(), '.'), 2) << Encoder::backend_version();
  ModelConfig config = config_of_width(8);
  config.d_embedding = 4;
  std::set<std::string> names;
  for (const PrimitiveInfo& primitive :
       primitives(config, Precision::kFloat32, {8, std::vector<int32_t>{1, 2, 3}})) {
    EXPECT_TRUE(names.insert(primitive.name).second) << primitive.name << " stands twice";
    EXPECT_FALSE(primitive.implementation.empty()) << primitive.name;
  }
  EXPECT_EQ(names, (decltype(names){"embedding_map", "qkv", "attention", "out", "up", "down"}));
}

// Another layout or an attribute more can make oneDNN fall to a slow implementation in silence.
TEST(PrimitivesTest, MatmulsAreOneDnnsFastOnes) {
  if (!onednn::may_use(dnnl::cpu_isa::avx512_core))
    GTEST_SKIP() << "the names are known for AVX-512 alone, which oneDNN may not use here";
  std::vector<Precision> precisions = {Precision::kFloat32};
  if (onednn::has_fast_bfloat16()) precisions.push_back(Precision::kBfloat16);
  if (onednn::has_int8_dot_products()) precisions.push_back(Precision::kInt8);
  for (const Precision precision : precisions) {
    for (const int64_t num_tokens : {1, 7, 60}) {
      const std::vector<std::vector<int32_t>> sequences(3, std::vector<int32_t>(num_tokens, 2));
      for (const PrimitiveInfo& primitive : primitives(config_of_width(64), precision, sequences)) {
        if (primitive.name == "attention") continue;
        EXPECT_TRUE(primitive.implementation.starts_with("brg"))
            << to_string(precision) << ", " << primitive.name << ", " << num_tokens
            << " tokens: " << primitive.implementation;
      }
    }
  }
}

/// oneDNN's primitives for every step of a block, and none of its slow references.
TEST(PrimitivesTest, StepsOfOneDnnAreItsFastOnes) {
  ModelConfig bert = config_of_width(64);
  ModelConfig rotary = bert;
  rotary.norm_order = NormOrder::kPreNorm;
  rotary.norm = NormKind::kRmsNorm;
  rotary.gated_mlp = rotary.final_norm = true;
  rotary.position.rotary = RotaryConfig{};
  for (const ModelConfig& config : {bert, rotary}) {
    for (const Precision precision :
         {Precision::kFloat32, Precision::kBfloat16, Precision::kInt8}) {
      Encoder encoder(random_model(config, 1),
                      {.precision = precision, .kernels = KernelLibrary::kOneDnn});
      EXPECT_EQ(encoder.kernels(), KernelLibrary::kOneDnn);
      std::vector<PrimitiveInfo> primitives;
      encoder.encode_ids(std::vector<int32_t>(20, 3), {.primitives = &primitives});
      std::set<std::string> names;
      for (const auto& [name, implementation] : primitives) {
        names.insert(name);
        EXPECT_EQ(implementation.find("ref"), std::string::npos) << name << ": " << implementation;
      }
      for (const char* const name : {"qkv", "attention", "out", "up", "down"})
        EXPECT_TRUE(names.contains(name)) << name;
      EXPECT_EQ(names.contains("rotation"), config.position.rotary.has_value());
    }
  }
}

}  // namespace
}  // namespace phasor
