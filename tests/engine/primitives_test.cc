// That weights are packed as oneDNN expects, and what its matmuls are compiled to.

#include "engine/kernels/kernels.h"
#include "engine/onednn.h"
#include "tests/support/encoder_cases.h"

namespace phasor {
using namespace internal;

namespace {

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
      for (int64_t i = 0; i < in; ++i) {
        for (int64_t o = 0; o < out; ++o) {
          ASSERT_EQ(dst[i * out + o], numbers[o * in + i]) << i << ' ' << o;
        }
      }
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
  EXPECT_EQ(names,
            (std::set<std::string>{"embedding_map", "qkv", "attention", "out", "up", "down"}));
}

// Another layout or an attribute more can make oneDNN fall to a slow implementation in silence.
TEST(PrimitivesTest, MatmulsAreOneDnnsFastOnes) {
  if (!onednn::may_use(dnnl::cpu_isa::avx512_core)) {
    GTEST_SKIP() << "the names are known for AVX-512 alone, which oneDNN may not use here";
  }
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
      for (const char* const name : {"qkv", "attention", "out", "up", "down"}) {
        EXPECT_TRUE(names.contains(name)) << name;
      }
      EXPECT_EQ(names.contains("rotation"), config.position.rotary.has_value());
    }
  }
}

}  // namespace
}  // namespace phasor
