// The two-way split against its definition, and the Latin square and the corpus against what must
// hold exactly: no rest before the first norm, no position without positions.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "phasor/errors.h"
#include "phasor/lens/order.h"
#include "phasor/lens/split.h"
#include "phasor/trace.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/expect_close.h"

namespace phasor {
namespace {

using Places = std::vector<int64_t>;

Places places_up_to(int64_t num_tokens) {
  Places places;
  for (int64_t t = 0; t < num_tokens; ++t) places.push_back(t);
  return places;
}

/// States h_{p,g} [P, G, C], split by the definition, each mean and each part by itself.
struct DirectSplit {
  DirectSplit(std::vector<double> states, int64_t P, int64_t G, int64_t C)
      : mean(C), position(P * C), group(G * C) {
    const auto h = [&](int64_t p, int64_t g, int64_t c) { return states[(p * G + g) * C + c]; };
    double total = 0, by_position = 0, by_group = 0, rest = 0;
    for (int64_t c = 0; c < C; ++c) {
      for (int64_t p = 0; p < P; ++p) {
        for (int64_t g = 0; g < G; ++g) mean[c] += h(p, g, c) / static_cast<double>(P * G);
      }
      for (int64_t p = 0; p < P; ++p) {
        double sum = 0;
        for (int64_t g = 0; g < G; ++g) sum += h(p, g, c) - mean[c];
        position[p * C + c] = sum / static_cast<double>(G);
      }
      for (int64_t g = 0; g < G; ++g) {
        double sum = 0;
        for (int64_t p = 0; p < P; ++p) sum += h(p, g, c) - mean[c];
        group[g * C + c] = sum / static_cast<double>(P);
      }
      for (int64_t p = 0; p < P; ++p) {
        for (int64_t g = 0; g < G; ++g) {
          const double moved = h(p, g, c) - mean[c];
          total += moved * moved;
          by_position += position[p * C + c] * position[p * C + c];
          by_group += group[g * C + c] * group[g * C + c];
          const double left = moved - position[p * C + c] - group[g * C + c];
          rest += left * left;
        }
      }
    }
    shares = {by_position / total, by_group / total, rest / total};
    variance = total / static_cast<double>(P * G);
  }

  std::vector<double> mean, position, group;
  std::vector<double> shares;  // position, group, rest
  double variance;
};

std::vector<double> shares_of(const Split& split) {
  return {split.position, split.group, split.rest};
}

/// To `tolerance` of the states' deviation √(mean ‖h − μ‖²).
void expect_near(std::span<const double> actual, std::span<const double> expected, double deviation,
                 double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance * deviation) << what << ", element " << i;
  }
}

void expect_split(const Split& split, const DirectSplit& direct, double tolerance) {
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(shares_of(split)[i], direct.shares[i], tolerance) << i;
  EXPECT_NEAR(split.variance, direct.variance, tolerance * direct.variance);
  const double deviation = std::sqrt(direct.variance);
  expect_near(split.mean, direct.mean, deviation, tolerance, "mean");
  expect_near(split.position_means, direct.position, deviation, tolerance, "positions");
  expect_near(split.group_means, direct.group, deviation, tolerance, "groups");
}

void expect_sums_to_one(const Split& split) {
  EXPECT_NEAR(split.position + split.group + split.rest, 1.0, 1e-12);
}

std::vector<float> random_states(int64_t count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng() % 2001) / 1000.0f - 1.0f;
  return values;
}

/// Splits states [P, G, C].
Split split_of(const std::vector<float>& states, int64_t P, int64_t G, int64_t C) {
  TwoWaySplit split(P, G, C);
  for (int64_t pair = 0; pair < P * G; ++pair) {
    split.add(pair / G, pair % G, std::span(states).subspan(pair * C, C));
  }
  return split.result();
}

TEST(TwoWaySplitTest, EqualsTheDefinitionAndPythagorasHolds) {
  for (const float common : {0.0f, 1000.0f}) {
    std::vector<float> states = random_states(3 * 5 * 7, 1);
    for (float& value : states) value += common;
    const DirectSplit direct({states.begin(), states.end()}, 3, 5, 7);
    EXPECT_NEAR(direct.shares[0] + direct.shares[1] + direct.shares[2], 1.0, 1e-12);
    const Split split = split_of(states, 3, 5, 7);
    expect_split(split, direct, 1e-10);
    expect_sums_to_one(split);
  }
}

