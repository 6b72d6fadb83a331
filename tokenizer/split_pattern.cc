// The expression becomes a graph of nodes, each with what follows it; a match is a way to the end.
#include "tokenizer/split_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace split_pattern {
namespace {

constexpr size_t kMostExpression = 4096;  // bytes
constexpr size_t kMostSets = 64, kMostParts = 256, kMostMemories = 64;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max(), kMostCount = 16;
constexpr size_t kNoMatch = std::string_view::npos;

char32_t in_lower_case(char32_t c) {
  if (c == U'\u017f') return U's';  // long s, the other s
  if (c == U'\u212a') return U'k';  // and Kelvin's sign
  return to_lower(c);
}

}  // namespace

struct Set {
  bool negated = false;
  bool space = false;
  uint32_t categories = 0;  // see category_bit()
  std::vector<std::pair<char32_t, char32_t>> ranges = {};
  bool any_case = false;  // the ranges are in lower case

  bool operator==(const Set&) const = default;
  bool contains(char32_t character) const {
    const char32_t c = any_case ? in_lower_case(character) : character;
    const bool found = (categories & category_bit(c)) != 0 || (space && is_white_space(c)) ||
                       std::ranges::any_of(ranges, [=](const auto& range) {
                         return c >= range.first && c <= range.second;
                       });
    return found != negated;
  }
};

/// A part of the expression, of which there are several where it is repeated.
struct Node {
  enum class Kind { kEnd, kOne, kUpTo, kBeforeSpace, kEither } kind = Kind::kEither;
  std::vector<size_t> ways = {};      // the nodes of kEither
  size_t next = 0;                    // the node behind one of another kind
  size_t set = 0;                     // of kOne and kUpTo: its number
  int64_t most = 0;                   // characters of kUpTo
  bool possessive = false;            // kUpTo takes all that it can
  std::optional<size_t> memory = {};  // the number of that of where it did not match
  // Of all that matches from here on; see Parser::finish().
  bool is_finished = false;
  bool can_be_empty = false;
  std::bitset<128> begins = {};  // the ASCII characters that it may begin with
};

struct Graph {
  std::vector<Set> sets = {};
  std::array<std::bitset<kMostSets>, 128> sets_of_ascii = {};
  std::vector<Node> nodes = {};
  size_t first = 0;
  size_t memories = 0;
};

/// Reads an expression from left to right.
class Parser {
 public:
  explicit Parser(std::string_view expression) : rest_(expression) {}

  Graph read() {
    if (rest_.size() > kMostExpression) fail("it is longer than 4096 bytes");
    const size_t end = add({.kind = Node::Kind::kEnd});
    graph_.first = add(read_ways(end));
    if (!rest_.empty()) fail(fmt::format("'{}'", rest_.substr(0, character_size(rest_))));
    if (finish(graph_.first).can_be_empty) fail("an alternative that can be empty");
    return std::move(graph_);
  }

 private:
  [[noreturn]] static void fail(const std::string& what) { throw SplitPattern::Fault(what); }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool at(std::string_view characters) const {
    return !rest_.empty() && characters.find(rest_.front()) != kNoMatch;
  }

  size_t add(Node node) {
    graph_.nodes.push_back(std::move(node));
    return graph_.nodes.size() - 1;
  }

  /// Of a node that may be reached more than once at a place of the text: as what follows several
  /// ways, or from matches that begin at several places.
  size_t new_memory() {
    if (graph_.memories == kMostMemories) fail("more than 64 repetitions");
    return graph_.memories++;
  }

  /// The node, not yet added, of alternatives, behind which `end` comes.
  Node read_ways(size_t end) {
    Node node;
    do {
      node.ways.push_back(read_sequence(end));
    } while (take("|"));
    return node;
  }

