// Split expressions of tokenizer.json, and texts for them.
#include "files/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tokenizer/split_pattern.h"

namespace phasor::fuzz {
namespace {

using internal::SplitPattern;

std::vector<std::string_view> pieces_of(std::string_view expression, std::string_view text) {
  std::vector<std::string_view> pieces;
  SplitPattern(expression).for_each(text, [&](std::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

bool run_split(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const std::string expression = internal::to_valid_utf8(bytes.substr(0, end)).text;
  const std::string text = internal::to_valid_utf8(bytes.substr(end)).text;
  try {
    const std::vector<std::string_view> pieces = pieces_of(expression, text);
    const char* next = text.data();
    for (const std::string_view piece : pieces) {
      require(piece.data() == next && !piece.empty(), "the pieces are the text");
      require(!internal::is_inside_character(piece.front()), "a piece is of whole characters");
      next += piece.size();
    }
    require(next == text.data() + text.size(), "the pieces are all of the text");
    // With other nodes, of which more remember where they did not match.
    require(pieces == pieces_of("(?:" + expression + ")", text),
            "a group matches what its alternatives match");
  } catch (const SplitPattern::Fault&) {
    return false;
  }
  return true;
}

}  // namespace

Fuzzer split_fuzzer() {
  return {.name = "split",
          .run = run_split,
          .seeds = []() -> std::vector<std::string> {
            return {std::string(internal::kGpt2Pattern) + "\nTom's dog bit  2 cats",
                    "(?i:'s|[dt])|[^\\r\\n\\p{L}]?+\\p{Lu}*[a-z\\p{M}]+|\\p{N}{1,3}\nA'S 1234 b\n",
                    "a*(?:ab|b(?:c+|d)?)?\\s\naabbcc abd ",
                    " ?[^\\s\\p{L}]++[\\r\\n]*|\\s+(?!\\S)|\\s\n!!\n  \xc3\xa9",
                    "(?:a|aa)?(?:a|aa)?a{1,3}a*b|a\naaaaaaaab"};
          },
          .words = words(R"(
(?: (?i: (?!\\S) \\p{L} \\p{N} \\s \\S [^ ] {1,3} {2,} ?+ ++ *+ | \n)"),
          .refused = {"a**\na", "(a+)+\na"}};
}

}  // namespace phasor::fuzz
