// SentencePiece models that would lead libsentencepiece astray are refused.
#include "tokenizer/sentencepiece_check.h"

#include "tests/support/tokenizer_folder.h"

namespace phasor {
using namespace internal;

namespace {

std::shared_ptr<const Tokenizer> load_bytes(const std::string& model) {
  const TempFolder folder;
  folder.write("any.model", model);
  return Tokenizer::load(folder.path());
}

/// Loads the model and, should that work, runs texts that reach every rule and piece of this file.
void use(const std::string& model) {
  const auto tokenizer = load_bytes(model);
  for (const char* const letter : {"a", "b", "\xc3\xa9"})
    tokenizer->encode(repeat(letter, 300) + "z");
  tokenizer->encode(std::string("b\0\0a", 4));
}

void expect_refused(const std::string& model, Pieces words) {
  words.push_back("any.model");
  EXPECT_REFUSED(use(model), words);
}

void expect_refused(const TestCharsmap& charsmap, Pieces words) {
  words.push_back("normalizer_spec.precompiled_charsmap");
  expect_refused(sentencepiece_bytes({{"a"}}, charsmap.bytes()), words);
}

std::string letters(size_t count) { return std::string(count, 'a'); }

std::vector<std::pair<std::string, std::string>> nested_rules(size_t count) {
  std::vector<std::pair<std::string, std::string>> rules;
  for (size_t n = 1; n <= count; ++n) rules.emplace_back(letters(n), "b");
  return rules;
}

std::vector<TestPiece> nested_pieces(size_t count, PieceType type) {
  std::vector<TestPiece> pieces;
  for (size_t n = 1; n <= count; ++n) pieces.push_back({letters(n), type});
  return pieces;
}

TEST(SentencePieceCheckTest, AGoodModelIsReadAndFieldsOfOtherVersionsAndItsSelfTestAreLeftOut) {
  const TestCharsmap charsmap = make_charsmap({{"b", "a"}, {"bc", "d"}, {"\xc3\xa9", "a"}});
  const auto tokenizer = load_bytes(sentencepiece_bytes({{"a"}, {"d"}}, charsmap.bytes()));
  EXPECT_EQ(tokenizer->encode("b bc\xc3\xa9").pieces, (Pieces{"▁", "a", "▁", "d", "a"}));
  use(sentencepiece_bytes({{"a"}}) + bytes_field(200, "new") + varint_field(201, 7) +
      varint_field(1, 3));
  const std::string sample = bytes_field(1, letters(100)) + bytes_field(2, "something else");
  testing::internal::CaptureStderr();
  use(sentencepiece_bytes({{"a"}}) + bytes_field(4, bytes_field(1, sample)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(SentencePieceCheckTest, RulesThatMakeATextMuchLongerAreStopped) {
  const auto tokenizer = load_bytes(
      sentencepiece_bytes({{"a"}}, make_charsmap({{"b", letters(33)}, {"c", letters(8)}}).bytes()));
  EXPECT_EQ(tokenizer->encode("ba").ids.size(), 1u + 34u);
  EXPECT_REFUSED(tokenizer->encode(std::string(100, 'b')), {"1616", "100"});
  EXPECT_GT(tokenizer->encode(std::string(1000, 'c')).ids.size(), 8000u);
  EXPECT_REFUSED(tokenizer->encode(std::string(300'000, 'c'), {.ids_only = true}),
                 {"2248576", "300000"});
}

TEST(SentencePieceCheckTest, TextsOfAllKindsAreSafeWithAGoodModel) {
  const TestCharsmap charsmap = make_charsmap({{"b", "a"}, {"bc", "d"}});
  const auto tokenizer = load_bytes(sentencepiece_bytes({{"a"}, {"aa"}}, charsmap.bytes()));
  const std::string hole = "\xee\x80\x80";  // U+E000
  for (const std::string& unit : {std::string("a"), std::string("b c"), std::string(1, '\0')})
    EXPECT_GT(tokenizer->encode(repeat(unit, 50'000)).ids.size(), 1u);
  for (const std::string& text : {hole, hole + hole, "a" + hole + "b", hole + "<unk>" + hole})
    EXPECT_GT(tokenizer->encode(text, {.parse_special = true}).ids.size(), 1u);
}

TEST(SentencePieceCheckTest, ATrieThatPointsOutsideItselfOrRunsInACircle) {
  TestCharsmap charsmap = make_charsmap({{"ab", "a"}});
  const size_t a = 256 ^ 'a', below_a = 512;
  // The second letter leads to where the first one began.
  charsmap.units[below_a ^ 'b'] = static_cast<uint32_t>((below_a ^ 'b' ^ 256) << 10) | 'b' | 0x100;
  EXPECT_EQ(charsmap.units[a] & 0xff, static_cast<uint32_t>('a'));
  expect_refused(charsmap, {"more than 64 bytes"});
  // U+0000 leads from the root to the root.
  charsmap = make_charsmap({{"b", "a"}});
  charsmap.units[0] = 0;
  expect_refused(charsmap, {"more than 64 bytes"});
  charsmap = make_charsmap({{"b", "a"}});
  const size_t node = 256 ^ 'b';
  charsmap.units[0] = 0x3fffff << 10;
  expect_refused(charsmap, {"outside itself"});
  charsmap = make_charsmap({{"b", "a"}});
  charsmap.units[node] |= 0x7ffffe00;
  expect_refused(charsmap, {"outside itself"});
}

TEST(SentencePieceCheckTest, ATrieWhosePathsAreManyMoreThanItsNodes) {
  // Each of 20 nodes, one behind the other, leads to the next by "a" and by "b".
  TestCharsmap charsmap = make_charsmap({{letters(20), "b"}});
  for (size_t base = 256; base < charsmap.units.size() - 256; base += 256) {
    const size_t a = base ^ 'a', b = base ^ 'b', below = base + 256;
    charsmap.units[b] =
        (charsmap.units[a] & 0x100) | static_cast<uint32_t>((b ^ below) << 10) | 'b';
  }
  expect_refused(charsmap, {"more than 524288"});
}

TEST(SentencePieceCheckTest, AReplacementOutsideTheTable) {
  TestCharsmap charsmap = make_charsmap({{"b", "a"}, {"\xc3\xa9", "\xc3\xa9"}});
  const auto replacement_of_b = [&](uint32_t place) {
    TestCharsmap changed = charsmap;
    changed.units[512] = 0x80000000 | place;
    return changed;
  };
  expect_refused(replacement_of_b(5), {"no replacement begins at byte 5 of 5"});
  expect_refused(replacement_of_b(0x7fffffff), {"2147483647"});
  expect_refused(replacement_of_b(3), {"byte 3 of 5"});  // the second byte of é
  use(sentencepiece_bytes({{"a"}}, replacement_of_b(4).bytes()));
}

TEST(SentencePieceCheckTest, ATableThatIsNotOne) {
  const TestCharsmap good = make_charsmap({{"b", "a"}});
  TestCharsmap changed = good;
  changed.table.pop_back();
  expect_refused(changed, {"does not end in NUL"});
  changed.table = "";
  expect_refused(changed, {"its trie has 3072 bytes of 3072"});
  changed.table = std::string("\xff\0", 2);
  expect_refused(changed, {"UTF-8"});
  changed.table = std::string(65, 'a') + '\0';
  expect_refused(changed, {"65 bytes", "at most 64"});
  changed = good;
  changed.units.pop_back();
  expect_refused(changed, {"3068", "1024"});
  changed.units.clear();
  expect_refused(changed, {"0 bytes of 2"});
  const std::string bytes = good.bytes();
  for (const size_t size : {1, 3, 4, 5, 100, 3075, 3076})
    expect_refused(sentencepiece_bytes({{"a"}}, bytes.substr(0, size)), {"precompiled_charsmap"});
}

TEST(SentencePieceCheckTest, OfSeveralTablesTheLastCountsAndTheDenormalizersIsLeftOut) {
  const TestCharsmap good = make_charsmap({{"b", "a"}});
  TestCharsmap bad = good;
  bad.units[0] = 0x3fffff << 10;
  for (const auto& [first, second] : {std::pair(good, bad), std::pair(bad, good)}) {
    expect_refused(sentencepiece_bytes({{"a"}}, first.bytes()) +
                       bytes_field(3, bytes_field(2, second.bytes())),
                   {"outside itself"});
  }
  use(sentencepiece_bytes({{"a"}}) + bytes_field(5, bytes_field(2, bad.bytes())) +
      bytes_field(2, varint_field(3, 2)));
}

TEST(SentencePieceCheckTest, RulesAndPiecesThatAreTooLongOrNoText) {
  use(sentencepiece_bytes({{"b"}}, make_charsmap(nested_rules(64)).bytes()));
  for (const size_t count : {65, 100, 250}) {
    expect_refused(make_charsmap(nested_rules(count)), {"more than 64 bytes"});
    expect_refused(make_charsmap({{letters(count), "b"}}), {"more than 64 bytes"});
  }
  for (const PieceType type : {PieceType::kNormal, PieceType::kUserDefined, PieceType::kControl}) {
    for (const auto& [text, words] :
         {std::pair(std::string(), Pieces{"piece 3", "empty"}),
          std::pair(std::string(1, '\0'), Pieces{"piece 3", "U+0000"}),
          std::pair(std::string("a\0b", 3), Pieces{"piece 3", "U+0000"}),
          std::pair(std::string("\xc3"), Pieces{"piece 3", "UTF-8"})})
      expect_refused(sentencepiece_bytes({{"a"}, {text, type}}), words);
    if (type == PieceType::kControl) continue;
    use(sentencepiece_bytes({{letters(1024), type}}));
    for (const size_t size : {1025, 200000})
      expect_refused(sentencepiece_bytes({{letters(size), type}}),
                     {"piece 2 has", std::to_string(size), "at most 1024"});
  }
}

TEST(SentencePieceCheckTest, MoreNestedUserDefinedPiecesThanTheLibraryHasRoomFor) {
  use(sentencepiece_bytes(nested_pieces(64, PieceType::kUserDefined)));
  for (const size_t count : {65, 100, 250})
    expect_refused(sentencepiece_bytes(nested_pieces(count, PieceType::kUserDefined)),
                   {"more than 64 user-defined pieces", "'a'"});
  use(sentencepiece_bytes(nested_pieces(250, PieceType::kNormal)));
  // Side by side they may be as many as they like.
  std::vector<TestPiece> pieces;
  for (char c = 'a'; c <= 'z'; ++c)
    for (char d = 'a'; d <= 'z'; ++d) pieces.push_back({{c, d}, PieceType::kUserDefined});
  use(sentencepiece_bytes(pieces));
}

TEST(SentencePieceCheckTest, TypesAndScoresThatPiecesCannotHave) {
  for (const uint64_t type : {uint64_t{0}, uint64_t{7}, (uint64_t{1} << 32) + 4, ~uint64_t{0}})
    expect_refused(sentencepiece_bytes({{"a", static_cast<PieceType>(type)}}),
                   {"piece 2", "type " + std::to_string(type), "from 1 to 6"});
  const std::string no_unknown = bytes_field(1, bytes_field(1, "a"));
  expect_refused(no_unknown, {"0 pieces", "UNKNOWN"});
  expect_refused(sentencepiece_bytes({{"a", PieceType::kUnknown}}), {"2 pieces", "UNKNOWN"});
  expect_refused(sentencepiece_bytes({{"a"}, {"a"}}), {});
  expect_refused(sentencepiece_bytes({{"<0x41>", PieceType::kByte}}), {});
  expect_refused(sentencepiece_bytes({{"a"}}) + bytes_field(2, varint_field(35, 1)), {});
  using Limits = std::numeric_limits<float>;
  for (const float score : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()})
    expect_refused(sentencepiece_bytes({{"a", PieceType::kNormal, score}}), {"piece 2", "score"});
  use(sentencepiece_bytes({{"a", PieceType::kNormal, Limits::max()},
                           {"aa", PieceType::kUserDefined, 0},
                           {"b", PieceType::kNormal, Limits::lowest()}}));
  const std::string unk_piece_is_a = bytes_field(2, bytes_field(45, "a"));
  expect_refused(sentencepiece_bytes({{"a"}}) + unk_piece_is_a, {"unk_piece", "UNKNOWN"});
  // Where it names no piece at all, the one of the type UNKNOWN is meant.
  EXPECT_EQ(
      load_bytes(sentencepiece_bytes({{"b"}}) + unk_piece_is_a)->encode("\xe6\x97\xa5").ids.back(),
      0);
}

/// A model of 256 byte pieces, of which the first is spelled `first`.
std::string byte_model(const std::string& first) {
  std::vector<TestPiece> pieces = {{first, PieceType::kByte}};
  for (int byte = 1; byte < 256; ++byte)
    pieces.push_back({fmt::format("<0x{:02X}>", byte), PieceType::kByte});
  return sentencepiece_bytes(pieces) + bytes_field(2, varint_field(35, 1));
}

TEST(SentencePieceCheckTest, BytePiecesThatAreNoBytes) {
  const auto tokenizer = load_bytes(byte_model("<0x00>"));
  EXPECT_EQ(tokenizer->encode("\xe6\x97\xa5").ids.size(), 4u);  // "▁" is no piece either
  for (const char* const text : {"<0x-1>", "<0x+1>", "<0x 1>", "<0xZZ>", "<0x0>", "<0x000>",
                                 "<0x100>", "<0XFF>", "<0xfe>", "<0xFF>", "<0x", "00"})
    expect_refused(byte_model(text), {});
}

TEST(SentencePieceCheckTest, EveryTypeOfModel) {
  using enum PieceType;
  const std::vector<TestPiece> pieces = {
      {"a", kNormal, -5},   {"b", kNormal, -5},   {"é", kNormal, -5},    {"日", kNormal, -5},
      {"ab", kNormal, -1},  {"é日", kNormal, -2}, {"abab", kNormal, -3}, {"▁ab", kNormal, -4},
      {"░▒", kNormal, -2},  {"░", kNormal, -5},   {"▒", kNormal, -5},    {"bb", kUnused, -1},
      {"<s>", kControl, 0}, {"aé", kUserDefined}};
  const std::string text = "ababa ab é日x░▒ bb aéé";
  for (const auto& [type, expected] : std::vector<std::pair<uint64_t, Pieces>>{
           {2, {"▁", "abab", "a", "▁ab", "▁", "é日", "x", "░▒", "▁", "b", "b", "▁", "aé", "é"}},
           {3, {"▁ababa", "▁ab", "▁é日x░▒▁bb▁aéé"}},
           {4, {"▁",  "a", "b", "a", "b", "a", "▁", "a", "b",  "▁", "é",
                "日", "x", "░", "▒", "▁", "b", "b", "▁", "aé", "é"}}}) {
    const auto tokenizer =
        load_bytes(sentencepiece_bytes(pieces) + bytes_field(2, varint_field(3, type)));
    EXPECT_EQ(tokenizer->encode(text).pieces, expected) << type;
  }
  // Others are taken for Unigram.
  for (const uint64_t type : {0, 1, 5, 100}) {
    const auto tokenizer =
        load_bytes(sentencepiece_bytes(pieces) + bytes_field(2, varint_field(3, type)));
    EXPECT_EQ(tokenizer->encode("ab").pieces, (Pieces{"▁", "ab"})) << type;
  }
}

TEST(SentencePieceCheckTest, UnknownCharactersAreTheirBytesInEveryTypeOfModel) {
  std::vector<TestPiece> pieces = {{"a"}, {"▁a"}, {"日"}, {"𝄞"}};
  for (int byte = 255; byte >= 0; --byte)  // in another order than that of their numbers
    pieces.push_back({fmt::format("<0x{:02X}>", byte), PieceType::kByte});
  Pieces numbered = {"<unk>", "▁"};
  for (const TestPiece& piece : pieces) numbered.push_back(piece.text);
  // "=" stands before what is a piece; the bytes of all else are pieces.
  const auto spelled = [](const Pieces& parts) {
    Pieces expected;
    for (const std::string& part : parts) {
      if (part.starts_with('=')) {
        expected.push_back(part.substr(1));
        continue;
      }
      for (const char c : part)
        expected.push_back(fmt::format("<0x{:02X}>", static_cast<unsigned char>(c)));
    }
    return expected;
  };
  const std::string nul(1, '\0');
  const std::string text = "aé日x a 𝄞😀𝄢▂~" + nul;
  for (const auto& [type, parts] : std::vector<std::pair<uint64_t, Pieces>>{
           {2, {"=▁a", "é", "=日", "x", "=▁a", "=▁", "=𝄞", "😀𝄢▂~" + nul}},
           {3, {"▁aé日x", "=▁a", "▁𝄞😀𝄢▂~" + nul}},
           {4, {"=▁", "=a", "é", "=日", "x", "=▁", "=a", "=▁", "=𝄞", "😀𝄢▂~" + nul}}}) {
    const auto tokenizer = load_bytes(sentencepiece_bytes(pieces) +
                                      bytes_field(2, varint_field(3, type) + varint_field(35, 1)));
    const Tokens tokens = tokenizer->encode(text);
    EXPECT_EQ(tokens.pieces, spelled(parts)) << type;
    Pieces of_ids;
    for (const int32_t id : tokens.ids) of_ids.push_back(numbered.at(static_cast<size_t>(id)));
    EXPECT_EQ(of_ids, spelled(parts)) << type;
  }
}

TEST(SentencePieceCheckTest, AModelCutOffAnywhere) {
  const TestCharsmap charsmap = make_charsmap({{"b", "a"}});
  const std::string model = sentencepiece_bytes({{"a"}}, charsmap.bytes());
  const size_t pieces = sentencepiece_bytes({{"a"}}).size();
  int64_t read = 0;
  for (size_t size = 0; size < model.size(); size += size < pieces + 20 ? 1 : 97) {
    try {
      use(model.substr(0, size));
      ++read;
    } catch (const ModelError& error) {
      EXPECT_NE(size, pieces) << error.what();
    }
  }
  EXPECT_EQ(read, 2);  // "<unk>" and "▁" are a model, and "a" makes another
}

/// A run of unknown characters takes libsentencepiece, for BPE, the square of its length: minutes.
void expect_soon(const std::string& model, const std::string& text, double seconds = 20) {
  for (const std::string& type : {varint_field(3, 2), std::string()}) {
    const auto tokenizer = load_bytes(model + bytes_field(2, type));
    expect_cpu_seconds_below(seconds, [&] { EXPECT_FALSE(tokenizer->encode(text).ids.empty()); });
  }
}

TEST(SentencePieceCheckTest, ALongRunOfUnknownCharactersIsCutWhateverMakesIt) {
  constexpr int kSlower = HAS_ADDRESS_SANITIZER ? 10 : 1;
  const std::string words = repeat("x ", 300'000 / kSlower);
  constexpr std::string_view kSpace = "\xe2\x96\x81";
  const std::string letters(30'000 / kSlower, 'x'), longest(16, 'y');
  // A space that is unknown itself, or becomes something else, does not end the run.
  std::string without_space = sentencepiece_bytes({{"q"}});
  without_space.replace(without_space.find(kSpace), kSpace.size(), "zzz");
  expect_soon(without_space, words);
  expect_soon(sentencepiece_bytes({{"q"}}, make_charsmap({{" ", "y"}}).bytes()), words);
  // Of words, as the library reads it: it ignores the type 7 and the upper bits.
  for (const auto& type : {varint_field(3, 3), varint_field(3, 3) + varint_field(3, 7),
                           varint_field(3, 3 + (uint64_t{1} << 32))}) {
    const auto tokenizer = load_bytes(sentencepiece_bytes({{"q"}}) + bytes_field(2, type));
    expect_cpu_seconds_below(5,
                             [&] { EXPECT_FALSE(tokenizer->encode(words + words).ids.empty()); });
  }
  // A rule that makes the text longer.
  expect_soon(sentencepiece_bytes({{"q"}}, make_charsmap({{"x", longest}}).bytes()), letters);
}

}  // namespace
}  // namespace phasor
