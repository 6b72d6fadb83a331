// Added tokens of every kind of tokenizer, beside what Hugging Face's tokenizers do with random
// ones.
#include <fstream>

#include "tests/support/cpu_seconds.h"
#include "tests/support/test.h"
#include "tests/support/tokenizer_folder.h"

namespace phasor {
namespace {

/// Where each character of `text` begins, and the end.
std::vector<int64_t> bytes_of_characters(const std::string& text) {
  std::vector<int64_t> begins;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xc0) != 0x80) begins.push_back(static_cast<int64_t>(i));
  }
  begins.push_back(std::ssize(text));
  return begins;
}

TEST(AddedTokensTest, AreThoseOfTokenizersInEveryKindOfTokenizer) {
  const json rows = json::parse(std::ifstream(fixture("added_tokens.json")));
  int texts = 0;
  for (const json& row : rows) {
    const auto tokenizer = tokenizer_of({{"tokenizer.json", row[0]}});
    const std::string what = row[0]["model"]["type"].dump() + row[0]["normalizer"].dump() +
                             row[0]["added_tokens"].dump();
    for (const json& item : row[1]) {
      const auto text = item[0].get<std::string>();
      const auto encode = [&](OffsetUnit unit) {
        return tokenizer->encode(text, {.parse_special = true, .offset_unit = unit});
      };
      const auto bytes = bytes_of_characters(text);
      const Tokens tokens = encode(OffsetUnit::kCharacters), in_bytes = encode(OffsetUnit::kBytes);
      EXPECT_EQ(tokens.ids, item[1].get<Ids>()) << item[0] << what;
      ASSERT_EQ(tokens.offsets.size(), item[2].size()) << item[0] << what;
      for (size_t i = 0; i < item[2].size(); ++i) {
        const int64_t begin = item[2][i][0], end = item[2][i][1];
        const TextSpan& span = tokens.offsets[i];
        const TextSpan& of_bytes = in_bytes.offsets[i];
        EXPECT_EQ(std::pair(span.begin, span.end), std::pair(begin, end)) << i << item[0] << what;
        EXPECT_EQ(std::pair(of_bytes.begin, of_bytes.end),
                  std::pair(bytes.at(begin), bytes.at(end)))
            << i << item[0] << what;
      }
      EXPECT_EQ(tokenizer->encode(text).ids, item[3].get<Ids>()) << item[0] << what;
      ++texts;
    }
  }
  EXPECT_GT(texts, 190);
}

TEST(AddedTokensTest, OneThatIsNormalizedToNothingCutsCharacters) {
  json root = bert_json({{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}});
  root["normalizer"] = {{"type", "StripAccents"}};
  root["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  root["post_processor"] = nullptr;
  root["model"] = {{"type", "BPE"},
                   {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"Ġ", 3}, {"Ã", 4}, {"©", 5}}},
                   {"merges", {"a b"}}};
  const json mark = {{"id", 6}, {"content", "\u0301"}, {"normalized", true}};
  const auto whole = tokenizer_of({{"tokenizer.json", root}});
  root["added_tokens"] = json::array({mark});
  const auto cut = tokenizer_of({{"tokenizer.json", root}});
  EXPECT_EQ(whole->encode("ab").ids, (Ids{2}));
  EXPECT_EQ(cut->encode("ab").ids, (Ids{0, 1}));
  EXPECT_EQ(cut->encode("ab \u0301a").ids, (Ids{0, 1, 3, 0}));
  EXPECT_EQ(cut->encode("éab").ids, (Ids{4, 5, 0, 1}));  // at which tokenizers fails
  root["added_tokens"][0]["rstrip"] = true;              // the token has the space that follows it
  EXPECT_EQ(tokenizer_of({{"tokenizer.json", root}})->encode("a b").ids, (Ids{0, 6, 1}));
}

TEST(AddedTokensTest, TimeIsLinearInWhiteSpaceThatTokensTake) {
  constexpr int64_t kSpaces = 200'000;  // 2·10¹⁰ steps where each token looks for their end
  for (const bool normalized : {false, true}) {
    json root = bert_json({{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"a", 3}});
    root["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    root["post_processor"] = {{"type", "RobertaProcessing"},
                              {"sep", {"[SEP]", 2}},
                              {"cls", {"[CLS]", 1}},
                              {"trim_offsets", true},
                              {"add_prefix_space", true}};
    root["normalizer"] = nullptr;
    root["model"] = {{"type", "BPE"},
                     {"vocab", {{"[UNK]", 0}, {"[CLS]", 1}, {"[SEP]", 2}, {"a", 3}, {"aa", 6}}},
                     {"merges", {"a a"}}};
    root["added_tokens"] = {
        {{"id", 4}, {"content", " "}, {"rstrip", true}, {"normalized", normalized}},
        {{"id", 5}, {"content", "\n"}, {"lstrip", true}, {"normalized", normalized}}};
    const auto tokenizer = tokenizer_of({{"tokenizer.json", root}});
    const std::string text = "a" + std::string(kSpaces, ' ') + "a" + std::string(kSpaces, '\n');
    Tokens tokens;
    expect_cpu_seconds_below(
        5, [&] { tokens = tokenizer->encode(text, {.offset_unit = OffsetUnit::kBytes}); });
    ASSERT_EQ(std::ssize(tokens.ids), 2 * kSpaces + 4);
    EXPECT_EQ(tokens.ids[2], 4);
    // A token of white space alone is at the end of what it takes.
    for (const int64_t i : {int64_t{2}, kSpaces + 1}) {
      EXPECT_EQ(tokens.offsets.at(i).begin, kSpaces + 1) << i;
      EXPECT_EQ(tokens.offsets.at(i).end, kSpaces + 1) << i;
    }
  }
}

}  // namespace
}  // namespace phasor