  size_t read_sequence(size_t end) {
    if (rest_.empty() || at("|)")) return end;
    if (++parts_ > kMostParts) fail("more than 256 parts");
    if (take("(?!\\S)")) {
      return add({.kind = Node::Kind::kBeforeSpace, .next = read_sequence(end)});
    }
    if (at("(")) return read_group(end);
    Set set = at("[") ? read_set() : read_character();
    const size_t number = number_of(any_case_ ? without_case(set) : set);
    const auto [least, most, possessive] = read_quantifier();
    size_t next = read_sequence(end);
    if (most > least) {
      const int64_t more = most == kNoLimit ? most : most - least;
      // An unlimited one remembers itself which places it came to.
      if (more > 1 && more < kNoLimit) next = add({.ways = {next}, .memory = new_memory()});
      next = add({.kind = Node::Kind::kUpTo,
                  .next = next,
                  .set = number,
                  .most = more,
                  .possessive = possessive,
                  .memory = new_memory()});
    }
    for (int64_t n = 0; n < least; ++n)
      next = add({.kind = Node::Kind::kOne, .next = next, .set = number});
    return next;
  }

  /// (?:…) or (?i:…), and what comes behind it
  size_t read_group(size_t end) {
    const bool any_case = take("(?i:");
    if (!any_case && !take("(?:")) fail("a group that is neither (?:…) nor (?i:…)");
    const bool outside = std::exchange(any_case_, any_case || any_case_);
    const size_t behind = add({});
    Node group = read_ways(behind);
    any_case_ = outside;
    if (!take(")")) fail("a group without its end");
    const auto [least, most, possessive] = read_quantifier();
    if (most > 1 || possessive) fail("a group that is repeated or possessive");
    if (least == 0) group.ways.push_back(behind);
    group.memory = new_memory();
    const size_t next = read_sequence(end);
    graph_.nodes[behind].ways = {next};
    if (group.ways.size() > 1) graph_.nodes[behind].memory = new_memory();
    return add(std::move(group));
  }

  struct Quantifier {
    int64_t least = 1, most = 1;
    bool possessive = false;  // never fewer than can be
  };
  Quantifier read_quantifier() {
    Quantifier found;
    if (take("?")) {
      found = {0, 1};
    } else if (take("*")) {
      found = {0, kNoLimit};
    } else if (take("+")) {
      found = {1, kNoLimit};
    } else if (take("{")) {
      found.least = read_count();
      found.most = !take(",") ? found.least : at("}") ? kNoLimit : read_count();
      if (!take("}") || found.most < found.least || found.most == 0) fail("a number in braces");
    } else {
      return found;
    }
    if (take("?")) fail("a lazy repetition");
    found.possessive = take("+");
    return found;
  }

