// The two-way split against its definition, Latin squares against all orders of a text, and both
// against what must hold exactly: no context before the first block, no position without positions.
#include "lens/latin_squares.h"
#include "lens/order.h"
#include "tests/support/encoder_cases.h"

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

TEST(LatinSquareSplitTest, ThePositionsSquaresAreThoseOfTheirMeans) {
  // States are of the place alone, so every square has the same means, [3] of [2].
  const std::vector<std::vector<float>> rows = {{3, 0}, {0, 0}, {0, 3}};
  LatinSquareSplit split(3, 2);
  for (int64_t square = 0; square < 2; ++square)
    for (int64_t place = 0; place < 3; ++place)
      for (int64_t token = 0; token < 3; ++token) split.add(place, token, rows[place]);
  const TokenSplit result = split.result();
  // Less their mean (1, 1): (2, −1), (−1, −1) and (−1, 2).
  expect_close<double, double>(result.position_squares, std::vector<double>{5, 2, 5}, 1e-12,
                               "squares");
  EXPECT_NEAR(result.position, 1, 1e-12);
}

TEST(LatinSquareSplitTest, EdgesAreAtMostTwoFromATokenThatStays) {
  const auto edges = [](const Places& movable, int64_t num_tokens) {
    std::string marks;
    for (const bool edge : internal::at_edges(movable, num_tokens)) marks += edge ? 'e' : '.';
    return marks;
  };
  EXPECT_EQ(edges({1, 2, 3, 4, 5, 6}, 8), "ee..ee");
  EXPECT_EQ(edges({0, 1, 2, 3}, 4), "....");              // the text's ends are no tokens
  EXPECT_EQ(edges({1, 2, 3, 5, 6, 7, 8}, 9), "eeeee..");  // 0 and 4 stay
  EXPECT_EQ(edges({}, 2), "");
}

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

/// Splits states [P, G, C].
Split split_of(const std::vector<float>& states, int64_t P, int64_t G, int64_t C) {
  TwoWaySplit split(P, G, C);
  for (int64_t pair = 0; pair < P * G; ++pair) {
    split.add(pair / G, pair % G, std::span(states).subspan(pair * C, C));
  }
  return split.result();
}

double cosine_of(const Split& split) {
  return position_group_cosine(split.position_means, split.group_means, std::ssize(split.mean));
}

TEST(TwoWaySplitTest, EqualsTheDefinitionAndRandomStatesScoreTheirDegreesOfFreedom) {
  for (const float common : {0.0f, 1000.0f}) {
    std::vector<float> states = draw(3 * 5 * 7, 1);
    for (float& value : states) value += common;
    const DirectSplit direct({states.begin(), states.end()}, 3, 5, 7);
    EXPECT_NEAR(direct.shares[0] + direct.shares[1] + direct.shares[2], 1.0, 1e-12);
    const Split split = split_of(states, 3, 5, 7);
    expect_split(split, direct, 1e-10);
    expect_sums_to_one(split);
  }
  const Split split = split_of(draw(4 * 8 * 5000, 3), 4, 8, 5000);
  EXPECT_NEAR(split.position, 3.0 / 31, 0.01);
  EXPECT_NEAR(split.group, 7.0 / 31, 0.01);
  EXPECT_NEAR(cosine_of(split), std::sqrt(2 / (std::numbers::pi * 5000)), 0.005);
}

