// The orders of one text that a split runs.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace phasor::internal {

/// Which of the movable places are edges: at most two from a token that stays in every order. [n]
std::vector<bool> at_edges(std::span<const int64_t> movable, int64_t num_tokens);

/// Random Latin squares of the tokens at some places; see latin_square_split(). Run n·s + r is
/// rotation r of square s.
class LatinSquares {
 public:
  /// Borrows the ids and places. Draws from `random`. Throws what latin_square_split() throws for
  /// places and numbers of squares.
  LatinSquares(std::span<const int32_t> token_ids, std::span<const int64_t> movable,
               int64_t num_squares, std::mt19937_64& random);

  int64_t n() const { return static_cast<int64_t>(movable_.size()); }
  int64_t num_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t num_runs() const { return n() * static_cast<int64_t>(orders_.size()); }
  int64_t place(int64_t p) const { return movable_[p]; }
  /// Which token, 0 … n − 1, stands at place(p).
  int64_t token(int64_t run, int64_t p) const { return orders_[run / n()][(p + run) % n()]; }
  std::vector<int32_t> ids(int64_t run) const;
  std::vector<bool> at_edges() const { return internal::at_edges(movable_, num_tokens()); }

 private:
  std::span<const int32_t> token_ids_;
  std::span<const int64_t> movable_;
  std::vector<std::vector<int64_t>> orders_;  // of each square
};

/// Throws InvalidArgument if there are none, or if they are outside the text or not ascending.
void check_places(std::span<const int64_t> places, int64_t num_tokens);

/// 0 … n − 1 in a random order (Fisher–Yates; std::shuffle differs by library).
std::vector<int64_t> permutation(int64_t n, std::mt19937_64& random);

}  // namespace phasor::internal
