#include "tokenizer/split_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

constexpr size_t kMostExpression = 4096;           // bytes
constexpr size_t kMostSets = 32, kMostItems = 32;  // of an alternative; alternatives are as many
constexpr size_t kMostWords = 64, kMostMemories = 64;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max(), kMostCount = 16;
constexpr size_t kNoMatch = std::string_view::npos;

char32_t in_lower_case(char32_t c) {
  if (c == U'\u017f') return U's';  // long s, the other s
  if (c == U'\u212a') return U'k';  // and Kelvin's sign
  return to_lower(c);
}

}  // namespace

/// Reads an expression from left to right.
class SplitParser {
 public:
  SplitParser(std::string_view expression, SplitPattern& pattern)
      : rest_(expression), pattern_(pattern) {}

  void read() {
    if (rest_.size() > kMostExpression) fail("it is longer than 4096 bytes");
    do {
      read_alternative();
    } while (take("|"));
    if (!rest_.empty()) fail(fmt::format("'{}'", rest_.substr(0, character_size(rest_))));
  }

 private:
  using Item = SplitPattern::Item;
  using Set = SplitPattern::Set;

  [[noreturn]] static void fail(const std::string& what) { throw SplitPattern::Fault(what); }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool at(std::string_view characters) const {
    return !rest_.empty() && characters.find(rest_.front()) != kNoMatch;
  }

  void read_alternative() {
    if (pattern_.alternatives_.size() == kMostItems) fail("more than 32 alternatives");
    SplitPattern::Alternative items;
    while (!rest_.empty() && !at("|")) {
      if (items.size() == kMostItems) fail("more than 32 parts in an alternative");
      if (!items.empty() && items.back().kind == Item::Kind::kBeforeSpace)
        fail("a part after (?!\\S)");
      items.push_back(read_item());
    }
    if (std::ranges::none_of(items, [](const Item& item) { return item.least > 0; }))
      fail("an alternative that can be empty");
    for (size_t i = 0; i < items.size(); ++i) {
      const bool last = std::none_of(items.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                     items.end(), [](const Item& item) { return item.can_fail(); });
      if (items[i].possessive && items[i].most == kNoLimit && !last)
        fail("a part that has to match after *+ or ++");
    }
    int choices = 0;  // one before an item is tried a few times, two are their product
    for (Item& item : items) {
      if (choices > 1) item.recall = pattern_.memories_++;
      if (item.least != item.most || item.words.size() > 1) ++choices;
    }
    if (pattern_.memories_ > kMostMemories) fail("more than 64 repetitions");
    pattern_.alternatives_.push_back(std::move(items));
  }

  Item read_item() {
    if (take("(?!\\S)")) return {.kind = Item::Kind::kBeforeSpace, .least = 0, .most = 0};
    Item item;
    if (at("(")) {
      item = read_words();
    } else {
      item.set = number_of(at("[") ? read_set() : read_character());
    }
    read_quantifier(item);
    if (item.most == kNoLimit) item.memory = pattern_.memories_++;
    return item;
  }