TEST(TwoWaySplitTest, WhereNothingVariesButByRoundingSharesAreZero) {
  const Split one = split_of({1, 2}, 1, 1, 2);
  const Split equal = split_of({3, 4, 3, 4, 3, 4, 3, 4}, 2, 2, 2);
  std::vector<float> nearly = {3, 4, 3, 4, 3, 4, 3, 4};
  nearly[0] = std::nextafter(3.0f, 4.0f);
  for (const Split& split : {one, equal, split_of(nearly, 2, 2, 2)}) {
    EXPECT_EQ(shares_of(split), (std::vector<double>{0, 0, 0}));
  }
  EXPECT_EQ(one.mean, (std::vector<double>{1, 2}));
  EXPECT_EQ(one.variance, 0.0);
  EXPECT_EQ(cosine_of(equal), 0.0);
  std::vector<float> states = draw(4 * 5, 12);  // of the groups
  for (float& value : states) value += 3;
  for (int p = 1; p < 6; ++p) {
    for (int i = 0; i < 4 * 5; ++i) {
      states.push_back(std::nextafter(states[i], (p + i) % 3 == 0 ? 0.0f : 9.0f));
    }
  }
  const Split split = split_of(states, 6, 4, 5);
  EXPECT_EQ(split.position, 0);
  EXPECT_EQ(split.position_means, std::vector<double>(6 * 5));
  EXPECT_EQ(cosine_of(split), 0);
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

/// Shares of position, token, both and context.
std::vector<double> shares_of(const TokenSplit& split) {
  return {split.position, split.token, split.both, split.context};
}

void expect_sums_to_one(const TokenSplit& split) {
  EXPECT_NEAR(split.position + split.token + split.both + split.context, 1.0, 1e-12);
}

/// Estimates of the variance itself and of its four terms.
std::vector<double> terms_of(const TokenSplit& split) {
  std::vector<double> terms = {split.variance};
  for (const double share : shares_of(split)) terms.push_back(share * split.variance);
  return terms;
}

/// All n! orders of n tokens: token order[p] at place p.
std::vector<Places> all_orders(int64_t n) {
  std::vector<Places> orders;
  Places order = places_up_to(n);
  do {
    orders.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return orders;
}

/// The states of every order of a text's movable tokens, and the terms of their variance by the
/// definition: each mean over all orders.
struct AllOrders {
  std::vector<Places> orders;
  std::vector<std::vector<float>> states;  // of each order: [n, C]
  std::vector<double> terms;               // variance, position, token, both, context
  std::vector<double> position, token;     // [n, C]

  const std::vector<float>& of(const Places& order) const {
    return states[std::find(orders.begin(), orders.end(), order) - orders.begin()];
  }
};

void split_by_definition(AllOrders& all, int64_t C) {
  const auto n = std::ssize(all.orders.front());
  const auto count = static_cast<double>(all.orders.size());
  const auto size = static_cast<double>(n);
  std::vector<double> cells(n * n * C);  // means over the orders with a token at a place
  for (size_t i = 0; i < all.orders.size(); ++i) {
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t c = 0; c < C; ++c) {
        cells[(p * n + all.orders[i][p]) * C + c] += all.states[i][p * C + c] / (count / size);
      }
    }
  }
  const DirectSplit of_cells(cells, n, n, C);
  all.position = of_cells.position;
  all.token = of_cells.group;
  all.terms = {0};
  for (const double share : of_cells.shares) all.terms.push_back(share * of_cells.variance);
  all.terms.push_back(0);
  for (size_t i = 0; i < all.orders.size(); ++i) {
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t c = 0; c < C; ++c) {
        const double h = all.states[i][p * C + c], moved = h - of_cells.mean[c];
        const double alone = h - cells[(p * n + all.orders[i][p]) * C + c];
        all.terms[0] += moved * moved / (count * size);
        all.terms[4] += alone * alone / (count * size);
      }
    }
  }
}

/// Of each hidden state.
std::vector<AllOrders> all_orders_of(const std::shared_ptr<const Model>& model, const TokenIds& ids,
                                     const Places& movable) {
  const auto n = std::ssize(movable);
  const int64_t C = model->config().d_model;
  std::vector<AllOrders> layers(model->config().num_layers + 1);
  Encoder encoder(model, {.threads = 1});
  for (const Places& order : all_orders(n)) {
    TokenIds reordered = ids;
    for (int64_t p = 0; p < n; ++p) reordered[movable[p]] = ids[movable[order[p]]];
    const Trace trace = recorded(encoder, reordered, Trace::hidden_states_and_attentions());
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::vector<float>& h = trace.hidden_state(l).values;
      std::vector<float>& states = layers[l].states.emplace_back(n * C);
      for (int64_t p = 0; p < n; ++p) std::copy_n(&h[movable[p] * C], C, &states[p * C]);
      layers[l].orders.push_back(order);
    }
  }
  for (AllOrders& layer : layers) split_by_definition(layer, C);
  return layers;
}