TEST(TwoWaySplitTest, SumsOfAPositionAndAGroupHaveNoRest) {
  // h = (p², 2^g)
  std::vector<float> states;
  for (int p = 0; p < 3; ++p) {
    for (int g = 0; g < 4; ++g) states.insert(states.end(), {float(p * p), float(1 << g)});
  }
  const Split split = split_of(states, 3, 4, 2);
  EXPECT_NEAR(split.rest, 0.0, 1e-15);
  EXPECT_NEAR(split.mean[0], 5.0 / 3, 1e-15);
  EXPECT_NEAR(split.mean[1], 15.0 / 4, 1e-15);
  EXPECT_NEAR(split.position_means[2 * 2], 4 - 5.0 / 3, 1e-15);
  EXPECT_NEAR(split.group_means[3 * 2 + 1], 8 - 15.0 / 4, 1e-15);
  EXPECT_NEAR(split.position_means[2 * 2 + 1], 0.0, 1e-15);
  EXPECT_NEAR(split.group_means[3 * 2], 0.0, 1e-15);
}

TEST(TwoWaySplitTest, RandomStatesScoreTheirDegreesOfFreedom) {
  const Split split = split_of(random_states(4 * 8 * 5000, 3), 4, 8, 5000);
  EXPECT_NEAR(split.position, 3.0 / 31, 0.01);
  EXPECT_NEAR(split.group, 7.0 / 31, 0.01);
  EXPECT_NEAR(position_group_cosine(split), std::sqrt(2 / (std::numbers::pi * 5000)), 0.005);
}

TEST(TwoWaySplitTest, WhereNothingVariesAllSharesAreZero) {
  const Split one = split_of({1, 2}, 1, 1, 2);
  const Split equal = split_of({3, 4, 3, 4, 3, 4, 3, 4}, 2, 2, 2);
  std::vector<float> nearly = {3, 4, 3, 4, 3, 4, 3, 4};
  nearly[0] = std::nextafter(3.0f, 4.0f);
  for (const Split& split : {one, equal, split_of(nearly, 2, 2, 2)}) {
    EXPECT_EQ(shares_of(split), (std::vector<double>{0, 0, 0}));
  }
  EXPECT_EQ(one.mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(one.variance, 0.0);
  EXPECT_EQ(position_group_cosine(equal), 0.0);
}

TEST(TwoWaySplitTest, PositionsThatDifferByRoundingHaveNoShareAndNoDirection) {
  std::vector<float> states = random_states(4 * 5, 12);  // of the groups
  for (float& value : states) value += 3;
  for (int p = 1; p < 6; ++p) {
    for (int i = 0; i < 4 * 5; ++i) {
      states.push_back(std::nextafter(states[i], (p + i) % 3 == 0 ? 0.0f : 9.0f));
    }
  }
  const Split split = split_of(states, 6, 4, 5);
  EXPECT_EQ(split.position, 0);
  EXPECT_EQ(split.position_means, std::vector<double>(6 * 5));
  EXPECT_EQ(position_group_cosine(split), 0);
  EXPECT_EQ(smoothness(split.position_means, 5), 0);
  EXPECT_NEAR(split.group, 1, 1e-12);
  expect_sums_to_one(split);
}

TEST(TwoWaySplitTest, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(TwoWaySplit(0, 1, 1), InvalidArgument);
  EXPECT_THROW(TwoWaySplit(1, 1, 0), InvalidArgument);
  TwoWaySplit split(2, 1, 2);
  const std::vector<float> state = {1, 2};
  EXPECT_THROW(split.add(2, 0, state), InvalidArgument);
  EXPECT_THROW(split.add(0, 1, state), InvalidArgument);
  EXPECT_THROW(split.add(0, 0, std::vector<float>{1}), InvalidArgument);
  split.add(0, 0, state);
  EXPECT_THROW(split.add(0, 0, state), InvalidArgument);
  EXPECT_THROW(split.result(), InvalidArgument);
  split.add(1, 0, state);
  EXPECT_NO_THROW(split.result());
}

/// The states of `sequences`, run one by one, at `places`: [L + 1] of [P, G, C].
std::vector<DirectSplit> direct_splits(const std::shared_ptr<const Model>& model,
                                       const std::vector<TokenIds>& sequences, const Places& places,
                                       bool rotations) {
  const auto P = std::ssize(places), G = std::ssize(sequences);
  const int64_t C = model->config().d_model;
  std::vector<std::vector<double>> states(model->config().num_layers + 1);
  for (auto& layer : states) layer.resize(P * G * C);
  Encoder encoder(model, {.threads = 1});
  for (int64_t s = 0; s < G; ++s) {
    Trace trace = Trace::hidden_states_and_attentions();
    encoder.encode_ids(sequences[s], {.observer = &trace});
    for (size_t l = 0; l < states.size(); ++l) {
      const std::vector<float>& h = trace.hidden_state(l).values;
      for (int64_t p = 0; p < P; ++p) {
        const int64_t g = rotations ? (p + s) % G : s;
        std::copy_n(&h[places[p] * C], C, &states[l][(p * G + g) * C]);
      }
    }
  }
  std::vector<DirectSplit> splits;
  for (auto& layer : states) splits.emplace_back(std::move(layer), P, G, C);
  return splits;
}

TEST(LatinSquareTest, EqualsTheDefinitionOverAllRotations) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    const TokenIds ids = random_ids(*model, 7, seed);
    const Places movable = {1, 2, 3, 5};  // 0, 4 and 6 stay
    std::vector<TokenIds> rotations;
    for (int r = 0; r < 4; ++r) {
      TokenIds rotated = ids;
      for (int i = 0; i < 4; ++i) rotated[movable[i]] = ids[movable[(i + r) % 4]];
      rotations.push_back(rotated);
    }
    Encoder encoder(model, {.threads = 3});
    const std::vector<Split> splits = latin_square_split(encoder, ids, movable);
    const std::vector<DirectSplit> direct = direct_splits(model, rotations, movable, true);
    ASSERT_EQ(splits.size(), direct.size());
    for (size_t l = 0; l < splits.size(); ++l) {
      expect_split(splits[l], direct[l], 1e-5);
      if (splits[l].variance > 0) expect_sums_to_one(splits[l]);
    }
  }
}

