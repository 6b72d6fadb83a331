// A table is a uint32 (the trie's bytes), the trie, which is a double array as darts-clone writes
// it, and the replacements, each of which ends in NUL. In a double array, the child of a node by a
// byte is the unit at the node's base XOR the byte, if that unit's label is the byte; a node that
// ends a rule has the place of its replacement at its base.
#include "tokenizer/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

constexpr size_t kMostBytes = size_t{1} << 22;  // Unicode's own rules take 250 KB
constexpr size_t kBlockUnits = 256;             // a unit's children are in one block of the trie
constexpr size_t kMostReplacement = 64;         // bytes; Unicode's longest has 33
constexpr size_t kMostRule = 64;                // bytes, which are tried at every place of a text
constexpr size_t kMostNodes = size_t{1} << 19;  // words may share nodes, which are then several

template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) {
  throw Charsmap::Fault(fmt::format(what, std::forward<Args>(args)...));
}

/// The bytes of the trie, and the replacements.
std::pair<std::string_view, std::string_view> parts_of(std::string_view charsmap) {
  uint32_t trie_size = 0;
  if (charsmap.size() > kMostBytes)
    fail("it has {} bytes; at most {} are read", charsmap.size(), kMostBytes);
  if (charsmap.size() < sizeof(trie_size)) fail("it has only {} bytes", charsmap.size());
  std::memcpy(&trie_size, charsmap.data(), sizeof(trie_size));
  charsmap.remove_prefix(sizeof(trie_size));
  constexpr size_t kBlockBytes = kBlockUnits * sizeof(uint32_t);
  if (trie_size == 0 || trie_size % kBlockBytes != 0 || trie_size >= charsmap.size()) {
    fail("its trie has {} bytes of {}; a trie has a multiple of {}", trie_size, charsmap.size(),
         kBlockBytes);
  }
  const std::string_view table = charsmap.substr(trie_size);
  if (table.back() != '\0') fail("its last replacement does not end in NUL");
  for (size_t begin = 0; begin < table.size();) {
    const size_t size = table.find('\0', begin) - begin;
    if (size > kMostReplacement)
      fail("a replacement has {} bytes; at most {} are read", size, kMostReplacement);
    begin += size + 1;
  }
  if (to_valid_utf8(table).invalid_bytes > 0) fail("a replacement is not valid UTF-8");
  return {charsmap.substr(0, trie_size), table};
}

class DoubleArray {
 public:
  explicit DoubleArray(std::string_view bytes)
      : units_(bytes.size() / sizeof(uint32_t)),
        first_(units_.size(), kNone),
        next_(units_.size(), kNone) {
    std::memcpy(units_.data(), bytes.data(), bytes.size());
    std::vector<uint32_t> nodes(units_.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    std::ranges::sort(nodes, std::greater(), [&](uint32_t node) { return label(node); });
    for (const uint32_t node : nodes) {
      if (label(node) < kBlockUnits) next_[node] = std::exchange(first_[node ^ label(node)], node);
    }
  }

  size_t base(size_t node) const {
    const uint32_t unit = units_[node];
    const size_t base = node ^ (size_t{unit >> 10} << ((unit & 0x200) >> 6));
    if (base >= units_.size()) fail("its trie points outside itself");
    return base;
  }
  bool ends_rule(size_t node) const { return (units_[node] & 0x100) != 0; }
  /// The place of its replacement.
  size_t value(size_t node) const { return units_[base(node)] & 0x7fffffff; }

  template <typename Visit>
  void for_each_child(size_t node, const Visit& visit) const {
    for (uint32_t child = first_[base(node)]; child != kNone; child = next_[child])
      visit(static_cast<uint8_t>(label(child)), child);
  }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t label(size_t node) const { return units_[node] & 0x800000ff; }  // a value's: above 255

  std::vector<uint32_t> units_;
  std::vector<uint32_t> first_;  // by base: the child with the lowest byte
  std::vector<uint32_t> next_;   // by node: the child of the same base with the next one
};

/// Words share endings in a double array, so that a small one may have more rules than fit into
/// memory, and a circle has no end of them.
PieceTrie read_rules(const DoubleArray& trie, std::string_view table) {
  struct State {
    size_t node, depth;
  };
  size_t nodes = 0;
  return PieceTrie(State{0, 0}, [&](const State& state, const auto& visit) {
    trie.for_each_child(state.node, [&](uint8_t byte, size_t child) {
      if (state.depth == kMostRule) fail("a rule is for more than {} bytes", kMostRule);
      if (++nodes > kMostNodes) fail("its rules have more than {} beginnings", kMostNodes);
      visit(byte, State{child, state.depth + 1});
    });
    if (state.depth == 0 || !trie.ends_rule(state.node)) return -1;
    const size_t place = trie.value(state.node);
    if (place >= table.size() || is_inside_character(table[place]))
      fail("no replacement begins at byte {} of {}", place, table.size());
    return static_cast<int32_t>(place);
  });
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes)
    : rules_(std::vector<std::pair<std::string_view, int32_t>>()) {
  if (bytes.empty()) return;
  const auto [trie, table] = parts_of(bytes);
  rules_ = read_rules(DoubleArray(trie), table);
  replacements_ = table;
}

Charsmap::Rule Charsmap::longest(std::string_view text) const {
  const PieceTrie::Found found = rules_.longest(text);
  if (found.size == 0) return {};
  return {found.size, replacements_.data() + found.number};  // up to NUL
}

AlignedText Charsmap::normalize_clusters(const AlignedView& text, size_t most) const {
  constexpr size_t kMostOfCluster = 5;
  AlignedText result = AlignedText::of(text);
  result.reserve(text.text.size());
  const auto replace = [&](std::string_view whole) {
    const char* shortest = nullptr;
    rules_.for_each_prefix(whole, [&](size_t, int32_t place) {
      if (shortest == nullptr) shortest = replacements_.data() + place;
    });
    if (shortest == nullptr) return false;
    // One character for one; those that are more come from the last.
    Source source;
    for (std::string_view to = shortest; !to.empty();) {
      if (!whole.empty()) {
        source = text.source_of(whole);
        whole.remove_prefix(character_size(whole));
      }
      const size_t size = character_size(to);
      result.append(to.substr(0, size), source);
      to.remove_prefix(size);
    }
    return true;
  };
  for (std::string_view rest = text.text; !rest.empty() && result.size() <= most;) {
    std::string_view cluster = rest.substr(0, cluster_size(rest));
    rest.remove_prefix(cluster.size());
    if (cluster.size() <= kMostOfCluster && replace(cluster)) continue;
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, character_size(cluster));
      cluster.remove_prefix(character.size());
      if (!replace(character)) result.append(text.part(character));
    }
  }
  return result;
}

}  // namespace phasor::internal
