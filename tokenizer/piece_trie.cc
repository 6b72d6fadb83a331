// Built level by level from the sorted pieces, so that the children of a node lie side by side.
#include "tokenizer/piece_trie.h"

#include <algorithm>

namespace phasor::internal {

PieceTrie::PieceTrie(std::vector<std::pair<std::string_view, int32_t>> pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  struct Range {
    uint32_t begin, end;  // of the pieces below a node
  };
  std::vector<Range> ranges = {{0, static_cast<uint32_t>(pieces.size())}};  // by node
  bytes_ = {0};
  for (size_t node = 0, depth = 0, level_end = 1; node < ranges.size(); ++node) {
    if (node == level_end) {
      ++depth;
      level_end = ranges.size();
    }
    auto [begin, end] = ranges[node];
    const bool ends_piece = depth > 0 && pieces[begin].first.size() == depth;
    nodes_.push_back({.first_child = static_cast<uint32_t>(ranges.size()),
                      .number = ends_piece ? pieces[begin].second : -1});
    while (begin < end && pieces[begin].first.size() == depth) ++begin;
    while (begin < end) {
      const char byte = pieces[begin].first[depth];
      uint32_t next = begin + 1;
      while (next < end && pieces[next].first[depth] == byte) ++next;
      ranges.push_back({begin, next});
      bytes_.push_back(static_cast<uint8_t>(byte));
      begin = next;
    }
  }
  nodes_.push_back({.first_child = static_cast<uint32_t>(ranges.size())});
  for (uint32_t child = nodes_[0].first_child; child < nodes_[1].first_child; ++child) {
    children_of_root_[bytes_[child]] = child;
  }
}

}  // namespace phasor::internal