/// Adds the square whose rotation r has token order[(p + r) mod n] at place p.
void add_square(const AllOrders& all, const Places& order, LatinSquareSplit& split) {
  const auto n = std::ssize(order);
  for (int64_t r = 0; r < n; ++r) {
    Places rotated = order;
    std::rotate(rotated.begin(), rotated.begin() + r, rotated.end());
    const std::vector<float>& states = all.of(rotated);
    const int64_t C = std::ssize(states) / n;
    for (int64_t p = 0; p < n; ++p) {
      split.add(p, rotated[p], std::span(states).subspan(p * C, C));
    }
  }
}

TEST(LatinSquareTest, OverAllDrawsOfTwoSquaresEveryTermIsItsValueOverAllOrders) {
  for (const int64_t n : {3, 4}) {
    for (const uint64_t seed : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << n << " tokens");
      const auto model = drawn_model(seed);
      const int64_t C = model->config().d_model;
      const AllOrders all =
          all_orders_of(model, random_ids(*model, n + 2, seed), places_up_to(n)).back();
      EXPECT_GT(all.terms[4], 1e-3 * all.terms[0]);
      std::vector<double> sums(5);
      double draws = 0;
      for (const Places& first : all.orders) {
        for (const Places& second : all.orders) {
          LatinSquareSplit split(n, C);
          add_square(all, first, split);
          add_square(all, second, split);
          const std::vector<double> terms = terms_of(split.result());
          for (int i = 0; i < 5; ++i) sums[i] += terms[i];
          ++draws;
        }
      }
      for (int i = 0; i < 5; ++i) {
        EXPECT_NEAR(sums[i] / draws, all.terms[i], 1e-9 * all.terms[0]) << i;
      }
    }
  }
}

TEST(LatinSquareTest, OfManySquaresEveryTermIsNearItsValueOverAllOrders) {
  for (const uint64_t seed : {4, 5, 6}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    const TokenIds ids = random_ids(*model, 7, seed);
    const Places movable = {1, 2, 3, 5};  // 0, 4 and 6 stay
    const std::vector<AllOrders> all = all_orders_of(model, ids, movable);
    Encoder encoder(model, {.threads = 2});
    const std::vector<TokenSplit> many = latin_square_split(encoder, ids, movable, {}, 500, 9);
    ASSERT_EQ(many.size(), all.size());
    for (size_t l = 0; l < all.size(); ++l) {
      const double deviation = std::sqrt(all[l].terms[0]);
      for (int i = 0; i < 5; ++i)
        EXPECT_NEAR(terms_of(many[l])[i], all[l].terms[i], 0.02 * all[l].terms[0]) << l << i;
      expect_near(many[l].position_means, all[l].position, deviation, 0.05, "places");
      expect_near(many[l].token_means, all[l].token, deviation, 0.05, "tokens");
      expect_sums_to_one(many[l]);
    }
  }
}

/// States [S, n, n, C] of squares, places and tokens.
TokenSplit split_of_squares(const std::vector<float>& states, int64_t S, int64_t n, int64_t C,
                            std::span<const int64_t> diagonals = {}) {
  LatinSquareSplit split(n, C, diagonals);
  for (int64_t i = 0; i < S * n * n; ++i) {
    split.add(i / n % n, i % n, std::span(states).subspan(i * C, C));
  }
  return split.result();
}

