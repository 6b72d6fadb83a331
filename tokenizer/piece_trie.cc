// Built from the sorted pieces.
#include "tokenizer/piece_trie.h"

#include <algorithm>

namespace phasor::internal {
namespace {

using Pieces = std::vector<std::pair<std::string_view, int32_t>>;

struct Range {
  uint32_t begin, end, depth;  // of the pieces below a node, which begin with the same bytes
};

}  // namespace

PieceTrie::PieceTrie(Pieces pieces) {
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  *this = PieceTrie(Range{0, static_cast<uint32_t>(pieces.size()), 0},
                    [&](const Range& range, const auto& visit) {
                      auto [begin, end, depth] = range;
                      const bool ends = depth > 0 && pieces[begin].first.size() == depth;
                      const int32_t number = ends ? pieces[begin].second : -1;
                      while (begin < end && pieces[begin].first.size() == depth) ++begin;
                      while (begin < end) {
                        const char byte = pieces[begin].first[depth];
                        uint32_t next = begin + 1;
                        while (next < end && pieces[next].first[depth] == byte) ++next;
                        visit(static_cast<uint8_t>(byte), Range{begin, next, depth + 1});
                        begin = next;
                      }
                      return number;
                    });
}

}  // namespace phasor::internal