  void read_quantifier(Item& item) {
    if (take("?")) {
      item.least = 0;
    } else if (take("*")) {
      item.least = 0;
      item.most = kNoLimit;
    } else if (take("+")) {
      item.most = kNoLimit;
    } else if (take("{")) {
      item.least = read_count();
      item.most = !take(",") ? item.least : at("}") ? kNoLimit : read_count();
      if (!take("}") || item.most < item.least || item.most == 0) fail("a number in braces");
    } else {
      return;
    }
    if (item.kind == Item::Kind::kWords && item.most > 1) fail("repeated words");
    if (take("?")) fail("a lazy repetition");
    item.possessive = take("+");
    if (item.kind == Item::Kind::kWords && item.possessive) fail("possessive words");
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

  /// (?:…) or (?i:…)
  Item read_words() {
    Item item{.kind = Item::Kind::kWords};
    item.any_case = take("(?i:");
    if (!item.any_case && !take("(?:")) fail("a group that is neither (?:…) nor (?i:…)");
    do {
      std::vector<std::u32string> words = {U""};
      while (!rest_.empty() && !at("|)")) {
        std::u32string choices;
        if (at("[")) {
          for (const auto& [first, last] : plain(read_set())) {
            for (char32_t c = first; c <= last && choices.size() <= kMostWords; ++c) choices += c;
          }
        } else {
          choices += plain(read_character()).front().first;
        }
        std::vector<std::u32string> longer;
        for (const std::u32string& word : words) {
          for (const char32_t c : choices) {
            longer.push_back(word + (item.any_case ? in_lower_case(c) : c));
          }
        }
        words = std::move(longer);
        if (words.size() + item.words.size() > kMostWords) fail("more than 64 words");
        if (at("?*+{")) fail("a repetition within words");
      }
      if (words.front().empty()) fail("an empty word");
      item.words.insert(item.words.end(), words.begin(), words.end());
    } while (take("|"));
    if (!take(")")) fail("a group without its end");
    return item;
  }

  static std::vector<std::pair<char32_t, char32_t>> plain(const Set& set) {
    if (set.negated || set.space || set.categories != 0) fail("a class within words");
    return set.ranges;
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

  size_t number_of(Set set) {
    if (pattern_.sets_.size() == kMostSets) fail("more than 32 sets");
    pattern_.sets_.push_back(std::move(set));
    return pattern_.sets_.size() - 1;
  }

  std::string_view rest_;
  SplitPattern& pattern_;
};

bool SplitPattern::Set::contains(char32_t character) const {
  const bool found = (categories & category_bit(character)) != 0 ||
                     (space && is_white_space(character)) ||
                     std::ranges::any_of(ranges, [=](const auto& range) {
                       return character >= range.first && character <= range.second;
                     });
  return found != negated;
}

/// One text.
class SplitPattern::Matcher {
 public:
  Matcher(const SplitPattern& pattern, std::string_view text) : pattern_(pattern), text_(text) {}

  /// Where the match that begins at `at` ends, or kNoMatch.
  size_t match(size_t at) {
    const auto first = static_cast<unsigned char>(text_[at]);
    const uint32_t may = first < 0x80 ? pattern_.first_of_ascii_[first] : ~uint32_t{0};
    for (size_t a = 0; a < pattern_.alternatives_.size(); ++a) {
      if ((may >> a & 1) == 0) continue;
      const size_t end = match(pattern_.alternatives_[a], 0, at);
      if (end != kNoMatch) return end;
    }
    return kNoMatch;
  }

 private:
  // Of the items from number i on.
  size_t match(const Alternative& items, size_t i, size_t at) {
    if (i == items.size()) return at;
    const std::optional<size_t> recall = items[i].recall;
    if (!recall) return match_item(items, i, at);
    if (has_failed(*recall, at)) return kNoMatch;
    const size_t end = match_item(items, i, at);
    if (end == kNoMatch) remember(*recall, at);
    return end;
  }

  size_t match_item(const Alternative& items, size_t i, size_t at) {
    const Item& item = items[i];
    switch (item.kind) {
      case Item::Kind::kBeforeSpace:
        return at == text_.size() || is_white_space(character(at)) ? match(items, i + 1, at)
                                                                   : kNoMatch;
      case Item::Kind::kWords:
        return match_words(items, i, at);
      default:
        break;
    }
    for (int64_t count = 0; count < item.least; ++count) {
      at = after(item.set, at);
      if (at == kNoMatch) return kNoMatch;
    }
    if (item.most == kNoLimit) return match_any_number(items, i, at);
    std::array<size_t, kMostCount + 1> ends = {at};
    int64_t more = 0;
    while (more < item.most - item.least) {
      const size_t next = after(item.set, ends[more]);
      if (next == kNoMatch) break;
      ends[++more] = next;
    }
    for (; more >= 0; --more) {
      const size_t end = match(items, i + 1, ends[more]);
      if (end != kNoMatch || item.possessive) return end;
    }
    return kNoMatch;
  }

  size_t match_words(const Alternative& items, size_t i, size_t at) {
    for (const std::u32string& word : items[i].words) {
      std::string_view rest = text_.substr(at);
      const bool same = std::ranges::all_of(word, [&](char32_t wanted) {
        if (rest.empty()) return false;
        const char32_t c = take_character(rest);
        return (items[i].any_case ? in_lower_case(c) : c) == wanted;
      });
      const size_t end = same ? match(items, i + 1, text_.size() - rest.size()) : kNoMatch;
      if (end != kNoMatch) return end;
    }
    return items[i].least == 0 ? match(items, i + 1, at) : kNoMatch;
  }

  // As many characters as there are, then fewer. From where the rest is known not to match, no more
  // are taken.
  size_t match_any_number(const Alternative& items, size_t i, size_t at) {
    const Item& item = items[i];
    size_t last = at;
    for (size_t next = after(item.set, last); next != kNoMatch; next = after(item.set, last)) {
      if (!item.possessive && has_failed(item.memory, next)) break;
      last = next;
    }
    while (true) {
      const size_t end = match(items, i + 1, last);
      if (end != kNoMatch || item.possessive) return end;
      remember(item.memory, last);
      if (last == at) return kNoMatch;
      --last;
      while (is_inside_character(text_[last])) --last;
    }
  }

  bool has_failed(size_t memory, size_t at) const {
    return !failed_.empty() && failed_[memory * (text_.size() + 1) + at];
  }
  void remember(size_t memory, size_t at) {
    if (failed_.empty()) failed_.resize(pattern_.memories_ * (text_.size() + 1));
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
    if (byte < 0x80) return (pattern_.sets_of_ascii_[byte] >> set & 1) != 0 ? at + 1 : kNoMatch;
    std::string_view rest = text_.substr(at);
    const char32_t c = take_character(rest);
    return pattern_.sets_[set].contains(c) ? text_.size() - rest.size() : kNoMatch;
  }

  const SplitPattern& pattern_;
  std::string_view text_;
  std::vector<bool> failed_;  // [memories, places]
};

SplitPattern::SplitPattern(std::string_view expression) {
  SplitParser(expression, *this).read();
  for (char32_t c = 0; c < 128; ++c) {
    for (size_t s = 0; s < sets_.size(); ++s) {
      if (sets_[s].contains(c)) sets_of_ascii_[c] |= uint32_t{1} << s;
    }
    for (size_t a = 0; a < alternatives_.size(); ++a) {
      if (begins_with(alternatives_[a], c)) first_of_ascii_[c] |= uint32_t{1} << a;
    }
  }
}

bool SplitPattern::begins_with(const Alternative& alternative, char32_t ascii) const {
  for (const Item& item : alternative) {
    if (item.kind == Item::Kind::kSet && sets_[item.set].contains(ascii)) return true;
    if (item.kind == Item::Kind::kWords &&
        std::ranges::any_of(item.words, [&](const std::u32string& word) {
          return word[0] == (item.any_case ? in_lower_case(ascii) : ascii);
        })) {
      return true;
    }
    if (item.least > 0) return false;
  }
  return false;
}

void SplitPattern::for_each(std::string_view text, const Visit& visit) const {
  Matcher matcher(*this, text);
  size_t begin = 0;  // of what is not visited
  for (size_t at = 0; at < text.size();) {
    const size_t end = matcher.match(at);
    if (end == kNoMatch) {
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
