// Unigram models against a search through all segmentations, sentencepiece and tokenizers.
#include "tokenizer/unigram.h"

#include "files/utf8.h"
#include "tests/support/tokenizer_folder.h"
#include "tokenizer/piece_trie.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor {
using namespace internal;

namespace {

constexpr double kUnknownScore = -20;

/// The best way to cut `text`, by trying all; of those with equal sums, that whose last piece is
/// longest, then the one before it, and so on.
struct Best {
  double sum = 0;
  std::vector<std::string> pieces = {};  // "?" for one that is unknown
};

Best best_of_all(const std::string& text, const std::map<std::string, double>& scores) {
  if (text.empty()) return {};
  std::optional<Best> best;
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const std::string last = text.substr(begin);
    const auto known = scores.find(last);
    if (known == scores.end() && last.size() > 1) continue;
    Best way = best_of_all(text.substr(0, begin), scores);
    way.sum += known == scores.end() ? kUnknownScore : known->second;
    way.pieces.push_back(known == scores.end() ? "?" : last);
    if (!best || way.sum > best->sum) best = way;
  }
  return *best;
}

TEST(UnigramTest, NoSegmentationIsBetterAndOfEqualOnesThatWithTheLongestEndCounts) {
  std::mt19937 random(20);
  const auto letters = [&](size_t most) {
    std::string text(1 + random() % most, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  int64_t ties = 0;
  for (int round = 0; round < 2000; ++round) {
    std::map<std::string, double> scores;
    for (int n = 0; n < 8; ++n) scores[letters(3)] = -0.25 * static_cast<double>(random() % 12);
    std::vector<ModelPiece> pieces = {{"<unk>", 0, ModelPiece::kUnknown}};
    for (const auto& [text, score] : scores) pieces.push_back({text, score});
    for (const bool float_sums : {true, false}) {
      const Unigram unigram(pieces, kUnknownScore, {.float_sums = float_sums});
      const std::string text = letters(9);
      std::vector<std::string> found;
      std::vector<Unigram::Place> places;
      unigram.cut(text, places, [&](const AlignedView& piece, int32_t number) {
        if (number == 0) return found.resize(found.size() + piece.text.size(), "?");
        EXPECT_EQ(piece.text, pieces[number].text);
        found.emplace_back(piece.text);
      });
      const Best best = best_of_all(text, scores);
      EXPECT_EQ(found, best.pieces) << text;
      // Where long pieces are a little worse, another way is the best if some were equal.
      std::map<std::string, double> shorter = scores;
      for (auto& [piece, score] : shorter) score -= 1e-6 * double(piece.size() * piece.size());
      ties += best_of_all(text, shorter).pieces != best.pieces;
    }
  }
  EXPECT_GT(ties, 50);
}

/// The pieces of "-----", of which "-" and "--" have these scores.
Pieces five_dashes(float dash, float two, bool json_file) {
  const TempFolder folder;
  if (json_file) {
    const json vocab = json::array({json::array({"<unk>", 0}), json::array({"\u2581", -1}),
                                    json::array({"-", dash}), json::array({"--", two})});
    folder.write("tokenizer.json",
                 json{{"pre_tokenizer", {{"type", "Metaspace"}}},
                      {"model", {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocab}}}}
                     .dump());
  } else {
    folder.write("any.model", sentencepiece_bytes({{"-", PieceType::kNormal, dash},
                                                   {"--", PieceType::kNormal, two}}));
  }
  Pieces pieces = Tokenizer::load(folder.path())->encode("-----").pieces;
  pieces.erase(pieces.begin());  // "\u2581"
  return pieces;
}

TEST(UnigramTest, SumsAreFloatInAModelFileAndDoubleInTokenizerJson) {
  // As sentencepiece 0.2.3 and tokenizers 0.23.3 cut it; sentencepiece 0.1.97 has other pieces.
  EXPECT_EQ(five_dashes(-7.277F, -7.498F, false), (Pieces{"--", "-", "--"}));
  EXPECT_EQ(five_dashes(-6.108F, -6.11F, false), (Pieces{"--", "--", "-"}));
  EXPECT_EQ(five_dashes(-7.277F, -7.498F, true), (Pieces{"-", "--", "--"}));
  EXPECT_EQ(five_dashes(-6.108F, -6.11F, true), (Pieces{"-", "--", "--"}));
}

TEST(UnigramTest, SumsOfALongTextDoNotLoseTheirPrecision) {
  // "ab" is better than "a", "b" by less than a float can tell at a million.
  const std::string model = sentencepiece_bytes({{"\u2581a", PieceType::kNormal, -5},
                                                 {"b", PieceType::kNormal, -5},
                                                 {"\u2581ab", PieceType::kNormal, -9.99F}});
  const TempFolder folder;
  folder.write("any.model", model);
  std::string text;
  for (int n = 0; n < 100'000; ++n) text += "ab ";
  const auto ids = Tokenizer::load(folder.path())->encode(text, {.ids_only = true}).ids;
  EXPECT_EQ(ids, std::vector<int32_t>(100'000, 4));
}

TEST(UnigramTest, TheFixturesTiesAreThoseOfSentencePiece) {
  // Expected: sentencepiece 0.2.3, pieces.
  const std::vector<std::tuple<const char*, const char*, Pieces>> rows = {
      {"albert.model", "000", {"▁", "0", "00"}},
      {"albert.model", "0009", {"▁", "0", "00", "9"}},
      {"albert.model", "0001", {"▁", "0", "00", "1"}},
      {"albert.model", "00000000", {"▁", "00", "00", "00", "00"}},
      {"t5.model", "0,000", {"▁", "0", ",", "0", "00"}},
      {"t5.model", "01000", {"▁", "0", "1", "0", "00"}},
      {"t5.model", "01999", {"▁", "0", "1", "9", "99"}},
      {"t5.model", "91000", {"▁", "9", "1", "0", "00"}},
      {"fairseq.model", "0,000", {"▁", "0", ",", "0", "00"}},
      {"fairseq.model", ",,000", {"▁", ",", ",", "0", "00"}},
      {"fairseq.model", "0000000", {"▁", "0", "00", "00", "00"}}};
  for (const auto& [model, text, pieces] : rows) {
    const TempFolder folder;
    fs::copy_file(fixture(model), folder / "any.model");
    EXPECT_EQ(Tokenizer::load(folder.path())->encode(text).pieces, pieces) << model << " " << text;
  }
}

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
      for (size_t size = 1; size <= text.size(); ++size)
        if (texts.contains(text.substr(0, size))) expected.push_back(size);
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
  EXPECT_REFUSED(vocabulary.set("b", 65536), {"'b'", "65536", "65535"});
  vocabulary.reserve(10);
  vocabulary.set("b", 65575);
  EXPECT_REFUSED(vocabulary.set("c", 65576), {"'c'", "65576", "65575"});
  EXPECT_EQ(vocabulary.size(), 65576);
  EXPECT_EQ(id_limit(kMaxPieces), kMaxPieces);
}

}  // namespace
}  // namespace phasor