TEST(LatinSquareTest, RandomStatesAreContextAndTheDiagonalsMeanIsThatOfAllCells) {
  constexpr int64_t S = 3, n = 5, C = 4;
  const std::vector<float> states = draw(S * n * n * C, 22);
  const TokenSplit whole = split_of_squares(states, S, n, C);
  double context = 0;
  for (int64_t d = 0; d < n; ++d) {
    const TokenSplit one = split_of_squares(states, S, n, C, Places{d});
    context += one.context / n;
    EXPECT_EQ(one.position, whole.position);
    EXPECT_EQ(one.token, whole.token);
    EXPECT_EQ(one.variance, whole.variance);
    EXPECT_GT(std::abs(one.context - whole.context), 1e-6);
    expect_sums_to_one(one);
  }
  EXPECT_NEAR(context, whole.context, 1e-12);
  EXPECT_EQ(shares_of(split_of_squares(states, S, n, C, places_up_to(n))), shares_of(whole));
  const TokenSplit split = split_of_squares(draw(4 * 16 * 5000, 3), 4, 4, 5000);
  for (const double share : {split.position, split.token, split.both}) {
    EXPECT_NEAR(share, 0, 0.01);
  }
  EXPECT_NEAR(split.context, 1, 0.01);
}

TEST(LatinSquareTest, SquaresThatDoNotFitAreRefused) {
  EXPECT_THROW(LatinSquareSplit(0, 1), InvalidArgument);
  EXPECT_THROW(LatinSquareSplit(3, 1, Places{3}), InvalidArgument);
  EXPECT_THROW(LatinSquareSplit(3, 1, Places{-1}), InvalidArgument);
  EXPECT_THROW(LatinSquareSplit(3, 1, Places{1, 1}), InvalidArgument);
  EXPECT_THROW(split_of_squares(draw(4, 1), 1, 2, 1), InvalidArgument);
  LatinSquareSplit split(1, 1);
  const std::vector<float> state = {1};
  EXPECT_THROW(split.add(1, 0, state), InvalidArgument);
  EXPECT_THROW(split.add(0, 1, state), InvalidArgument);
  split.add(0, 0, state);
  EXPECT_THROW(split.result(), InvalidArgument);
  split.add(0, 0, state);
  EXPECT_EQ(split.result().mean, std::vector<double>{1});
}

TEST(LatinSquareTest, OfTwoTokensContextIsZeroEqualOnesLeavePositionAloneAndOneNothing) {
  const auto model = drawn_model(7);
  const TokenIds ids = random_ids(*model, 4, 7);
  const std::vector<AllOrders> all = all_orders_of(model, ids, {1, 2});
  Encoder encoder(model);
  const std::vector<TokenSplit> splits = latin_square_split(encoder, ids, {{1, 2}}, {}, 2);
  for (size_t l = 0; l < all.size(); ++l) {
    const std::vector<double> terms = terms_of(splits[l]);
    for (int i = 0; i < 5; ++i) EXPECT_NEAR(terms[i], all[l].terms[i], 1e-5 * all[l].terms[0]) << i;
    EXPECT_EQ(splits[l].context, 0);
  }
  for (const NormOrder order : {NormOrder::kPreNorm, NormOrder::kPostNorm}) {
    const auto model = random_model(sinusoidal_config(order), 6);
    Encoder encoder(model);
    for (const TokenSplit& split :
         latin_square_split(encoder, TokenIds{1, 7, 7, 7, 7, 2}, {{1, 2, 3, 4}})) {
      EXPECT_NEAR(split.position, 1.0, 1e-9);
      EXPECT_NEAR(split.token, 0, 1e-9);
      EXPECT_NEAR(split.context, 0, 1e-9);
    }
    for (const TokenIds& ids : {TokenIds{7}, TokenIds{1, 7, 2}}) {
      const int64_t place = std::ssize(ids) / 2;
      for (const TokenSplit& split : latin_square_split(encoder, ids, {{place}})) {
        EXPECT_EQ(shares_of(split), (std::vector<double>{0, 0, 0, 0}));
      }
    }
  }
}