ModelConfig sinusoidal_config(NormOrder order) {
  ModelConfig config = small_config();
  config.norm_order = order;
  config.position.kind = PositionKind::kSinusoidal;
  return config;
}

/// Rows less their mean.
std::vector<double> centred(const std::vector<float>& rows, int64_t width) {
  std::vector<double> values(rows.begin(), rows.end());
  for (int64_t c = 0; c < width; ++c) {
    double mean = 0;
    for (size_t i = c; i < rows.size(); i += width) mean += rows[i];
    mean /= static_cast<double>(rows.size() / width);
    for (size_t i = c; i < rows.size(); i += width) values[i] -= mean;
  }
  return values;
}

TEST(LatinSquareTest, BeforeTheFirstNormThePartsAreThePositionsAndTheTokensVectors) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 5);
  const TokenIds ids = {3, 14, 15, 9, 2, 6};
  Encoder encoder(model);
  const Split split = latin_square_split(encoder, ids, places_up_to(6))[0];
  EXPECT_LT(split.rest, 1e-12);
  expect_sums_to_one(split);
  expect_close<double, double>(split.position_means,
                               centred(encoder.model().position_vectors(6), 15), 1e-6, "positions");
  std::vector<float> tokens(6 * 15);
  for (int t = 0; t < 6; ++t) {
    model->weights().token_embedding.copy_to(&tokens[t * 15], ids[t] * 15, 15);
  }
  expect_close<double, double>(split.group_means, centred(tokens, 15), 1e-6, "tokens");
}

TEST(LatinSquareTest, WithoutPositionsThePositionShareIsZeroAtEveryLayer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto model = drawn_model(seed);
    Encoder encoder(model);
    for (const Split& split :
         latin_square_split(encoder, random_ids(*model, 9, seed), {{1, 2, 3, 4, 6, 7}},
                            {.positions = Positions::none()})) {
      EXPECT_LT(split.position, 1e-9) << "seed " << seed;
      EXPECT_LT(split.rest, 1e-9) << "seed " << seed;
      EXPECT_NEAR(split.group, 1.0, 1e-9) << "seed " << seed;
    }
  }
}

