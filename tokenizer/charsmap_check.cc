// A table of normalization rules is a uint32 (the trie's bytes), the trie, which is a double array
// of darts-clone, and the replacements, each of which ends in NUL. libsentencepiece does not check
// the trie's offsets or the replacements' places.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/utf8.h"

namespace phasor::internal {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 22;  // Unicode's own rules take 250 KB
constexpr size_t kBlockUnits = 256;            // a unit's children are in one block of the trie
constexpr size_t kMaxReplacement = 64;         // bytes; Unicode's longest has 33
constexpr int32_t kMaxRules = 32;              // the library's array for the rules at one place

/// A double array: the child of `node` by a byte is the unit at its base XOR the byte, if that
/// unit's label is the byte; a node that ends a rule has the rule's value at its base.
class Trie {
 public:
  explicit Trie(std::string_view bytes) : units_(bytes.size() / sizeof(uint32_t)) {
    std::memcpy(units_.data(), bytes.data(), bytes.size());
  }

  size_t size() const { return units_.size(); }
  size_t base(size_t node) const {
    const uint32_t unit = units_[node];
    return node ^ (size_t{unit >> 10} << ((unit & 0x200) >> 6));
  }
  bool ends_rule(size_t node) const { return (units_[node] & 0x100) != 0; }
  size_t value(size_t node) const { return units_[base(node)] & 0x7fffffff; }
  /// The first byte from `byte` on for which `node` has a child; 256 if there is none.
  size_t next_child(size_t node, size_t byte) const {
    const size_t from = base(node);
    while (byte < 256 && (units_[from ^ byte] & 0x800000ff) != byte) ++byte;
    return byte;
  }

 private:
  std::vector<uint32_t> units_;
};

/// Visits every node that a text can reach. Words may share endings, so a node can have several
/// parents, but a cycle would let a text match without end.
std::string trie_fault(const Trie& trie, std::string_view table) {
  enum State : uint8_t { kNew, kOpen, kDone };
  struct Visit {
    size_t node;
    size_t next_byte;
  };
  std::vector<State> states(trie.size(), kNew);
  std::vector<int32_t> rules(trie.size(), 0);  // the maximum on any path down from the node
  std::vector<Visit> path;
  const auto open = [&](size_t node) {
    states[node] = kOpen;
    path.push_back({node, 0});
    return trie.base(node) < trie.size();
  };
  bool inside = open(0);
  while (inside && !path.empty()) {
    const auto [node, from] = path.back();
    const size_t byte = trie.next_child(node, from);
    const size_t child = trie.base(node) ^ byte;
    if (byte < 256 && states[child] == kNew) {
      path.back().next_byte = byte;  // resumes here after the child
      inside = open(child);
    } else if (byte < 256) {
      if (states[child] == kOpen) return "its trie runs in a circle";
      rules[node] = std::max(rules[node], rules[child]);
      path.back().next_byte = byte + 1;
    } else {
      if (trie.ends_rule(node) && node != 0) {
        ++rules[node];
        const size_t value = trie.value(node);
        if (value >= table.size() || (table[value] & 0xc0) == 0x80) {  // 0x80: inside a character
          return fmt::format("no replacement begins at byte {} of {}", value, table.size());
        }
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
