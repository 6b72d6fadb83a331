// Built from the sorted pieces.
#include "tokenizer/piece_trie.h"

#include <algorithm>
#include <tuple>

namespace phasor::internal {
namespace {

using Pieces = std::vector<std::pair<std::string_view, int32_t>>;

/// The first eight bytes, as a number that compares like them.
uint64_t beginning(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(number); ++i)
    number = number << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  return number;
}

struct Range {
  uint32_t begin, end, depth;  // of the pieces below a node, which begin with the same bytes
};

}  // namespace

PieceTrie::PieceTrie(Pieces pieces) {
  // Most comparisons need no look at the texts themselves.
  std::vector<std::tuple<uint64_t, std::string_view, uint32_t>> order;
  order.reserve(pieces.size());
  for (const auto& [text, number] : pieces)
    order.emplace_back(beginning(text), text, static_cast<uint32_t>(order.size()));
  std::ranges::sort(order);
  Pieces sorted;
  sorted.reserve(pieces.size());
  for (const auto& [begin, text, place] : order) sorted.emplace_back(text, pieces[place].second);
  pieces = std::move(sorted);
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
