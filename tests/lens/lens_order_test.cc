// Reorderings are permutations that leave special places alone; without positions they move
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/lens/attention.h"
#include "phasor/lens/order.h"
#include "phasor/trace.h"
#include "tests/support/encoder_cases.h"
#include "tests/support/expect_close.h"

namespace phasor {
namespace {

using Order = std::vector<int64_t>;

const Order kMovable = {1, 2, 4, 5, 6};  // of 8 tokens

int64_t num_moved(const Order& order) {
  int64_t moved = 0;
  for (int64_t p = 0; p < std::ssize(order); ++p) moved += order[p] != p ? 1 : 0;
  return moved;
}

void expect_permutes_movable_places(const Order& order) {
  Order sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (Order{0, 1, 2, 3, 4, 5, 6, 7}));
  for (const int64_t fixed : {0, 3, 7}) EXPECT_EQ(order[fixed], fixed);
}

TEST(OrderTest, ReversingMirrorsTheMovablePlaces) {
  EXPECT_EQ(reversed_order(8, kMovable), (Order{0, 6, 5, 3, 4, 2, 1, 7}));
}

TEST(OrderTest, SwappingMovesTwoTokensAndEachPairIsDrawn) {
  std::set<Order> drawn;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Order order = swapped_order(8, kMovable, seed);
    expect_permutes_movable_places(order);
    EXPECT_EQ(num_moved(order), 2);
    drawn.insert(order);
  }
  EXPECT_EQ(drawn.size(), 10u);  // 5 choose 2
}

TEST(OrderTest, ShufflingDrawsEveryOrder) {
  std::set<Order> drawn;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Order order = shuffled_order(8, kMovable, seed);
    expect_permutes_movable_places(order);
    EXPECT_EQ(order, shuffled_order(8, kMovable, seed));
    drawn.insert(order);
  }
  EXPECT_EQ(drawn.size(), 120u);  // 5!
}

TEST(OrderTest, ShufflingNgramsKeepsWhatIsInsideThem) {
  std::set<Order> drawn;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const Order order = shuffled_ngrams_order(8, kMovable, 2, seed);
    expect_permutes_movable_places(order);
    EXPECT_EQ(order, shuffled_ngrams_order(8, kMovable, 2, seed));
    Order moved;
    for (const int64_t place : kMovable) moved.push_back(order[place]);
    for (const Order& block : {Order{1, 2}, Order{4, 5}}) {
      const auto first = std::find(moved.begin(), moved.end(), block[0]);
      ASSERT_NE(first + 1, moved.end());
      EXPECT_EQ(first[1], block[1]);
    }
    drawn.insert(order);
  }
  EXPECT_EQ(drawn.size(), 6u);  // 3!: {1, 2}, {4, 5} and {6}
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

TEST(OrderTest, IdenticalWordsReplaceTheMovableTokens) {
  EXPECT_EQ(identical_words(TokenIds{5, 6, 7, 8}, Order{1, 2}, 9), (TokenIds{5, 9, 9, 8}));
  EXPECT_THROW(identical_words(TokenIds{5}, Order{1}, 9), InvalidArgument);
}

TEST(OrderTest, FewerThanTwoMovableTokensStayInOrder) {
  for (const Order& movable : {Order{}, Order{2}}) {
    EXPECT_EQ(num_moved(swapped_order(4, movable, 1)), 0);
    EXPECT_EQ(num_moved(reversed_order(4, movable)), 0);
    EXPECT_EQ(num_moved(shuffled_order(4, movable, 1)), 0);
  }
}

TEST(OrderTest, IdsFollowTheirOrder) {
  EXPECT_EQ(reordered(TokenIds{7, 8, 9}, Order{2, 0, 1}), (TokenIds{9, 7, 8}));
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

/// The sensitivity of every hidden state to a shuffle.
std::vector<double> shuffle_sensitivity(const std::shared_ptr<const Model>& model,
                                        const RunOptions& options) {
  const TokenIds ids = random_ids(*model, 8, 17);
  const Order order = shuffled_order(8, kMovable, 3);
  Trace before = Trace::hidden_states_and_attentions(), after = before;
  Encoder encoder(model);
  RunOptions run = options;
  run.observer = &before;
  encoder.encode_ids(ids, run);
  run.observer = &after;
  encoder.encode_ids(reordered(ids, order), run);
  std::vector<double> moved;
  for (int64_t l = 0; l <= before.num_layers(); ++l) {
    moved.push_back(order_sensitivity(before.hidden_state(l).values, after.hidden_state(l).values,
                                      order, model->config().d_model));
  }
  return moved;
}

TEST(OrderSensitivityTest, WithoutPositionsNoLayerFeelsTheOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const double moved :
         shuffle_sensitivity(drawn_model(seed), {.positions = Positions::none()})) {
      EXPECT_LT(moved, 1e-5) << "seed " << seed;
    }
  }
}

TEST(OrderSensitivityTest, WithPositionsEveryLayerFeelsTheOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto model = drawn_model(seed);
    const auto paper = Positions::sinusoidal(SinusoidalLayout::kPaper);
    for (const double moved : shuffle_sensitivity(model, {.positions = paper})) {
      EXPECT_GT(moved, 1e-2) << "seed " << seed;
    }
  }
}

TEST(OrderSensitivityTest, WithoutPositionsPooledVectorsAreTheSameInAnyOrder) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto model = drawn_model(seed);
    Encoder encoder(model);
    const TokenIds ids = random_ids(*model, 8, seed);
    const RunOptions without = {.positions = Positions::none(), .pooling = Pooling()};
    const Encoding before = encoder.encode_ids(ids, without);
    const Encoding after =
        encoder.encode_ids(reordered(ids, shuffled_order(8, kMovable, seed)), without);
    expect_close(after.embedding(0), before.embedding(0), 1e-5, "seed " + std::to_string(seed));
  }
}

TEST(IdenticalWordsTest, WithoutPositionsAttendToEachOtherAlikeAndWithThemDoNot) {
  for (const bool has_positions : {false, true}) {
    ModelConfig config = small_config();
    config.position.kind = PositionKind::kSinusoidal;
    const auto model = random_model(config, 3);
    Trace trace{Hook::kPattern};
    const TokenIds ids =
        identical_words(random_ids(*model, 8, 2), Order{0, 1, 2, 3, 4, 5, 6, 7}, 9);
    Encoder(model).encode_ids(
        ids, {.observer = &trace, .positions = has_positions ? Positions() : Positions::none()});
    for (const HeadProfile& head : head_profiles(trace.at(Hook::kPattern, 0).values, 3, 8)) {
      if (has_positions) {
        EXPECT_LT(head.entropy_share, 0.999);
      } else {
        EXPECT_NEAR(head.entropy_share, 1.0, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace phasor
