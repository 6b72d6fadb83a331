#include "lens/latin_squares.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor::internal {

void check_places(std::span<const int64_t> places, int64_t num_tokens) {
  if (places.empty()) {
    throw InvalidArgument("there are no places to split; give at least one");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    check_place(places[i], num_tokens);
    if (i > 0 && places[i] <= places[i - 1]) {
      throw InvalidArgument(
          fmt::format("place {} comes after place {}; give each place once, in ascending order",
                      places[i], places[i - 1]));
    }
  }
}

std::vector<bool> at_edges(std::span<const int64_t> movable, int64_t num_tokens) {
  constexpr int64_t kFarthest = 2;
  std::vector<bool> edges;
  for (const int64_t place : movable) {
    bool is_edge = false;
    for (int64_t t = place - kFarthest; t <= place + kFarthest; ++t) {
      const bool stays = t >= 0 && t < num_tokens && !std::ranges::binary_search(movable, t);
      is_edge = is_edge || stays;
    }
    edges.push_back(is_edge);
  }
  return edges;
}

std::vector<int64_t> permutation(int64_t n, std::mt19937_64& random) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n; i > 1; --i) {
    std::swap(order[i - 1], order[random() % static_cast<uint64_t>(i)]);
  }
  return order;
}

LatinSquares::LatinSquares(std::span<const int32_t> token_ids, std::span<const int64_t> movable,
                           int64_t num_squares, std::mt19937_64& random)
    : token_ids_(token_ids), movable_(movable) {
  check_places(movable, std::ssize(token_ids));
  if (num_squares < 2) {
    throw InvalidArgument(fmt::format(
        "{} Latin squares cannot tell a token from its context; give 2 or more", num_squares));
  }
  for (int64_t s = 0; s < num_squares; ++s) orders_.push_back(permutation(n(), random));
}

std::vector<int32_t> LatinSquares::ids(int64_t run) const {
  std::vector<int32_t> ids(token_ids_.begin(), token_ids_.end());
  for (int64_t p = 0; p < n(); ++p) ids[place(p)] = token_ids_[place(token(run, p))];
  return ids;
}

}  // namespace phasor::internal
