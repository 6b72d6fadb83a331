// Finds the pieces that a text begins with, in time that does not depend on their number.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace phasor::internal {

class PieceTrie {
 public:
  /// How many bytes the pieces of a file may have together; the trie takes about 30 for each.
  static constexpr size_t kMostBytes = size_t{1} << 24;

  /// Of equal pieces the first counts; empty ones are ignored. Numbers are not negative.
  explicit PieceTrie(std::vector<std::pair<std::string_view, int32_t>> pieces);

  /// The pieces that a graph spells, from the state `root` on. `next(state, visit)` calls
  /// visit(byte, state) for what follows, with growing bytes, and returns the number of the piece
  /// that ends in the state, or −1. It has to end: each way to a state makes a node.
  template <typename State, typename Next>
  PieceTrie(State root, const Next& next) {
    std::vector<State> states = {root};  // by node: level by level, the children side by side
    bytes_ = {0};
    for (size_t node = 0; node < states.size(); ++node) {
      const State state = states[node];
      const auto first_child = static_cast<uint32_t>(states.size());
      const int32_t number = next(state, [&](uint8_t byte, const State& child) {
        states.push_back(child);
        bytes_.push_back(byte);
      });
      nodes_.push_back({first_child, number});
    }
    nodes_.push_back({.first_child = static_cast<uint32_t>(states.size())});
    for (uint32_t child = nodes_[0].first_child; child < nodes_[1].first_child; ++child)
      children_of_root_[bytes_[child]] = child;
  }

  struct Found {
    size_t size = 0;  // in bytes; 0: no piece
    int32_t number = 0;
  };
  /// The longest piece that `text` begins with. Behind a node: the longest of the pieces that begin
  /// with what leads there, without it.
  Found longest(std::string_view text, uint32_t node = 0) const {
    Found found;
    for_each_prefix(
        text,
        [&](size_t size, int32_t number) {
          found = {size, number};
        },
        node);
    return found;
  }

  /// Calls visit(bytes, number) for each piece that `text` begins with, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, const Visit& visit, uint32_t node = 0) const {
    for (size_t size = 0; size < text.size();) {
      node = child(node, static_cast<uint8_t>(text[size++]));
      if (node == 0) return;
      if (nodes_[node].number >= 0) visit(size, nodes_[node].number);
    }
  }

  /// The node that `prefix` leads to; null if no piece begins with it.
  std::optional<uint32_t> node_behind(std::string_view prefix) const {
    uint32_t node = 0;
    for (const char byte : prefix) {
      node = child(node, static_cast<uint8_t>(byte));
      if (node == 0) return std::nullopt;
    }
    return node;
  }

 private:
  struct Node {
    uint32_t first_child = 0;  // the next node's is the end of this one's
    int32_t number = -1;       // of the piece that ends here
  };

  uint32_t child(uint32_t node, uint8_t byte) const;  // 0: none

  std::vector<Node> nodes_;     // breadth first, the root first; and one more
  std::vector<uint8_t> bytes_;  // that lead to each node; siblings' grow
  std::array<uint32_t, 256> children_of_root_ = {};
};

inline uint32_t PieceTrie::child(uint32_t node, uint8_t byte) const {
  if (node == 0) return children_of_root_[byte];
  uint32_t first = nodes_[node].first_child, last = nodes_[node + 1].first_child;
  while (last - first > 8) {
    const uint32_t middle = first + (last - first) / 2;
    (bytes_[middle] <= byte ? first : last) = middle;
  }
  for (; first < last; ++first) {
    if (bytes_[first] == byte) return first;
  }
  return 0;
}

}  // namespace phasor::internal