TEST(LatinSquareTest, WithoutPositionsThePositionShareIsZeroAtEveryLayer) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto model = drawn_model(seed);
    Encoder encoder(model);
    for (const TokenSplit& split :
         latin_square_split(encoder, random_ids(*model, 9, seed), {{1, 2, 3, 4, 6, 7}},
                            {.positions = Positions::none()})) {
      EXPECT_NEAR(split.position, 0, 1e-9) << "seed " << seed;
      EXPECT_NEAR(split.both, 0, 1e-9) << "seed " << seed;
      EXPECT_NEAR(split.context, 0, 1e-9) << "seed " << seed;
      EXPECT_NEAR(split.token, 1.0, 1e-9) << "seed " << seed;
    }
  }
}

void expect_same_splits(const std::vector<TokenSplit>& a, const std::vector<TokenSplit>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t l = 0; l < a.size(); ++l) {
    EXPECT_EQ(shares_of(a[l]), shares_of(b[l]));
    EXPECT_EQ(a[l].position_means, b[l].position_means);
    EXPECT_EQ(a[l].token_means, b[l].token_means);
  }
}

TEST(LatinSquareTest, DependsNeitherOnThreadsNorOnBatches) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPreNorm), 8);
  const TokenIds ids = random_ids(*model, 70, 4);
  const Places places = places_up_to(70);
  Encoder one(model, {.threads = 1}), four(model, {.threads = 4});
  std::vector<int64_t> done;
  const auto progress = [&](int64_t count, int64_t total) {
    EXPECT_EQ(total, 140);
    done.push_back(count);
  };
  const auto splits = latin_square_split(one, ids, places, {}, 2, 5, progress);
  EXPECT_EQ(done, (std::vector<int64_t>{58, 116, 140}));  // 4096 / 70 rotations, and the others
  expect_same_splits(latin_square_split(four, ids, places, {}, 2, 5), splits);
  EXPECT_NE(shares_of(latin_square_split(four, ids, places, {}, 2, 6).back()),
            shares_of(splits.back()));
  // The same positions, but told one by one: so that every rotation is a run of its own.
  std::vector<int32_t> position_ids(70);
  for (int32_t t = 0; t < 70; ++t) position_ids[t] = t;
  done.clear();
  const RunOptions told = {.positions = Positions().at(position_ids)};
  expect_same_splits(latin_square_split(four, ids, places, told, 2, 5, progress), splits);
  EXPECT_EQ(done.size(), 140u);
}

TEST(LatinSquareTest, ALongTextKeepsTheSumsOfSomeCells) {
  const auto model = random_model(sinusoidal_config(NormOrder::kPostNorm), 8);
  Encoder encoder(model, {.threads = 2});
  const TokenIds ids = random_ids(*model, 450, 4);  // 450²·15·3 doubles are more than 64 MiB
  const auto splits = latin_square_split(encoder, ids, places_up_to(450), {}, 2);
  EXPECT_EQ(splits[0].context, 0);
  EXPECT_NEAR(splits[0].both, 0, 1e-12);
  EXPECT_GT(splits[2].context, 0.001);
  for (const TokenSplit& split : splits) expect_sums_to_one(split);
}

TEST(LatinSquareTest, AWindowedTextIsSplitAndATruncatedOneRefused) {
  ModelConfig config = small_config();
  config.position.kind = PositionKind::kLearned;  // of 12 rows
  const auto model = random_model(config, 2);
  Encoder encoder(model);
  const TokenIds ids = random_ids(*model, 15, 4);
  for (const TokenSplit& split :
       latin_square_split(encoder, ids, places_up_to(15), {.overflow = Overflow::kWindow})) {
    expect_sums_to_one(split);
  }
  const RunOptions truncate = {.overflow = Overflow::kTruncate};
  EXPECT_THROW(latin_square_split(encoder, ids, places_up_to(15), truncate), InvalidArgument);
  EXPECT_THROW(latin_square_split(encoder, ids, places_up_to(15)), InvalidArgument);
}

