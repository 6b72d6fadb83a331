// Counting a model's matmuls and timing them by themselves.
#include <gtest/gtest.h>

#include "engine/packed_weights.h"
#include "infer/commands/bench/matmul_limit.h"
#include "phasor/errors.h"
#include "tests/support/random_model.h"

namespace phasor {
using namespace infer;
namespace {

/// C 8, H 2, D 4, F 24, L 3.
ModelConfig config_of_size_8() {
  ModelConfig config;
  config.d_model = 8;
  config.d_ff = 24;
  config.num_layers = 3;
  config.num_heads = 2;
  config.vocab_size = 11;
  return config;
}

/// [rows, in] · [in, out].
double matmul(double rows, double in, double out) { return 2 * rows * in * out; }

TEST(MatmulLimitTest, OperationsAreThoseOfEveryMatmulOfAPlainEncoder) {
  const std::vector<int64_t> lengths = {5, 2};
  const double linear = 4 * matmul(7, 8, 8) + matmul(7, 8, 24) + matmul(7, 24, 8);
  // Of two heads: scores, and the values mixed.
  const double attention = 2 * (matmul(5, 4, 5) + matmul(5, 5, 4) + matmul(2, 4, 2) * 2);
  EXPECT_EQ(matmul_operations(config_of_size_8(), lengths), 3 * (linear + attention));
}

TEST(MatmulLimitTest, GatedMlpsWideHeadsAndEmbeddingMapsCount) {
  ModelConfig config = config_of_size_8();
  config.gated_mlp = true;
  config.d_head = 6;
  config.d_embedding = 5;
  config.num_layer_groups = 1;  // shared weights are multiplied in each layer
  const double linear =
      3 * matmul(7, 8, 12) + matmul(7, 12, 8) + 2 * matmul(7, 8, 24) + matmul(7, 24, 8);
  const double attention = 2 * (matmul(7, 6, 7) + matmul(7, 7, 6));
  EXPECT_EQ(matmul_operations(config, std::vector<int64_t>{7}),
            3 * (linear + attention) + matmul(7, 5, 8));
}

TEST(MatmulLimitTest, AttentionTakesItsTimeAtTheBestRateAndMapsTakeTheirsInEveryLayer) {
  ModelConfig config = config_of_size_8();
  config.num_layers = 30;
  const MatmulLimit limit(config, {.threads = 1, .seconds = 0.01});
  const std::vector<int64_t> whole = {10'000}, halves = {5'000, 5'000};
  const auto at_best = [&](const std::vector<int64_t>& lengths) {
    return matmul_operations(config, lengths) / limit.best_rate();
  };
  // A sequence attends twice as much as its two halves do, which pass the same maps.
  const double attention = limit.seconds(whole) - limit.seconds(halves);
  const double best_attention = at_best(whole) - at_best(halves);
  EXPECT_NEAR(attention / best_attention, 1, 1e-9);
  EXPECT_GE((limit.seconds(halves) - attention) * (1 + 1e-9), at_best(halves) - best_attention);
}

TEST(MatmulLimitTest, ItIsMeasuredOnSeveralThreadsAtOnce) {
  const MatmulLimit limit(config_of_size_8(), {.threads = 4, .seconds = 0.01});
  EXPECT_GT(limit.best_rate(), 0);
}

TEST(MatmulLimitTest, WhatNoEncoderCanHaveIsRefused) {
  EXPECT_THROW(MatmulLimit(config_of_size_8(), {.threads = -1}), InvalidArgument);
  EXPECT_THROW(MatmulLimit(ModelConfig{}), InvalidArgument);
  ModelConfig wide = config_of_size_8();
  wide.d_ff = internal::max_int8_width() + 1;
  EXPECT_THROW(MatmulLimit(wide, {.threads = 1, .precision = Precision::kInt8}), InvalidArgument);
}

}  // namespace
}  // namespace phasor
