// Splits a text by the regular expressions of published tokenizer.json files, in time linear in the
// text.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>

namespace phasor::internal {

namespace split_pattern {
struct Graph;
}

/// GPT-2's regular expression for a word.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A regular expression of alternatives, the first that matches wins, of these parts:
///
///     a  \n  \p{L}  \s  [^\s\p{L}/]     a character of a set
///     (?:ab|c+)  (?i:'s|[dt])           one of some alternatives, in any case after ?i
///     (?!\S)                            before white space or the end
///     ?  *  +  {1,3}  ?+  *+  ++        after a set; after a group only ?
///
/// Matching goes back as usual, but at each repetition, group and end of a group it is remembered
/// from which places of the text the rest did not match, and not tried from there again. So the
/// time is linear in the text, whatever the expression: at most some thousand steps, of the order
/// of the expression's size with its repetitions written out, at each character. Immutable.
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
  std::shared_ptr<const split_pattern::Graph> graph_;
};

}  // namespace phasor::internal
