// A table of normalization rules is a uint32 (the trie's bytes), the trie, which is a double array
// of darts-clone, and the replacements, each of which ends in NUL. libsentencepiece does not check
// the trie's offsets or the replacements' places.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/charsmap.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/utf8.h"

namespace phasor::internal {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 22;  // Unicode's own rules take 250 KB
constexpr size_t kBlockUnits = 256;            // a unit's children are in one block of the trie
constexpr size_t kMaxReplacement = 64;         // bytes; Unicode's longest has 33
constexpr int32_t kMaxRules = 32;              // the library's array for the rules at one place

constexpr uint32_t kNone = ~uint32_t{0};

/// With the children of each node, to visit all of them.
class Trie : public DoubleArray {
 public:
  explicit Trie(std::string_view bytes)
      : DoubleArray(bytes), first_(size(), kNone), next_(size(), kNone) {
    for (size_t unit = 0; unit < size(); ++unit) {
      if (label(unit) < kBlockUnits) next_[unit] = std::exchange(first_[unit ^ label(unit)], unit);
    }
  }

  /// The children of the nodes with this base, one after another; kNone at the end.
  uint32_t first_child(size_t base) const { return first_[base]; }
  uint32_t next_child(uint32_t child) const { return next_[child]; }

 private:
  std::vector<uint32_t> first_;  // by base
  std::vector<uint32_t> next_;   // by child
};

uint8_t replacement_size(std::string_view table, size_t value) {
  return static_cast<uint8_t>(table.find('\0', value) - value);  // at most kMaxReplacement
}

/// What CharsmapGrowth::most says of a trie without a fault.
void find_most(const Trie& trie, std::string_view table, const std::vector<uint8_t>& longest,
               std::vector<uint8_t>& most) {
  for (uint32_t one = trie.first_child(trie.base(0)); one != kNone; one = trie.next_child(one)) {
    const size_t first = size_t{256} * trie.label(one);
    const uint8_t alone = trie.ends_rule(one) ? replacement_size(table, trie.value(one)) : 0;
    std::fill_n(most.begin() + static_cast<int64_t>(first), 256, alone);
    for (uint32_t two = trie.first_child(trie.base(one)); two != kNone;
         two = trie.next_child(two)) {
      uint8_t& bytes = most[first + trie.label(two)];
      bytes = std::max(bytes, longest[two]);
    }
  }
}

/// Visits every node that a text can reach. Words may share endings, so a node can have several
/// parents, but a cycle would let a text match without end. `longest`, by node, becomes the bytes
/// of the longest replacement on any path down from it, and `maps_space` CharsmapGrowth's.
std::string trie_fault(const Trie& trie, std::string_view table, std::vector<uint8_t>& longest,
                       bool& maps_space) {
  enum State : uint8_t { kNew, kOpen, kDone };
  struct Visit {
    size_t node;
    uint32_t child;  // the next to look at
  };
  std::vector<State> states(trie.size(), kNew);
  std::vector<int32_t> rules(trie.size(), 0);  // the maximum on any path down from the node
  std::vector<Visit> path;
  longest.assign(trie.size(), 0);
  const auto open = [&](size_t node) {
    if (trie.base(node) >= trie.size()) return false;
    states[node] = kOpen;
    if (node != 0 && trie.label(node) == ' ') maps_space = true;
    path.push_back({node, trie.first_child(trie.base(node))});
    return true;
  };
  bool inside = open(0);
  while (inside && !path.empty()) {
    const auto [node, child] = path.back();
    if (child != kNone && states[child] == kNew) {
      inside = open(child);  // and looks at it again after its own children
    } else if (child != kNone) {
      if (states[child] == kOpen) return "its trie runs in a circle";
      rules[node] = std::max(rules[node], rules[child]);
      longest[node] = std::max(longest[node], longest[child]);
      path.back().child = trie.next_child(child);
    } else {
      if (trie.ends_rule(node) && node != 0) {
        ++rules[node];
        const size_t value = trie.value(node);
        if (value >= table.size() || (table[value] & 0xc0) == 0x80) {  // 0x80: inside a character
          return fmt::format("no replacement begins at byte {} of {}", value, table.size());
        }
        longest[node] = std::max(longest[node], replacement_size(table, value));
      }
      if (rules[node] > kMaxRules) {
        return fmt::format("more than {} rules begin with one another", kMaxRules);
      }
      states[node] = kDone;
      path.pop_back();
    }
  }
  return inside ? "" : "its trie points outside itself";
}

}  // namespace

std::string charsmap_fault(std::string_view charsmap, CharsmapGrowth& growth) {
  uint32_t trie_size = 0;
  if (charsmap.size() > kMaxBytes) {
    return fmt::format("it has {} bytes; at most {} are read", charsmap.size(), kMaxBytes);
  }
  if (charsmap.size() < sizeof(trie_size)) {
    return fmt::format("it has only {} bytes", charsmap.size());
  }
  std::memcpy(&trie_size, charsmap.data(), sizeof(trie_size));
  charsmap.remove_prefix(sizeof(trie_size));
  constexpr size_t kBlockBytes = kBlockUnits * sizeof(uint32_t);
  if (trie_size == 0 || trie_size % kBlockBytes != 0 || trie_size >= charsmap.size()) {
    return fmt::format("its trie has {} bytes of {}; a trie has a multiple of {}", trie_size,
                       charsmap.size(), kBlockBytes);
  }
  const std::string_view table = charsmap.substr(trie_size);
  if (table.back() != '\0') return "its last replacement does not end in NUL";
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = table.find('\0', begin);
    if (end - begin > kMaxReplacement) {
      return fmt::format("a replacement has {} bytes; at most {} are read", end - begin,
                         kMaxReplacement);
    }
    begin = end + 1;
  }
  if (to_valid_utf8(table).invalid_bytes > 0) return "a replacement is not valid UTF-8";
  const Trie trie(charsmap.substr(0, trie_size));
  std::vector<uint8_t> longest;
  std::string fault = trie_fault(trie, table, longest, growth.maps_space);
  if (fault.empty()) find_most(trie, table, longest, growth.most);
  return fault;
}

}  // namespace phasor::internal