TEST(LatinSquareTest, PlacesThatAreNoneAndHooksWithoutARowForEachTokenAreRefused) {
  const auto model = random_model(small_config(), 1);
  Encoder encoder(model);
  const TokenIds ids = {1, 2, 3};
  for (const Places& places : {Places{}, Places{3}, Places{-1}, Places{1, 1}, Places{2, 1}}) {
    EXPECT_THROW(latin_square_split(encoder, ids, places), InvalidArgument);
    EXPECT_THROW(corpus_split(encoder, std::vector{ids, ids}, places), InvalidArgument);
  }
  EXPECT_THROW(latin_square_split(encoder, TokenIds{}, Places{0}), InvalidArgument);
  EXPECT_THROW(latin_square_split(encoder, ids, places_up_to(3), {}, 1), InvalidArgument);
  EXPECT_THROW(corpus_split(encoder, {}, Places{0}), InvalidArgument);
  EXPECT_THROW(corpus_split(encoder, std::vector{ids, TokenIds{1, 2}}, Places{0}), InvalidArgument);
  for (const Hook hook : {Hook::kFullEmbed, Hook::kPattern}) {
    EXPECT_THROW(
        position_components(encoder, TokenIds{1, 2, 3}, Places{0, 1, 2}, std::vector{hook}),
        InvalidArgument);
  }
}

TEST(PositionComponentsTest, OfAStateTheyAreTheMeansOfTheSplitAndSumsOfThoseOfItsParts) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const auto model = drawn_model(seed);
    const TokenIds ids = random_ids(*model, 7, seed);
    const Places movable = {1, 2, 4, 5};
    Encoder encoder(model);
    const std::vector<Hook> hooks = {Hook::kResidPre, Hook::kAttnOut, Hook::kResidMid};
    const auto components = position_components(encoder, ids, movable, hooks, {}, 3, seed);
    const std::vector<TokenSplit> splits = latin_square_split(encoder, ids, movable, {}, 3, seed);
    ASSERT_EQ(components.size(), 3u);
    for (int64_t l = 0; l < model->config().num_layers; ++l) {
      expect_close<double, double>(components[0][l], splits[l].position_means, 1e-5, "resid_pre");
      std::vector<double> sum = components[0][l];
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += components[1].at(l)[i];
      expect_close<double, double>(components[2][l], sum, 1e-5, "resid_mid");
    }
  }
}

/// The states of `texts`, run one by one, at `places`.
std::vector<DirectSplit> direct_splits(const std::shared_ptr<const Model>& model,
                                       const std::vector<TokenIds>& texts, const Places& places) {
  const auto P = std::ssize(places), G = std::ssize(texts);
  const int64_t C = model->config().d_model;
  std::vector<std::vector<double>> states(model->config().num_layers + 1);  // each [P, G, C]
  for (auto& layer : states) layer.resize(P * G * C);
  Encoder encoder(model, {.threads = 1});
  for (int64_t g = 0; g < G; ++g) {
    const Trace trace = recorded(encoder, texts[g], Trace::hidden_states_and_attentions());
    for (size_t l = 0; l < states.size(); ++l) {
      const std::vector<float>& h = trace.hidden_state(l).values;
      for (int64_t p = 0; p < P; ++p) {
        std::copy_n(&h[places[p] * C], C, &states[l][(p * G + g) * C]);
      }
    }
  }
  std::vector<DirectSplit> splits;
  for (auto& layer : states) splits.emplace_back(std::move(layer), P, G, C);
  return splits;
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
    const std::vector<DirectSplit> direct = direct_splits(model, texts, places);
    ASSERT_EQ(splits.size(), direct.size());
    for (size_t l = 0; l < splits.size(); ++l) expect_split(splits[l], direct[l], 1e-5);
  }
}

TEST(SmoothnessTest, IsOneForASlowWaveZeroForTheFastestAndOfRandomRowsTheShareOfFrequencies) {
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
  const std::vector<float> states = draw(17 * 4000, 2);
  EXPECT_NEAR(smoothness(std::vector<double>(states.begin(), states.end()), 4000), 4.0 / 16, 0.01);
}

