// The longest of many pieces that a text begins with, in a time that hardly depends on their
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

  /// Empty pieces are left out.
  explicit LongestPrefix(const std::vector<std::pair<std::string, int32_t>>& pieces);
  LongestPrefix(const LongestPrefix&) = delete;  // pieces point at each other
  LongestPrefix& operator=(const LongestPrefix&) = delete;

  /// Null where there is none. Its `shorter` are all the others that `text` begins with. Takes a
  /// comparison of `text` with log₂(number of pieces) of them.
  const Piece* find(std::string_view text) const;

 private:
  std::vector<Piece> pieces_;          // sorted
  std::array<bool, 256> begins_ = {};  // by byte: whether a piece begins with it
};

}  // namespace phasor::internal
