// Which of oneDNN's implementations the linear maps are compiled to.
#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/onednn.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "tests/support/expect_error.h"
#include "tests/support/random_model.h"

namespace phasor {
using namespace internal;

namespace {

std::vector<PrimitiveInfo> primitives(const ModelConfig& config, Precision precision,
                                      const std::vector<std::vector<int32_t>>& sequences) {
  Encoder encoder(random_model(config, 1), {.threads = 2, .precision = precision});
  EXPECT_TRUE(encoder.primitives().empty()) << "nothing has been run";
  EXPECT_TRUE(encoder.replica().primitives().empty());
  encoder.encode_ids(sequences);
  return encoder.primitives();
}

ModelConfig config_of_width(int64_t d_model) {
  ModelConfig config;
  config.family = "random";
  config.d_model = d_model;
  config.d_ff = 4 * d_model;
  config.num_layers = 1;
  config.num_heads = 4;
  config.vocab_size = 20;
  config.max_positions = 64;
  return config;
}

/// dst [1, 1] = src [1, 2] · weights [2, 1]
struct Product {
  explicit Product(const dnnl::engine& engine)
      : matmul(onednn::make_matmul(engine, onednn::dense({1, 2}), onednn::dense({2, 1}), {},
                                   onednn::dense({1, 1}))),
        scratchpad(matmul.scratchpad_bytes()) {
    matmul.set(DNNL_ARG_SRC, src.data());
    matmul.set(DNNL_ARG_WEIGHTS, weights.data());
    matmul.set(DNNL_ARG_DST, &dst);
  }

  std::vector<float> src = {2, 3}, weights = {5, 7};
  float dst = 0;
  onednn::Primitive matmul;
  std::vector<std::byte> scratchpad;
};

TEST(PrimitivesTest, APrimitiveIsMovedAndNeverCopied) {
  static_assert(!std::is_copy_constructible_v<onednn::Primitive>);
  static_assert(!std::is_copy_assignable_v<onednn::Primitive>);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  Product product(engine), other(engine);
  onednn::Primitive moved(std::move(product.matmul));
  moved.run(product.scratchpad.data());
  EXPECT_EQ(product.dst, 31);
  EXPECT_THROW(product.matmul.run(product.scratchpad.data()), BackendError);
  product.dst = 0;
  other.matmul = std::move(moved);
  other.matmul.run(product.scratchpad.data());
  EXPECT_EQ(product.dst, 31);
  EXPECT_EQ(other.dst, 0);
}

TEST(PrimitivesTest, AnEncoderSaysWhatItsLastRunWasCompiledTo) {
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

}  // namespace
}  // namespace phasor