  int64_t read_count() {
    int64_t count = 0;
    if (!at("0123456789")) fail("no number in braces");
    while (at("0123456789") && count <= kMostCount) {
      count = 10 * count + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (count > kMostCount) fail("a number above 16 in braces");
    return count;
  }

  static Set without_case(const Set& set) {
    constexpr char32_t kMostCharacters = 64;
    if (set.negated || set.space || set.categories != 0) fail("a class within (?i:…)");
    Set lower{.any_case = true};
    for (const auto& [first, last] : set.ranges) {
      if (last - first >= kMostCharacters) fail("more than 64 characters within (?i:…)");
      for (char32_t c = first; c <= last; ++c)
        lower.ranges.emplace_back(in_lower_case(c), in_lower_case(c));
    }
    return lower;
  }

  Set read_set() {
    Set set;
    take("[");
    set.negated = take("^");
    while (!rest_.empty() && !at("]")) {
      if (at("[") || rest_.starts_with("&&")) fail("a set within a set");
      add(read_character(), set);
    }
    if (!take("]")) fail("a set without its end");
    if (set.ranges.empty() && set.categories == 0 && !set.space) fail("an empty set");
    return set;
  }

  void add(const Set& one, Set& set) {
    const bool is_character = one.ranges.size() == 1;
    if (is_character && rest_.size() > 1 && rest_.front() == '-' && rest_[1] != ']') {
      take("-");
      const Set end = read_character();
      if (end.ranges.size() != 1 || end.ranges[0].first < one.ranges[0].first) fail("a range");
      return set.ranges.emplace_back(one.ranges[0].first, end.ranges[0].first), void();
    }
    if (one.negated) fail("\\S within a set");
    set.space = set.space || one.space;
    set.categories |= one.categories;
    set.ranges.insert(set.ranges.end(), one.ranges.begin(), one.ranges.end());
  }

  /// A character by itself, escaped, or a class like \s and \p{L}.
  Set read_character() {
    if (take("\\p{")) {
      const size_t end = std::min(rest_.find('}'), rest_.size());
      const std::string name(rest_.substr(0, end));
      const uint32_t categories = categories_named(name);
      if (categories == 0 || end == rest_.size()) fail(fmt::format("\\p{{{}}}", name));
      rest_.remove_prefix(end + 1);
      return {.categories = categories};
    }
    if (take("\\s")) return {.space = true};
    if (take("\\S")) return {.negated = true, .space = true};
    if (take("\\d")) return {.categories = categories_named("Nd")};
    if (take("\\")) {
      constexpr std::string_view kNames = "nrt", kMeanings = "\n\r\t";
      if (rest_.empty()) fail("a backslash at the end");
      const char name = rest_.front();
      const size_t found = kNames.find(name);
      const auto c = static_cast<unsigned char>(name);
      const bool is_sign =
          c < 0x80 && std::string_view("^$\\.*+?()[]{}|/-'\"#&~ ").find(name) != kNoMatch;
      if (found == kNoMatch && !is_sign) fail(fmt::format("\\{}", name));
      rest_.remove_prefix(1);
      return of(found == kNoMatch ? static_cast<char32_t>(c)
                                  : static_cast<char32_t>(kMeanings[found]));
    }
    if (at(".^$*+?{}()")) fail(fmt::format("'{}'", rest_.front()));
    return of(take_character(rest_));
  }

  static Set of(char32_t c) { return {.ranges = {{c, c}}}; }

  size_t number_of(const Set& set) {
    std::vector<Set>& sets = graph_.sets;
    const auto number = static_cast<size_t>(std::ranges::find(sets, set) - sets.begin());
    if (number < sets.size()) return number;
    if (number == kMostSets) fail("more than 64 sets");
    sets.push_back(set);
    for (char32_t c = 0; c < 128; ++c) graph_.sets_of_ascii[c][number] = set.contains(c);
    return number;
  }

  /// What follows from the nodes behind it.
  const Node& finish(size_t n) {
    Node& node = graph_.nodes[n];
    if (std::exchange(node.is_finished, true)) return node;
    const bool is_one = node.kind == Node::Kind::kOne;
    if (node.kind == Node::Kind::kEnd) {
      node.can_be_empty = true;
      node.begins.set();
      return node;
    }
    for (const size_t way : node.kind == Node::Kind::kEither ? node.ways : std::vector{node.next}) {
      const Node& next = finish(way);
      if (is_one) continue;
      node.can_be_empty |= next.can_be_empty;
      node.begins |= next.begins;
    }
    for (size_t c = 0; (is_one || node.kind == Node::Kind::kUpTo) && c < 128; ++c)
      node.begins[c] = node.begins[c] || graph_.sets_of_ascii[c][node.set];
    return node;
  }

  std::string_view rest_;
  Graph graph_;
  size_t parts_ = 0;
  bool any_case_ = false;  // within (?i:…)
};

/// One text.
class Matcher {
 public:
  Matcher(const Graph& graph, std::string_view text) : graph_(graph), text_(text) {}

  /// Where the match that begins at `at` ends, or kNoMatch.
  size_t match(size_t at) {
    const auto byte = static_cast<unsigned char>(text_[at]);
    const bool may = byte >= 0x80 || graph_.nodes[graph_.first].begins[byte];
    return may ? match(graph_.first, at) : kNoMatch;
  }

