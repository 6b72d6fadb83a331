// Reorderings are permutations that leave special places alone; without positions they move
// nothing.
#include "tests/support/encoder_cases.h"

namespace phasor {
namespace {

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

TEST(OrderTest, ReversingMirrorsTheMovablePlaces) {
  EXPECT_EQ(reversed_order(8, kMovable), (Order{0, 6, 5, 3, 4, 2, 1, 7}));
}

TEST(OrderTest, SwappingMovesTwoTokensAndEachPairIsDrawn) {
  const auto orders = drawn(400, [](uint64_t seed) { return swapped_order(8, kMovable, seed); });
  EXPECT_EQ(orders.size(), 10u);  // 5 choose 2
  for (const Order& order : orders) EXPECT_EQ(num_moved(order), 2);
}

TEST(OrderTest, ShufflingDrawsEveryOrder) {
  const auto orders = drawn(2000, [](uint64_t seed) { return shuffled_order(8, kMovable, seed); });
  EXPECT_EQ(orders.size(), 120u);  // 5!
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
