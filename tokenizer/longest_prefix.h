// Finds the longest of many pieces that a text begins with, in time almost independent of their
// number.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phasor::internal {

class LongestPrefix {
 public:
  struct Piece {
    std::string text;
    int32_t id;
    const Piece* shorter;  // the longest of the others that this one begins with, or null
  };

  /// Empty pieces are ignored; of equal ones the first counts.
  explicit LongestPrefix(const std::vector<std::pair<std::string, int32_t>>& pieces);
  LongestPrefix(const LongestPrefix&) = delete;  // pieces point at each other
  LongestPrefix& operator=(const LongestPrefix&) = delete;

  /// Null if there is none. The chain of its `shorter` has all others that `text` begins with.
  /// Compares `text` with log₂(number of pieces) pieces.
  const Piece* find(std::string_view text) const;

 private:
  std::vector<Piece> pieces_;          // sorted
  std::array<bool, 256> begins_ = {};  // by byte: whether a piece begins with it
};

}  // namespace phasor::internal
