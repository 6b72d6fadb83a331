// Reorderings, and how far they move states.

#include "lens/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "lens/latin_squares.h"
#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor {
using namespace internal;

namespace {

std::vector<int64_t> identity(int64_t num_tokens, std::span<const int64_t> movable) {
  for (const int64_t place : movable) check_place(place, num_tokens);
  std::vector<int64_t> order(num_tokens);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void check(std::span<const int64_t> order, int64_t num_tokens) {
  std::vector<bool> seen(num_tokens);
  bool sound = std::ssize(order) == num_tokens;
  for (const int64_t t : order) {
    sound = sound && t >= 0 && t < num_tokens && !seen[t];
    if (sound) seen[t] = true;
  }
  if (!sound) {
    throw InvalidArgument(
        fmt::format("{} places are no order of {} tokens; each of 0 to {} must occur once",
                    order.size(), num_tokens, num_tokens - 1));
  }
}

}  // namespace

std::vector<int64_t> swapped_order(int64_t num_tokens, std::span<const int64_t> movable,
                                   uint64_t seed) {
  std::vector<int64_t> order = identity(num_tokens, movable);
  if (movable.size() < 2) return order;
  std::mt19937_64 random(seed);
  const size_t first = random() % movable.size();
  const size_t step = 1 + random() % (movable.size() - 1);  // to any of the others
  std::swap(order[movable[first]], order[movable[(first + step) % movable.size()]]);
  return order;
}

std::vector<int64_t> reversed_order(int64_t num_tokens, std::span<const int64_t> movable) {
  std::vector<int64_t> order = identity(num_tokens, movable);
  for (size_t i = 0; i < movable.size(); ++i) {
    order[movable[i]] = movable[movable.size() - 1 - i];
  }
  return order;
}

std::vector<int64_t> shuffled_order(int64_t num_tokens, std::span<const int64_t> movable,
                                    uint64_t seed) {
  return shuffled_ngrams_order(num_tokens, movable, 1, seed);
}

std::vector<int64_t> shuffled_ngrams_order(int64_t num_tokens, std::span<const int64_t> movable,
                                           int64_t n, uint64_t seed) {
  std::vector<int64_t> order = identity(num_tokens, movable);
  if (n < 1) throw InvalidArgument(fmt::format("there are no {}-grams; n must be at least 1", n));
  const auto count = std::ssize(movable);
  const int64_t num_blocks = count / n + (count % n > 0 ? 1 : 0);
  std::mt19937_64 random(seed);
  int64_t i = 0;
  for (const int64_t block : permutation(num_blocks, random)) {
    for (int64_t from = block * n; from < std::min((block + 1) * n, count); ++from) {
      order[movable[i++]] = movable[from];
    }
  }
  return order;
}

std::vector<int32_t> reordered(std::span<const int32_t> token_ids, std::span<const int64_t> order) {
  check(order, std::ssize(token_ids));
  std::vector<int32_t> ids;
  ids.reserve(token_ids.size());
  for (const int64_t t : order) ids.push_back(token_ids[t]);
  return ids;
}

double order_sensitivity(std::span<const float> states, std::span<const float> reordered_states,
                         std::span<const int64_t> order, int64_t d_model) {
  const int64_t tokens = num_rows(states, reordered_states, d_model);
  check(order, tokens);
  double sum = 0;
  for (int64_t p = 0; p < tokens; ++p) {
    const float* before = &states[order[p] * d_model];
    const float* after = &reordered_states[p * d_model];
    double squares = 0;
    for (int64_t c = 0; c < d_model; ++c) {
      const double moved = static_cast<double>(after[c]) - before[c];
      squares += moved * moved;
    }
    const double length = norm(before, d_model);
    sum += length > 0 ? std::sqrt(squares) / length : 0;
  }
  return sum / static_cast<double>(tokens);
}

}  // namespace phasor