 private:
  // From node number n on.
  size_t match(size_t n, size_t at) {
    while (true) {
      const Node& node = graph_.nodes[n];
      switch (node.kind) {
        case Node::Kind::kEnd:
          return at;
        case Node::Kind::kOne:
          at = after(node.set, at);
          if (at == kNoMatch) return kNoMatch;
          break;
        case Node::Kind::kBeforeSpace:
          if (at < text_.size() && !is_white_space(character(at))) return kNoMatch;
          break;
        default:
          return choose(node, at);
      }
      n = node.next;
    }
  }

  size_t choose(const Node& node, size_t at) {
    if (node.memory && has_failed(*node.memory, at)) return kNoMatch;
    const size_t end =
        node.kind == Node::Kind::kEither ? match_either(node, at) : match_up_to(node, at);
    if (node.memory && end == kNoMatch) remember(*node.memory, at);
    return end;
  }

  size_t match_either(const Node& node, size_t at) {
    const size_t byte = at < text_.size() ? static_cast<unsigned char>(text_[at]) : 0x80;
    for (const size_t way : node.ways) {
      if (byte < 0x80 && !graph_.nodes[way].begins[byte]) continue;
      const size_t end = match(way, at);
      if (end != kNoMatch) return end;
    }
    return kNoMatch;
  }

  /// As many characters as there are, then fewer, unless it is possessive. From where an unlimited
  /// number of them and the rest are known not to match, no more are taken.
  size_t match_up_to(const Node& node, size_t at) {
    const bool unlimited = node.most == kNoLimit;
    bool may_end = true;  // at `last`
    size_t last = at;
    for (int64_t count = 0; count < node.most; ++count) {
      const size_t next = after(node.set, last);
      if (next == kNoMatch) break;
      if (unlimited && has_failed(*node.memory, next)) {
        may_end = !node.possessive;
        break;
      }
      last = next;
    }
    while (true) {
      const size_t end = may_end ? match(node.next, last) : kNoMatch;
      if (end != kNoMatch || last == at) return end;
      may_end = !node.possessive;
      if (unlimited) remember(*node.memory, last);
      --last;
      while (is_inside_character(text_[last])) --last;
    }
  }

  bool has_failed(size_t memory, size_t at) const {
    return !failed_.empty() && failed_[memory * (text_.size() + 1) + at];
  }
  void remember(size_t memory, size_t at) {
    if (failed_.empty()) failed_.resize(graph_.memories * (text_.size() + 1));
    failed_[memory * (text_.size() + 1) + at] = true;
  }

  char32_t character(size_t at) const {
    std::string_view rest = text_.substr(at);
    return take_character(rest);
  }

  /// Where the character at `at` ends, if it is one of the set.
  size_t after(size_t set, size_t at) const {
    if (at == text_.size()) return kNoMatch;
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return graph_.sets_of_ascii[byte][set] ? at + 1 : kNoMatch;
    std::string_view rest = text_.substr(at);
    const char32_t c = take_character(rest);
    return graph_.sets[set].contains(c) ? text_.size() - rest.size() : kNoMatch;
  }

  const Graph& graph_;
  std::string_view text_;
  std::vector<bool> failed_;  // [memories, places]
};

}  // namespace split_pattern

SplitPattern::SplitPattern(std::string_view expression)
    : graph_(
          std::make_shared<const split_pattern::Graph>(split_pattern::Parser(expression).read())) {}

void SplitPattern::for_each(std::string_view text, const Visit& visit) const {
  split_pattern::Matcher matcher(*graph_, text);
  size_t begin = 0;  // of what is not visited
  for (size_t at = 0; at < text.size();) {
    const size_t end = matcher.match(at);
    if (end == split_pattern::kNoMatch) {
      at += character_size(text.substr(at));
      continue;
    }
    if (begin < at) visit(text.substr(begin, at - begin));
    visit(text.substr(at, end - at));
    begin = at = end;
  }
  if (begin < text.size()) visit(text.substr(begin));
}

}  // namespace phasor::internal
