// A table of normalization rules is a uint32 (the trie's bytes), the trie, which is a double array
// of darts-clone, and the replacements, each of which ends in NUL.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/utf8.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/sentencepiece_check.h"

namespace phasor::internal {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 22;  // Unicode's own rules take 250 KB
constexpr size_t kBlockUnits = 256;            // a unit's children are in one block of the trie
constexpr size_t kMaxReplacement = 64;         // bytes; Unicode's longest has 33
constexpr int32_t kMaxRule = 64;               // bytes, which are tried at every place of a text

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

/// Visits every node that a text can reach. Words may share endings, so a node can have several
/// parents, but a cycle would let a text match without end.
std::string trie_fault(const Trie& trie, std::string_view table) {
  enum State : uint8_t { kNew, kOpen, kDone };
  struct Visit {
    size_t node;
    uint32_t child;  // the next to look at
  };
  std::vector<State> states(trie.size(), kNew);
  std::vector<int32_t> depth(trie.size(), 0);  // of the longest path down from the node
  std::vector<Visit> path;
  const auto open = [&](size_t node) {
    if (trie.base(node) >= trie.size()) return false;
    states[node] = kOpen;
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
      depth[node] = std::max(depth[node], depth[child] + 1);
      if (depth[node] > kMaxRule) {
        return fmt::format("a rule is for more than {} bytes", kMaxRule);
      }
      path.back().child = trie.next_child(child);
    } else {
      if (trie.ends_rule(node) && node != 0) {
        const size_t value = trie.value(node);
        if (value >= table.size() || is_inside_character(table[value])) {
          return fmt::format("no replacement begins at byte {} of {}", value, table.size());
        }
      }
      states[node] = kDone;
      path.pop_back();
    }
  }
  return inside ? "" : "its trie points outside itself";
}

}  // namespace

std::string charsmap_fault(std::string_view charsmap) {
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
  return trie_fault(Trie(charsmap.substr(0, trie_size)), table);
}

}  // namespace phasor::internal