TEST(PositionGroupCosineTest, IsZeroAtARightAngleAndOneOnALine) {
  const Split across = split_of({0, 0, 0, 1, 2, 0, 2, 1}, 2, 2, 2);  // h = (2p, g)
  EXPECT_NEAR(cosine_of(across), 0.0, 1e-15);
  const Split along = split_of({0, 0, 1, 2, 3, 6, 4, 8}, 2, 2, 2);  // h = (3p + g)·(1, 2)
  EXPECT_NEAR(cosine_of(along), 1.0, 1e-15);
}

using Order = std::vector<int64_t>;

const Order kMovable = {1, 2, 4, 5, 6};  // of 8 tokens

int64_t num_moved(const Order& order) {
  int64_t moved = 0;
  for (int64_t p = 0; p < std::ssize(order); ++p) moved += order[p] != p ? 1 : 0;
  return moved;
}

/// The orders that are drawn with so many seeds. Each permutes the movable places, and the same
/// seed gives the same.
std::set<Order> drawn(uint64_t seeds, const std::function<Order(uint64_t seed)>& draw) {
  std::set<Order> orders;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Order order = draw(seed);
    Order sorted = order;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, (Order{0, 1, 2, 3, 4, 5, 6, 7}));
    for (const int64_t fixed : {0, 3, 7}) EXPECT_EQ(order[fixed], fixed);
    EXPECT_EQ(draw(seed), order);
    orders.insert(order);
  }
  return orders;
}

TEST(OrderTest, MovablePlacesAreReversedAndFewerThanTwoStay) {
  EXPECT_EQ(reversed_order(8, kMovable), (Order{0, 6, 5, 3, 4, 2, 1, 7}));
  EXPECT_EQ(reordered(TokenIds{7, 8, 9}, Order{2, 0, 1}), (TokenIds{9, 7, 8}));
  for (const Order& movable : {Order{}, Order{2}}) {
    EXPECT_EQ(num_moved(swapped_order(4, movable, 1)), 0);
    EXPECT_EQ(num_moved(reversed_order(4, movable)), 0);
    EXPECT_EQ(num_moved(shuffled_order(4, movable, 1)), 0);
  }
}

TEST(OrderTest, SwappingDrawsEachPairAndShufflingEveryOrder) {
  const auto orders = drawn(400, [](uint64_t seed) { return swapped_order(8, kMovable, seed); });
  EXPECT_EQ(orders.size(), 10u);  // 5 choose 2
  for (const Order& order : orders) EXPECT_EQ(num_moved(order), 2);
  const auto all = drawn(2000, [](uint64_t seed) { return shuffled_order(8, kMovable, seed); });
  EXPECT_EQ(all.size(), 120u);  // 5!
}

TEST(OrderTest, ShufflingNgramsKeepsWhatIsInsideThem) {
  const auto orders =
      drawn(400, [](uint64_t seed) { return shuffled_ngrams_order(8, kMovable, 2, seed); });
  EXPECT_EQ(orders.size(), 6u);  // 3!: {1, 2}, {4, 5} and {6}
  for (const Order& order : orders) {
    Order moved;
    for (const int64_t place : kMovable) moved.push_back(order[place]);
    for (const Order& block : {Order{1, 2}, Order{4, 5}}) {
      EXPECT_NE(std::search(moved.begin(), moved.end(), block.begin(), block.end()), moved.end());
    }
  }
}

TEST(OrderTest, NgramsOfOneAreSingleTokensAndOneNgramStays) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(shuffled_ngrams_order(8, kMovable, 1, seed), shuffled_order(8, kMovable, seed));
    for (const int64_t n : {5, 6}) {
      EXPECT_EQ(num_moved(shuffled_ngrams_order(8, kMovable, n, seed)), 0);
    }
  }
  EXPECT_EQ(num_moved(shuffled_ngrams_order(8, Order{}, 2, 1)), 0);
  EXPECT_THROW(shuffled_ngrams_order(8, kMovable, 0, 1), InvalidArgument);
  EXPECT_THROW(shuffled_ngrams_order(3, kMovable, 2, 1), InvalidArgument);
}