TEST(LatinSquareTest, OfTheTwinsThatWithoutPositionsHasNoneAndTheOthersMixThem) {
  for (const char* twin : {"sinusoidal", "learned", "none"}) {
    SCOPED_TRACE(twin);
    const auto model = Model::load(twin);
    Encoder encoder(model);
    const TokenIds ids = model->tokenizer().encode("The old man gave the boy a book.").ids;
    const bool has_positions = std::string(twin) != "none";
    for (const Split& split : latin_square_split(encoder, ids, places_up_to(std::ssize(ids)))) {
      expect_sums_to_one(split);
      EXPECT_EQ(split.position > 1e-3, has_positions) << split.position;
      EXPECT_TRUE(has_positions || split.position < 1e-9) << split.position;
    }
  }
}

TEST(LatinSquareTest, EqualTokensLeavePositionAloneAndOneTokenNothing) {
  for (const NormOrder order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const auto model = random_model(sinusoidal_config(order), 6);
    Encoder encoder(model);
    for (const Split& split :
         latin_square_split(encoder, TokenIds{1, 7, 7, 7, 7, 2}, {{1, 2, 3, 4}})) {
      EXPECT_NEAR(split.position, 1.0, 1e-9);
      EXPECT_LT(split.group, 1e-9);
    }
    for (const TokenIds& ids : {TokenIds{7}, TokenIds{1, 7, 2}}) {
      const int64_t place = std::ssize(ids) / 2;
      for (const Split& split : latin_square_split(encoder, ids, {{place}})) {
        EXPECT_EQ(shares_of(split), (std::vector<double>{0, 0, 0}));
      }
    }
  }
}

void expect_same_splits(const std::vector<Split>& a, const std::vector<Split>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t l = 0; l < a.size(); ++l) {
    EXPECT_EQ(shares_of(a[l]), shares_of(b[l]));
    EXPECT_EQ(a[l].position_means, b[l].position_means);
    EXPECT_EQ(a[l].group_means, b[l].group_means);
  }
}

TEST(LatinSquareTest, DependsNeitherOnThreadsNorOnBatches) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPreNorm), 8);
  const TokenIds ids = random_ids(*model, 70, 4);
  const Places places = places_up_to(70);
  Encoder one(model, {.threads = 1}), four(model, {.threads = 4});
  std::vector<int64_t> done;
  const auto progress = [&](int64_t count, int64_t total) {
    EXPECT_EQ(total, 70);
    done.push_back(count);
  };
  const std::vector<Split> splits = latin_square_split(one, ids, places, {}, progress);
  EXPECT_EQ(done, (std::vector<int64_t>{58, 70}));  // 4096 / 70 rotations, and the others
  expect_same_splits(latin_square_split(four, ids, places), splits);
  // The same positions, but told one by one: so that every rotation is a run of its own.
  std::vector<int32_t> position_ids(70);
  for (int32_t t = 0; t < 70; ++t) position_ids[t] = t;
  done.clear();
  const RunOptions told = {.positions = Positions().at(position_ids)};
  expect_same_splits(latin_square_split(four, ids, places, told, progress), splits);
  EXPECT_EQ(done.size(), 70u);
}

TEST(LatinSquareTest, AcceptsFiveHundredTokens) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 8);
  Encoder encoder(model, {.threads = 2});
  const TokenIds ids = random_ids(*model, 512, 4);
  const std::vector<Split> splits = latin_square_split(encoder, ids, places_up_to(512));
  EXPECT_LT(splits[0].rest, 1e-12);
  for (const Split& split : splits) expect_sums_to_one(split);
}

TEST(LatinSquareTest, AWindowedTextIsSplitAndATruncatedOneRefused) {
  ModelConfig config = small_config();
  config.position.kind = PositionKind::kLearned;  // of 12 rows
  const auto model = random_model(config, 2);
  Encoder encoder(model);
  const TokenIds ids = random_ids(*model, 15, 4);
  for (const Split& split :
       latin_square_split(encoder, ids, places_up_to(15), {.overflow = Overflow::kWindow})) {
    expect_sums_to_one(split);
  }
  const RunOptions truncate = {.overflow = Overflow::kTruncate};
  EXPECT_THROW(latin_square_split(encoder, ids, places_up_to(15), truncate), InvalidArgument);
  EXPECT_THROW(latin_square_split(encoder, ids, places_up_to(15)), InvalidArgument);
}

