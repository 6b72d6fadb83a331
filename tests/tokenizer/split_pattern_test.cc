// Split expressions of tokenizer.json: what they match, in linear time, and what is refused.
#include "tokenizer/split_pattern.h"

#include "tests/support/tokenizer_folder.h"

namespace phasor {
using namespace internal;

namespace {

constexpr const char* kGpt4 =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kGpt2(kGpt2Pattern);
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Pieces pieces_of(const SplitPattern& pattern, std::string_view text) {
  Pieces pieces;
  pattern.for_each(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

TEST(SplitPatternTest, SplitsAsTheTokenizersLibrary) {
  struct Case {
    std::string expression;
    const char* text;
    Pieces pieces;
  };
  for (const Case& each : std::vector<Case>{
           {kLlama3, "DON'T it'ſ", {"DON", "'T", " it", "'ſ"}},
           {kGpt4, "DON'T it'ſ", {"DON", "'T", " it", "'ſ"}},
           {kO200k, "DON'T it'ſ", {"DON'T", " it'ſ"}},
           {kLlama3, "1234567", {"123", "456", "7"}},
           {kO200k, "camelCaseWords XMLHttp", {"camel", "Case", "Words", " XMLHttp"}},
           {kLlama3, "a  b \n\n c!\n", {"a", " ", " b", " \n\n", " c", "!\n"}},
           {kGpt4, "a \n\n b", {"a", " \n\n", " b"}},
           {kLlama3, "x\u3000\u00a0y  ", {"x", "\u3000", "\u00a0y", "  "}},
           // A word of GPT-2's takes the space before it.
           {kGpt2, "Tom bit  2 dogs!?", {"Tom", " bit", " ", " 2", " dogs", "!?"}},
           {kGpt2, "a \t b\n", {"a", " \t", " b", "\n"}},
           {kGpt2, "a\u00a0b\u3000 c", {"a", "\u00a0", "b", "\u3000", " c"}},
           {kGpt2, "  ", {"  "}},
           {kGpt2, "", {}},
           // Contractions are case-sensitive, and need no word before.
           {kGpt2, "it's I'M we'll'd", {"it", "'s", " I", "'", "M", " we", "'ll", "'d"}},
           {kGpt2, "'tis !'s 's", {"'t", "is", " !'", "s", " '", "s"}},
           {kGpt2, "día½Ⅷ٣x日本🙂e\u0301", {"día", "½Ⅷ٣", "x日本", "🙂", "e", "\u0301"}},
           // Going back, what comes between matches, a limit, and an order of alternatives.
           {"a*ab", "aaab aac", {"aaab", " aac"}},
           {"[ab]{2,3}b", "aabb", {"aabb"}},
           {"a++b|a", "aaab aac", {"aaab", " ", "a", "a", "c"}},
           {"a*+ab|[ab]", "aab", {"a", "a", "b"}},
           {"a|ab", "ab", {"a", "b"}},
           {"(?:ab|a)?c", "xabcac", {"x", "abc", "ac"}},
           {"[a-c]+", "abcdab", {"abc", "d", "ab"}},
           // Groups in groups, with repetitions; a choice that leads to no end is taken back.
           {"(?:a+|b(?:c|d+)?)c", "aac bddc bcc bc", {"aac", " ", "bddc", " ", "bcc", " ", "bc"}},
           {"(?:a|ab)(?:c|bcd)?d", "abcdd", {"abcdd"}},
           {"x(?i:a(?:b|'S))", "xAB xa's Xab", {"xAB", " ", "xa's", " Xab"}},
           {"a(?!\\S)(?:\\s|b)?", "ab a a", {"ab ", "a ", "a"}}})
    EXPECT_EQ(pieces_of(SplitPattern(each.expression), each.text), each.pieces)
        << each.expression << " in " << each.text;
}

TEST(SplitPatternTest, SplitsTheReferenceTextsAsTheTokenizersLibrary) {
  PHASOR_SHARED_OR_SKIP(folder, "golden3/splits");
  std::ifstream file(folder / "splits.json");
  const json splits = json::parse(file);
  for (const auto& [name, expression] : splits["expressions"].items()) {
    const SplitPattern pattern(expression["pattern"].get<std::string>());
    for (const json& item : expression["items"])
      EXPECT_EQ(pieces_of(pattern, item["text"].get<std::string>()), item["pieces"].get<Pieces>())
          << name << item["text"];
  }
}

TEST(SplitPatternTest, WhatIsOutsideTheSubsetIsNamed) {
  for (const auto& [expression, fault] : std::map<std::string, std::string>{
           {"(a+)+", "neither"},
           {"(?:a+)+", "repeated"},
           {"(?:a)?+b", "possessive"},
           {"(?:a*)?", "can be empty"},
           {"(?<=a)b", "neither"},
           {"a+?", "lazy"},
           {"a*", "can be empty"},
           {"a||b", "can be empty"},
           {"a{1,17}", "above 16"},
           {"a{2", "braces"},
           {"[a", "end"},
           {"[]", "empty set"},
           {"[a[b]]", "set within"},
           {"[a&&b]", "set within"},
           {"(?i:a", "end"},
           {"(?i:\\p{L})", "class within"},
           {"\\p{Han}+", "Han"},
           {"\\b", "\\b"},
           {"\\", "backslash"},
           {".", "'.'"},
           {"^a", "'^'"},
           {"a)", "')'"},
           {"(?i:[ -é])", "64 characters"},
           {"(?!a)b", "neither"},
           {repeat(repeat("(?:a|b)?", 20) + "c|", 4) + "a", "64 repetitions"},
           {repeat("a|", 256) + "a", "256 parts"},
           {repeat("(?:", 1000), "256 parts"},
           {std::string(5000, 'a'), "4096"}}) {
    try {
      const SplitPattern pattern(expression);
      ADD_FAILURE() << expression << " was read";
    } catch (const SplitPattern::Fault& error) {
      EXPECT_NE(std::string_view(error.what()).find(fault), std::string_view::npos)
          << expression << ": " << error.what();
    }
  }
}

TEST(SplitPatternTest, TimeIsLinearInTheTextWhateverTheExpression) {
  // A matcher that goes back anew at every place would take 10¹⁰ steps and more.
  constexpr size_t kLetters = 200'000;
  const std::string a(kLetters, 'a'), some_a(50'000, 'a'), spaces(kLetters, ' ');
  for (const auto& [expression, text] : std::vector<std::pair<std::string, std::string>>{
           {"a*b|a", a},
           {"a*a*a*a*b|a", a},
           {"a++a?+b|a", a},
           {"[ab]+[ac]+[ad]+x|a", a},
           {"a{1,16}a*a{1,16}b|a", a},
           {"a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?b|a", a},
           {"(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?(?:a|aa)?b|a",
            a},
           {"a{1,16}a{1,16}a{1,16}a{1,16}a{1,16}a{1,16}b|a", a},
           {"(?:a" + repeat("|a", 119) + ")" + repeat("a{16}", 127) + "b|a", some_a},
           {"(?:(?:a" + repeat("|a", 119) + "))" + repeat("a{16}", 127) + "b|a", some_a},
           {"a{0,16}" + repeat("a{16}", 240) + "b|a", some_a},
           {"(?:a{0,16})" + repeat("a{16}", 240) + "b|a", some_a},
           {"(?:a+|[ab](?:a|aa)?a*)(?:a*|a{1,3})[ab]?b|a", a},
           {"\\s*[\\r\\n]|\\s", spaces},
           {kO200k, a},
           {kO200k, std::string(kLetters, 'A')},
           {kLlama3, spaces},
           {kGpt4, std::string(kLetters, '\n')}}) {
    const SplitPattern pattern(expression);
    const std::string_view whole = text;
    size_t bytes = 0;
    SCOPED_TRACE(expression);
    expect_cpu_seconds_below(2, [&] {
      pattern.for_each(whole, [&](std::string_view piece) { bytes += piece.size(); });
    });
    EXPECT_EQ(bytes, text.size());
  }
}

}  // namespace
}  // namespace phasor