TEST(OrderTest, WhatIsNoOrderIsRefused) {
  const TokenIds ids = {7, 8, 9};
  const std::vector<float> states(6, 1.0f);
  for (const Order& order : {Order{0, 1}, Order{0, 1, 1}, Order{0, 1, 3}, Order{0, -1, 2}}) {
    EXPECT_THROW(reordered(ids, order), InvalidArgument);
    EXPECT_THROW(order_sensitivity(states, states, order, 2), InvalidArgument);
  }
  EXPECT_THROW(order_sensitivity(states, std::vector<float>(4), Order{0, 1, 2}, 2),
               InvalidArgument);
  EXPECT_THROW(reversed_order(3, Order{1, 3}), InvalidArgument);
  EXPECT_THROW(swapped_order(3, Order{-1, 1}, 1), InvalidArgument);
}

TEST(OrderSensitivityTest, FollowsEachTokenToItsNewPlace) {
  const std::vector<float> states = {3, 4, 0, 2};  // lengths 5 and 2
  const Order swapped = {1, 0};
  EXPECT_EQ(order_sensitivity(states, std::vector<float>{0, 2, 3, 4}, swapped, 2), 0.0);
  // The token of length 5 is moved by 1, that of length 2 by 3.
  EXPECT_DOUBLE_EQ(order_sensitivity(states, std::vector<float>{0, 5, 3, 5}, swapped, 2),
                   (1.0 / 5 + 3.0 / 2) / 2);
}

/// Runs a text and a shuffle of it: the sensitivity of every hidden state, and both runs' vectors.
std::vector<double> shuffle_sensitivity(const std::shared_ptr<const Model>& model,
                                        const Positions& positions, uint64_t seed,
                                        std::vector<float> vectors[2]) {
  const TokenIds ids = random_ids(*model, 8, seed);
  const Order order = shuffled_order(8, kMovable, seed);
  Trace traces[2] = {Trace::hidden_states_and_attentions(), Trace::hidden_states_and_attentions()};
  Encoder encoder(model);
  for (const size_t i : {0, 1}) {
    const Encoding run = encoder.encode_ids(i == 0 ? ids : reordered(ids, order),
                                            {.observer = &traces[i], .positions = positions});
    vectors[i] = pool(run.hidden, model->config().d_model, {});
  }
  std::vector<double> moved;
  for (int64_t l = 0; l <= traces[0].num_layers(); ++l) {
    moved.push_back(order_sensitivity(traces[0].hidden_state(l).values,
                                      traces[1].hidden_state(l).values, order,
                                      model->config().d_model));
  }
  return moved;
}

TEST(OrderSensitivityTest, WithoutPositionsNoLayerFeelsTheOrderAndWithThemEveryLayerDoes) {
  uint64_t seed = 0;
  for (const auto& [name, model] : exact_models()) {
    SCOPED_TRACE(name);
    ++seed;
    std::vector<float> vectors[2];
    for (const Positions& without :
         {Positions::none(), Positions().scaled(0), Positions().averaged()}) {
      const Positions sees_all = without.masked(AttentionMask::kNone);
      for (const double moved : shuffle_sensitivity(model, sees_all, seed, vectors)) {
        EXPECT_LT(moved, 2e-5);
      }
      expect_close<float, float>(vectors[1], vectors[0], 1e-5, "pooled");
    }
    // A causal mask tells the order without any positions, from the first block on.
    const Positions causal = Positions::none().masked(AttentionMask::kCausal);
    const std::vector<double> moved = shuffle_sensitivity(model, causal, seed, vectors);
    EXPECT_EQ(moved.front(), 0);
    const bool same = std::ranges::is_sorted(shuffled_order(8, kMovable, seed));
    EXPECT_TRUE(same || moved.back() > 1e-3);
    if (seed > 20) continue;
    const auto paper = Positions::sinusoidal(SinusoidalLayout::kPaper);
    for (const double moved : shuffle_sensitivity(model, paper, seed, vectors)) {
      EXPECT_GT(moved, 1e-2);
    }
  }
}

}  // namespace
}  // namespace phasor
