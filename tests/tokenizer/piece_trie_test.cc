// The pieces that a text begins with, and the bounds on what a crafted vocabulary costs.
#include "tokenizer/piece_trie.h"

#include "files/utf8.h"
#include "tests/support/cpu_seconds.h"
#include "tests/support/test.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor {
using namespace internal;

namespace {

using NumberedPieces = std::vector<std::pair<std::string_view, int32_t>>;

std::string random_text(std::mt19937& random, size_t max_size) {
  std::string text(random() % (max_size + 1), ' ');
  for (char& c : text) c = random() % 4 == 0 ? '\xe9' : static_cast<char>('a' + random() % 2);
  return text;
}

TEST(PieceTrieTest, FindsAllThatATextBeginsWithShortestFirst) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> texts;
    for (auto n = random() % 40; n > 0; --n) texts.insert(random_text(random, 8));
    NumberedPieces pieces;
    for (const std::string& text : texts)
      pieces.emplace_back(text, static_cast<int32_t>(pieces.size()));
    const PieceTrie trie(pieces);
    for (int i = 0; i < 50; ++i) {
      const std::string text = random_text(random, 12);
      std::vector<size_t> expected, sizes;
      for (size_t size = 1; size <= text.size(); ++size) {
        if (texts.contains(text.substr(0, size))) expected.push_back(size);
      }
      trie.for_each_prefix(text, [&](size_t size, int32_t number) {
        EXPECT_EQ(pieces[number].first, text.substr(0, size));
        sizes.push_back(size);
      });
      ASSERT_EQ(sizes, expected) << text;
      ASSERT_EQ(trie.longest(text).size, expected.empty() ? 0 : expected.back());
    }
  }
}

TEST(SpecialTokensTest, TheLongestOfSeveralThatFitIsTaken) {
  Vocabulary vocabulary("it");
  const std::vector<std::string> pieces = {"<a>", "<a><b>", "<a><b><c>!", "<b>"};
  for (const std::string& piece : pieces) vocabulary.append(piece);
  const SpecialTokens specials(vocabulary, {}, pieces);
  const Tokens tokens = specials.encode(
      "<a><b><c> <a><b><c>!<a>", {.parse_special = true},
      [](const AlignedView& part, bool, Tokens& all) { all.pieces.emplace_back(part.text); });
  EXPECT_EQ(tokens.pieces, (std::vector<std::string>{"<a><b>", "<c>", "<a><b><c>!", "<a>"}));
}

TEST(SpecialTokensTest, TheirNumberHardlyMatters) {
  Vocabulary vocabulary("it");
  vocabulary.reserve(50'000);
  std::vector<std::string> pieces;
  for (int i = 0; i < 50'000; ++i) pieces.push_back("<" + std::to_string(i) + ">");
  for (const std::string& piece : pieces) vocabulary.append(piece);
  const SpecialTokens specials(vocabulary, {}, pieces);
  const std::string text = repeat("<a", 300'000);
  // Minutes where each is tried at each byte.
  expect_cpu_seconds_below(10, [&] {
    specials.encode(text + "<7>", {.parse_special = true},
                    [](const AlignedView&, bool, Tokens&) { /* only the specials count */ });
  });
}

TEST(PieceTrieTest, OfEqualPiecesTheFirstCounts) {
  EXPECT_EQ(PieceTrie(NumberedPieces(100, {"a", 1})).longest("ab").number, 1);
  for (const int32_t first : {1, 2}) {
    const PieceTrie trie({{"ab", first}, {"a", 0}, {"ab", 3 - first}});
    EXPECT_EQ(trie.longest("abc").number, first);
  }
  EXPECT_EQ(PieceTrie({{"", 1}}).longest("a").size, 0u);
}

TEST(VocabularyTest, MessagesAreValidUtf8) {
  Vocabulary vocabulary("it");
  try {
    vocabulary.set(std::string(59, 'a') + "é\xff", -1);
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_EQ(to_valid_utf8(error.what()).invalid_bytes, 0) << error.what();
  }
}

TEST(VocabularyTest, IdsMayLeaveGapsButNotManyMoreThanThereArePieces) {
  Vocabulary vocabulary("it");
  vocabulary.set("a", 65535);
  expect_error<ModelError>([&] { vocabulary.set("b", 65536); }, {"'b'", "65536", "65535"});
  vocabulary.reserve(10);
  vocabulary.set("b", 65575);
  expect_error<ModelError>([&] { vocabulary.set("c", 65576); }, {"'c'", "65576", "65575"});
  EXPECT_EQ(vocabulary.size(), 65576);
  EXPECT_EQ(id_limit(kMaxPieces), kMaxPieces);
}

}  // namespace
}  // namespace phasor
