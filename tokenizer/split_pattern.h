// Splits a text by the regular expressions of published tokenizer.json files, in time linear in the
// text.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phasor::internal {

/// GPT-2's regular expression for a word.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A regular expression of alternatives, the first that matches wins, of these parts:
///
///     a  \n  \p{L}  \s  [^\s\p{L}/]     a character of a set
///     (?:ab|c)  (?i:'s|[dt])            one of some words, in any case after ?i
///     (?!\S)                            at the end of an alternative: before white space or the
///     end ?  *  +  {1,3}  ?+  *+  ++        after a set; of words only ?
///
/// Matching goes back as usual, but never twice over the same ground: what does not match from a
/// place on is remembered. So the time is linear, whatever the expression. Immutable.
class SplitPattern {
 public:
  /// What the expression has that is not among these.
  struct Fault : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  /// Throws Fault.
  explicit SplitPattern(std::string_view expression);

  using Visit = std::function<void(std::string_view piece)>;
  /// Calls `visit` with the matches in `text`, which is valid UTF-8, and with what is between them:
  /// together all of the text.
  void for_each(std::string_view text, const Visit& visit) const;

 private:
  friend class SplitParser;
  class Matcher;

  struct Set {
    bool negated = false;
    bool space = false;
    uint32_t categories = 0;  // see category_bit()
    std::vector<std::pair<char32_t, char32_t>> ranges = {};

    bool contains(char32_t character) const;
  };
  struct Item {
    enum class Kind { kSet, kWords, kBeforeSpace } kind = Kind::kSet;
    size_t set = 0;                          // its number
    int64_t least = 1, most = 1;             // so many characters, or words
    bool possessive = false;                 // never fewer than can be
    bool any_case = false;                   // of words
    std::vector<std::u32string> words = {};  // in lower case, if in any
    size_t memory = 0;                       // number of the memory of an item without a limit
    /// That of where it and what follows did not match, if choices before it lead here again.
    std::optional<size_t> recall = {};

    bool can_fail() const { return kind == Kind::kBeforeSpace || least > 0; }
  };
  using Alternative = std::vector<Item>;

  bool begins_with(const Alternative& alternative, char32_t ascii) const;

  std::vector<Set> sets_;
  std::vector<Alternative> alternatives_;
  size_t memories_ = 0;                            // items without a limit
  std::array<uint32_t, 128> sets_of_ascii_ = {};   // a bit for each set
  std::array<uint32_t, 128> first_of_ascii_ = {};  // a bit for each alternative that may begin so
};

}  // namespace phasor::internal