TEST(LatinSquareTest, PlacesThatAreNoneAreRefused) {
  const auto model = random_model(small_config(), 1);
  Encoder encoder(model);
  const TokenIds ids = {1, 2, 3};
  for (const Places& places : {Places{}, Places{3}, Places{-1}, Places{1, 1}, Places{2, 1}}) {
    EXPECT_THROW(latin_square_split(encoder, ids, places), InvalidArgument);
    EXPECT_THROW(corpus_split(encoder, std::vector{ids, ids}, places), InvalidArgument);
  }
  EXPECT_THROW(latin_square_split(encoder, TokenIds{}, Places{0}), InvalidArgument);
  EXPECT_THROW(corpus_split(encoder, {}, Places{0}), InvalidArgument);
  EXPECT_THROW(corpus_split(encoder, std::vector{ids, TokenIds{1, 2}}, Places{0}), InvalidArgument);
}

TEST(CorpusSplitTest, EqualsTheDefinition) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    std::vector<TokenIds> texts;
    for (uint64_t s = 0; s < 5; ++s) texts.push_back(random_ids(*model, 6, 10 * seed + s));
    const Places places = {1, 2, 4};
    Encoder encoder(model, {.threads = 2});
    const std::vector<Split> splits = corpus_split(encoder, texts, places);
    const std::vector<DirectSplit> direct = direct_splits(model, texts, places, false);
    ASSERT_EQ(splits.size(), direct.size());
    for (size_t l = 0; l < splits.size(); ++l) expect_split(splits[l], direct[l], 1e-5);
  }
}

TEST(CorpusSplitTest, OfOneTextRepeatedAllIsPosition) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 3);
  Encoder encoder(model);
  const std::vector<TokenIds> texts(4, TokenIds{1, 5, 9, 2});
  for (const Split& split : corpus_split(encoder, texts, places_up_to(4))) {
    EXPECT_NEAR(split.position, 1.0, 1e-9);
  }
}

TEST(SmoothnessTest, IsOneForASlowWaveAndZeroForTheFastest) {
  constexpr int kRows = 16;
  const auto wave = [&](int k) {
    std::vector<double> rows;
    for (int p = 0; p < kRows; ++p) {
      rows.push_back(7 + std::cos(std::numbers::pi * (p + 0.5) * k / kRows));
    }
    return rows;
  };
  for (int k = 1; k < kRows; ++k) EXPECT_NEAR(smoothness(wave(k), 1), k <= 4 ? 1 : 0, 1e-12) << k;
  EXPECT_EQ(smoothness(wave(0), 1), 0.0);
  std::vector<double> nearly = wave(2);
  for (double& value : nearly) value = 1 + 1e-9 * value;
  EXPECT_EQ(smoothness(nearly, 1), 0.0);
  EXPECT_EQ(smoothness(std::vector<double>{1, 2, 3}, 3), 0.0);
  EXPECT_NEAR(smoothness(std::vector<double>{1, 2}, 1), 1.0, 1e-15);
  EXPECT_THROW(smoothness(std::vector<double>{1, 2}, 3), InvalidArgument);
}

TEST(SmoothnessTest, OfRandomRowsIsTheShareOfFrequencies) {
  const std::vector<float> states = random_states(17 * 4000, 2);
  EXPECT_NEAR(smoothness(std::vector<double>(states.begin(), states.end()), 4000), 4.0 / 16, 0.01);
}

TEST(PositionGroupCosineTest, IsZeroAtARightAngleAndOneOnALine) {
  const Split across = split_of({0, 0, 0, 1, 2, 0, 2, 1}, 2, 2, 2);  // h = (2p, g)
  EXPECT_NEAR(position_group_cosine(across), 0.0, 1e-15);
  const Split along = split_of({0, 0, 1, 2, 3, 6, 4, 8}, 2, 2, 2);  // h = (3p + g)·(1, 2)
  EXPECT_NEAR(position_group_cosine(along), 1.0, 1e-15);
}

}  // namespace
}  // namespace phasor
