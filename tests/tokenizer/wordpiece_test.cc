// WordPiece: words as BERT cuts them, greedy longest match, its files; and Unicode's normal forms.
#include "files/utf8.h"
#include "tests/support/tokenizer_folder.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/unicode.h"

namespace phasor {
using namespace internal;

namespace {

Pieces words(const AlignedView& text, const BertWordOptions& options = {}) {
  Pieces words;
  for_each_bert_word(text, options, [&](const AlignedView& word, int64_t num_characters) {
    int64_t counted = 0;
    for (std::string_view rest = word.text; !rest.empty(); ++counted) take_character(rest);
    EXPECT_EQ(num_characters, counted) << word.text;
    words.emplace_back(word.text);
  });
  return words;
}

constexpr BertWordOptions kCased{.lower_case = false, .strip_accents = false, .split_han = true};

TEST(BertWordsTest, AreCutAsBertCutsThem) {
  constexpr BertWordOptions kAccents{.lower_case = true, .strip_accents = false},
      kCasedPlain{.lower_case = false, .strip_accents = true}, kWholeHan{.split_han = false};
  struct Row {
    std::string_view text;
    Pieces words;
    BertWordOptions options = {};
  };
  for (const auto& [text, expected, options] : std::vector<Row>{
           // White space separates: no-break space, em space, ideographic space, line separator.
           {"  a\tb\nc\rd  ", {"a", "b", "c", "d"}},
           {"", {}},
           {" \t ", {}},
           {"a\u00a0b\u2003c\u3000d\u2028e", {"a", "b", "c", "d", "e"}},
           // Control characters join what they stand between.
           {{"a\0b\x07"
             "c\x7f"
             "d",
             7},
            {"abcd"}},
           {"a\u0085b\u200bc\ufeffd\u00ade\ue000f", {"abcdef"}},
           {"a\ufffdb", {"ab"}},
           // Punctuation stands alone, symbols beyond ASCII do not.
           {"it's,ok?!", {"it", "'", "s", ",", "ok", "?", "!"}},
           {"—“a”…¿", {"—", "“", "a", "”", "…", "¿"}},
           {"1+1=$2 ^`|~<>", {"1", "+", "1", "=", "$", "2", "^", "`", "|", "~", "<", ">"}},
           {"a€b±c", {"a€b±c"}},
           // Case and accents, composed or not, are two options.
           {"CAFÉ cafe\u0301 Ünïcödé", {"cafe", "cafe", "unicode"}},
           {"İstanbul ΣΑΣ Привет", {"istanbul", "σασ", "привет"}},
           {"\u0301", {}},
           {"CAFÉ İ", {"CAFÉ", "İ"}, kCased},
           {"cafe\u0301", {"cafe\u0301"}, kCased},
           {"CAFÉ İ", {"café", "i\u0307"}, kAccents},
           {"CAFÉ İ", {"CAFE", "I"}, kCasedPlain},
           // Without its accent a letter can be punctuation: = and U+0338, the Greek question mark.
           {"a≠b", {"a", "=", "b"}},
           {"a\u037eb", {"a", ";", "b"}},
           {"a≠b", {"a≠b"}, kCased},
           // Han ideographs stand alone, kana and hangul, which NFD takes apart, do not.
           {"日本語の文x", {"日", "本", "語", "の", "文", "x"}},
           {"かなカナ", {"かなカナ"}, kCased},
           {"한국", {"한국"}, kCased},
           {"한", {"\u1112\u1161\u11ab"}},
           {"\U00020000a", {"\U00020000", "a"}},
           {"日本", {"日本"}, kWholeHan}})
    EXPECT_EQ(words(text, options), expected) << text;
}

TEST(BertWordsTest, ANormalizedTextHasTheSameWords) {
  const std::string text = "CAFÉ\t\u0085İ a≠b\u00a0日x\u200bΣ \x07한\ufffd!";
  EXPECT_EQ(bert_normalized(" Dog\tİ\x07É", {}).text(), " dog ie");
  for (const bool lower_case : {true, false}) {
    for (const bool strip_accents : {true, false}) {
      const BertWordOptions options{.lower_case = lower_case, .strip_accents = strip_accents};
      EXPECT_EQ(words(bert_normalized(text, options), options), words(text, options));
    }
  }
}

TEST(UnicodeTest, HanEndsWhereItsBlocksEnd) {
  for (const char32_t c :
       {0x3400u, 0x4dbfu, 0x4e00u, 0x9fffu, 0xf900u, 0xfaffu, 0x20000u, 0x2ceafu, 0x2fa1fu})
    EXPECT_TRUE(is_han(c)) << static_cast<uint32_t>(c);
  for (const char32_t c :
       {0x33ffu, 0x4dc0u, 0xa000u, 0xf8ffu, 0xfb00u, 0x1ffffu, 0x2ceb0u, 0x2fa20u})
    EXPECT_FALSE(is_han(c)) << static_cast<uint32_t>(c);
}

std::string normal(const AlignedView& text, NormalForm form) {
  return to_normal_form(text, form).text();
}

TEST(NormalFormTest, MarksStandInCanonicalOrder) {
  const std::string text = "a\u0301\u0316";  // an acute, then a grave below
  EXPECT_EQ(normal(text, NormalForm::kNfd), "a\u0316\u0301");
  EXPECT_EQ(normal(text, NormalForm::kNfc), "\u00E1\u0316");
  EXPECT_EQ(normal("\u1E69", NormalForm::kNfd), "s\u0323\u0307");
  EXPECT_EQ(normal("s\u0307\u0323", NormalForm::kNfc), "\u1E69");
  EXPECT_EQ(normal("\u0301\u0316", NormalForm::kNfc), "\u0316\u0301");  // of nothing
  EXPECT_EQ(normal("e\u0301e\u0301", NormalForm::kNfc), "\u00E9\u00E9");
  EXPECT_EQ(normal("", NormalForm::kNfc), "");
}

TEST(NormalFormTest, HangulAndCompatibilityForms) {
  EXPECT_EQ(normal("\uD55C", NormalForm::kNfd), "\u1112\u1161\u11AB");
  EXPECT_EQ(normal("\u1112\u1161\u11AB", NormalForm::kNfc), "\uD55C");
  const std::string long_ones = repeat("\uFDFA", 1000);  // of 18 characters each
  for (const NormalForm form : {NormalForm::kNfkc, NormalForm::kNfkd}) {
    EXPECT_GT(to_normal_form(long_ones, form, 100).size(), 100u);
    EXPECT_LT(to_normal_form(long_ones, form, 100).size(), 300u);
    EXPECT_EQ(to_normal_form(long_ones, form).size(), 33'000u);
  }
  EXPECT_EQ(normal("\uFB01", NormalForm::kNfc), "\uFB01");
  EXPECT_EQ(normal("\uFB01", NormalForm::kNfkc), "fi");
  EXPECT_EQ(normal("\uFF76\uFF9E", NormalForm::kNfkd), "\u30AB\u3099");
  EXPECT_EQ(normal("\uFF76\uFF9E", NormalForm::kNfkc), "\u30AC");
}

TEST(NormalFormTest, ManyMarksTakeAShortTime) {
  for (const char* const pair : {"\u0301\u0316", "\u0F73\u0F74", "\u0301\uFF9E"}) {
    const std::string text = "a" + repeat(pair, 100000);
    SCOPED_TRACE(pair);
    std::string once;
    expect_cpu_seconds_below(2, [&] { once = normal(text, NormalForm::kNfkc); });
    EXPECT_EQ(normal(once, NormalForm::kNfkc), once);
  }
}

/// "[CLS]" 0, "[SEP]" 1, "[UNK]" 2, "[MASK]" 3, then `pieces` from 4 on.
json vocab_txt(const Pieces& pieces, const std::string& end_of_line = "\n") {
  std::string text;
  for (const char* const special : {"[CLS]", "[SEP]", "[UNK]", "[MASK]"})
    text += special + end_of_line;
  for (const std::string& piece : pieces) text += piece + end_of_line;
  return text;
}

const Pieces kPieces = {"un",  "##aff", "##able", "##a", "unaff", "a",
                        "dog", "é",     "##é",    ".",   "cd",    "Dog"};

TEST(WordPieceTest, TheLongestPieceFromTheFrontIsTaken) {
  const auto tokenizer = tokenizer_of({{"vocab.txt", vocab_txt(kPieces)}});
  for (const auto& [text, pieces] : std::vector<std::pair<std::string, Pieces>>{
           {"unaffable", {"unaff", "##able"}},
           {"unaaff", {"un", "##a", "##aff"}},
           {"unaffx dog", {"[UNK]", "dog"}},  // a word is unknown as a whole
           {"dogs", {"[UNK]"}},
           {"aff", {"[UNK]"}},  // only "##aff" is there
           {"a[MASK].", {"a", "[UNK]", "[UNK]", "[UNK]", "."}}})
    EXPECT_EQ(pieces_of(*tokenizer, text), pieces) << text;
  EXPECT_EQ(tokenizer->encode("a dog.").ids, (Ids{0, 9, 10, 13, 1}));
  EXPECT_EQ(tokenizer->mask_id(), 3);
  EXPECT_EQ(tokenizer->encode("a [MASK]. [SEP]", {.parse_special = true}).ids,
            (Ids{0, 9, 3, 13, 1, 1}));
  const Tokens invalid = tokenizer->encode("d\xffog \xc3 a\xe2\x82");  // left out and counted
  EXPECT_EQ(invalid.pieces, (Pieces{"[CLS]", "dog", "a", "[SEP]"}));
  EXPECT_EQ(invalid.invalid_bytes, 4);
  const Tokens pair = tokenizer->encode_pair("a dog.", "dog");
  EXPECT_EQ(pair.pieces, (Pieces{"[CLS]", "a", "dog", ".", "[SEP]", "dog", "[SEP]"}));
  EXPECT_EQ(pair.token_types, (Ids{0, 0, 0, 0, 0, 1, 1}));
  EXPECT_TRUE(tokenizer->encode("a dog").token_types.empty());
  // Transformers gives the first text alone where the second is empty.
  EXPECT_EQ(tokenizer->encode_pair("a dog.", "").ids, tokenizer->encode("a dog.").ids);
}

TEST(WordPieceTest, AWordPastAHundredCharactersIsUnknown) {
  const auto tokenizer = tokenizer_of(
      {{"vocab.txt", vocab_txt(kPieces)}, {"tokenizer_config.json", {{"strip_accents", false}}}});
  EXPECT_EQ(pieces_of(*tokenizer, repeat("a", 100)).size(), 100u);
  EXPECT_EQ(pieces_of(*tokenizer, repeat("a", 101)), (Pieces{"[UNK]"}));
  EXPECT_EQ(pieces_of(*tokenizer, repeat("é", 100)).size(), 100u);  // characters, not bytes
  EXPECT_EQ(pieces_of(*tokenizer, repeat("é", 101)), (Pieces{"[UNK]"}));
}

TEST(WordPieceTest, MPNetHasRobertasSpecialTokensAndTwoBetweenAPair) {
  const std::string vocab = "<s>\n<pad>\n</s>\n[UNK]\n<mask>\na\n##b\n";
  const json named = {{"tokenizer_class", "MPNetTokenizer"}, {"do_lower_case", true}};
  const auto tokenizer = tokenizer_of({{"vocab.txt", vocab}, {"tokenizer_config.json", named}});
  EXPECT_EQ(tokenizer->encode("AB x").ids, (Ids{0, 5, 6, 3, 2}));
  EXPECT_EQ(tokenizer->encode("a <mask>", {.parse_special = true}).ids, (Ids{0, 5, 4, 2}));
  EXPECT_EQ(tokenizer->encode_pair("a", "ab").ids, (Ids{0, 5, 2, 2, 5, 6, 2}));
  EXPECT_TRUE(tokenizer->encode_pair("a", "ab").token_types.empty());
  EXPECT_EQ(tokenizer->mask_id(), 4);
  EXPECT_EQ(tokenizer->description(), "MPNet (WordPiece, vocab.txt, lower case)");
  const auto by_type =
      tokenizer_of({{"vocab.txt", vocab}, {"config.json", {{"model_type", "mpnet"}}}});
  EXPECT_EQ(by_type->encode("a").ids, (Ids{0, 5, 2}));
}

std::string in_utf16(std::string_view ascii, bool big_endian) {
  std::string text;
  for (const char c : ascii) text += big_endian ? std::string{'\0', c} : std::string{c, '\0'};
  return text;
}

TEST(WordPieceTest, LinesOfVocabTxtAsOtherSystemsAndProgramsWriteThem) {
  const std::string plain = vocab_txt(kPieces);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = plain;
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& text :
       {plain, std::string(vocab_txt(kPieces, "\r\n")), std::string(vocab_txt(kPieces, "\r")),
        std::string(vocab_txt(kPieces, " \t\r\n")), "\ufeff" + plain,
        changed("dog\n", "dog \u00a0\u3000\n"), changed("Dog\n", "Dog"), plain + " \n"}) {
    const auto tokenizer = tokenizer_of({{"vocab.txt", text}});
    EXPECT_EQ(tokenizer->vocab_size(), 16 + (text == plain + " \n"));
    EXPECT_EQ(tokenizer->encode("unaffable dog.").ids, (Ids{0, 8, 6, 10, 13, 1}));
  }
  for (const auto& [text, words] : std::vector<std::pair<std::string, Pieces>>{
           {"\xff\xfe" + in_utf16(plain, false), {"UTF-16", "UTF-8"}},
           {"\xfe\xff" + in_utf16(plain, true), {"UTF-16", "UTF-8"}},
           {in_utf16(plain, false), {"UTF-16", "UTF-8"}},
           {in_utf16(plain, true), {"UTF-16", "UTF-8"}},
           {changed("dog", "d\xf6g"), {"line 11", "UTF-8"}}}) {
    const TempFolder folder;  // no JSON, which cannot hold these bytes
    folder.write("vocab.txt", text);
    EXPECT_REFUSED(Tokenizer::load(folder.path()), {"vocab.txt", words[0], words[1]});
  }
  const auto twice = tokenizer_of({{"vocab.txt", vocab_txt({"a", "", "dog", "a", "end"})}});
  EXPECT_EQ(twice->vocab_size(), 9);
  EXPECT_EQ(twice->encode("a dog").ids, (Ids{0, 7, 6, 1}));  // of equal lines the last counts
}

TEST(WordPieceTest, CaseComesFromTokenizerConfigAndAGuessIsSaidWhereTheVocabularySpeaksAgainstIt) {
  for (const bool lower : {false, true}) {
    const auto tokenizer = tokenizer_of(
        {{"vocab.txt", vocab_txt(kPieces)}, {"tokenizer_config.json", {{"do_lower_case", lower}}}});
    EXPECT_EQ(pieces_of(*tokenizer, "Dog dog"), (Pieces{lower ? "dog" : "Dog", "dog"}));
    EXPECT_EQ(tokenizer->description(),
              fmt::format("BERT (WordPiece, vocab.txt, {})", lower ? "lower case" : "cased"));
    EXPECT_EQ(tokenizer->notes(), Pieces{});
  }
  expect_one_note(tokenizer_of({{"vocab.txt", vocab_txt(kPieces)}})->notes(), {"do_lower_case"});
  EXPECT_EQ(tokenizer_of({{"vocab.txt", vocab_txt({"dog"})}})->notes(), Pieces{});
  const json named = {{"tokenizer_class", "RoFormerTokenizer"}, {"do_lower_case", true}};
  expect_one_note(
      tokenizer_of({{"vocab.txt", vocab_txt(kPieces)}, {"tokenizer_config.json", named}})->notes(),
      {"jieba"});
}

TEST(WordPieceTest, SpecialTokensMayHaveOtherNames) {
  const json config = {{"cls_token", "<s>"},
                       {"sep_token", {{"content", "</s>"}, {"lstrip", false}}},
                       {"unk_token", "<unk>"},
                       {"mask_token", "<mask>"}};
  const auto tokenizer = tokenizer_of(
      {{"vocab.txt", "<s>\n</s>\n<unk>\n<mask>\na\n"}, {"tokenizer_config.json", config}});
  EXPECT_EQ(tokenizer->encode("a b").pieces, (Pieces{"<s>", "a", "<unk>", "</s>"}));
  EXPECT_EQ(tokenizer->mask_id(), 3);
}

json tokenizer_json(const json& normalizer) {
  const json vocab = {{"[CLS]", 3}, {"[SEP]", 2}, {"[UNK]", 1}, {"[MASK]", 0},
                      {"Dog", 4},   {"dog", 5},   {"@@s", 6}};
  json root = bert_json(vocab);
  root["model"].update({{"continuing_subword_prefix", "@@"}, {"max_input_chars_per_word", 5}});
  root["normalizer"].update(normalizer);
  return root;
}

TEST(WordPieceTest, TokenizerJsonAloneIsEnough) {
  const auto cased = tokenizer_of({{"tokenizer.json", tokenizer_json({{"lowercase", false}})}});
  EXPECT_EQ(cased->encode("Dog dogs Dogsss").ids, (Ids{3, 4, 5, 6, 1, 2}));
  EXPECT_EQ(cased->description(), "BERT (WordPiece, tokenizer.json, cased)");
  EXPECT_EQ(cased->mask_id(), 0);
  const auto lower = tokenizer_of({{"tokenizer.json", tokenizer_json({{"lowercase", true}})}});
  EXPECT_EQ(lower->encode("Dog").ids, (Ids{3, 5, 2}));
  EXPECT_EQ(lower->notes(), Pieces{});
}

TEST(WordPieceTest, RulesThatAreNotBertsAreRefused) {
  const json split = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", kGpt2Pattern}}}, {"behavior", "Isolated"}},
        {{"type", "BertPreTokenizer"}}}}};
  for (const auto& [pointer, value, words] : std::vector<Refusal>{
           {"/normalizer", 5, {"normalizer", "5", "object"}},
           {"/normalizer/type", "Lowercase", {"normalizer", "BertNormalizer"}},
           {"/normalizer/clean_text", false, {"clean_text", "true"}},
           {"/pre_tokenizer", nullptr, {"pre_tokenizer", "missing"}},
           {"/pre_tokenizer/type", "Whitespace", {"\"Whitespace\"", "BertPreTokenizer"}},
           {"/pre_tokenizer", split, {"pre_tokenizer", "BertPreTokenizer", "--ids"}},
           {"/model/vocab/dog", -1, {"tokenizer.json", "dog", "-1"}},
           {"/model/vocab/dog", 4000000000, {"4000000000"}}}) {
    const json root = with(tokenizer_json(json::object()), pointer, value);
    expect_no_tokenizer({{"tokenizer.json", root}}, words);
  }
  const auto added = [](const char* id) { return json{{id, {{"content", "x"}}}}; };
  for (const auto& [pointer, value, words] : std::vector<Refusal>{
           {"/do_basic_tokenize", false, {"do_basic_tokenize"}},
           {"/never_split", {"a"}, {"never_split"}},
           {"/do_lower_case", "yes", {"do_lower_case", "\"yes\""}},
           {"/cls_token", "<cls>", {"vocab.txt", "<cls>"}},
           {"/cls_token", "", {"cls_token", "\"\""}},
           {"/sep_token", {{"content", ""}}, {"sep_token"}},
           {"/added_tokens_decoder", added(""), {"added_tokens_decoder", "\"\"", "no token id"}},
           {"/added_tokens_decoder", added("-1"), {"\"-1\"", "no token id"}},
           {"/added_tokens_decoder", added("1.5"), {"\"1.5\"", "no token id"}},
           {"/added_tokens_decoder", added("99999999999999999999"), {"no token id"}}}) {
    expect_no_tokenizer({{"vocab.txt", vocab_txt(kPieces)},
                         {"tokenizer_config.json", with(json::object(), pointer, value)}},
                        words);
  }
}

TEST(WordPieceTest, FilesThatAreNoVocabulary) {
  const json named = {{"tokenizer_class", "BertTokenizer"}}, bpe = {{"model", {{"type", "BPE"}}}};
  for (const auto& [files, words] : std::vector<std::pair<json, Pieces>>{
           {{{"vocab.txt", ""}}, {"vocab.txt", "[CLS]"}},
           {{{"vocab.txt", "version https://git-lfs.github.com/spec/v1\n"}},
            {"vocab.txt", "Git LFS"}},
           {{{"vocab.txt", "<!DOCTYPE html>"}}, {"vocab.txt", "HTML"}},
           {{{"vocab.txt", std::string((1 << 22) + 1, '\n')}},
            {"vocab.txt", "more than 4194304 lines"}},
           {{{"tokenizer_config.json", named}}, {"vocab.txt", "no such file"}},
           {{{"tokenizer.json", bpe}, {"tokenizer_config.json", named}},
            {"tokenizer.json", "\"BPE\"", "WordPiece"}}})
    expect_no_tokenizer(files, words);
}

TEST(WordPieceTest, PiecesThatShareAnIdTakeWhatTheyMatch) {
  json root = tokenizer_json({{"lowercase", true}});
  json& vocab = root["model"]["vocab"];
  const int64_t next = std::ssize(vocab);
  // In the order of their names, so that the id's first piece is the shorter one.
  vocab["qa"] = vocab["qabc"] = next;
  vocab["@@d"] = vocab["@@de"] = next + 1;
  const auto tokenizer = tokenizer_of({{"tokenizer.json", root}});
  const auto a = static_cast<int32_t>(next), d = static_cast<int32_t>(next + 1);
  EXPECT_EQ(tokenizer->encode("qabcd qade").ids, (Ids{3, a, d, a, d, 2}));
}

json without_normalizing(const json& vocab, int64_t max_characters) {
  json root = tokenizer_json({{"lowercase", false}, {"strip_accents", false}});
  root["model"]["vocab"].update(vocab);
  root["model"]["max_input_chars_per_word"] = max_characters;
  return {{"tokenizer.json", root}};
}

TEST(WordPieceTest, LongPiecesAreFoundAsShortOnesAre) {
  std::mt19937 random(4);
  const auto random_word = [&](size_t characters) {
    std::string word;
    for (size_t i = 0; i < characters; ++i) word += random() % 40 == 0 ? "é" : "a";
    return word;
  };
  json vocab;
  int32_t id = 7;
  for (const std::string piece : {"a", "é", "@@a", "@@é"}) vocab[piece] = id++;
  for (int i = 0; i < 200; ++i) {
    const std::string word = (i % 2 == 0 ? "" : "@@") + random_word(1 + random() % 150);
    if (!vocab.contains(word)) vocab[word] = id++;
  }
  const auto tokenizer = tokenizer_of(without_normalizing(vocab, 1000));
  for (int i = 0; i < 100; ++i) {
    const std::string word = random_word(1 + random() % 600);
    Pieces expected;
    for (size_t at = 0; at < word.size();) {
      size_t size = word.size() - at;
      const auto piece = [&] { return (at == 0 ? "" : "@@") + word.substr(at, size); };
      while (!vocab.contains(piece())) --size;
      expected.push_back(piece());
      at += size;
    }
    EXPECT_EQ(pieces_of(*tokenizer, word), expected);
  }
}

TEST(WordPieceTest, AWordOfAMillionCharactersTakesTheTimeOfAsManyWords) {
  const std::string word(1'000'000, 'a');
  const json vocab = {{"a", 7}, {"@@a", 8}};
  const auto tokenizer = tokenizer_of(without_normalizing(vocab, 1'000'000));
  std::vector<int32_t> ids;
  // Minutes where what is left of the word is moved for each piece.
  expect_cpu_seconds_below(10, [&] { ids = tokenizer->encode(word, {.ids_only = true}).ids; });
  std::vector<int32_t> expected(1'000'002, 8);
  expected[0] = 3, expected[1] = 7, expected.back() = 2;
  EXPECT_TRUE(ids == expected);
  EXPECT_EQ(tokenizer->encode(word + "a", {.ids_only = true}).ids, (Ids{3, 1, 2}));
}

TEST(WordPieceTest, AWordTakesNoMoreThanItsLengthTimesThatOfTheLongestPiece) {
  const std::string word = repeat("é", 10000);
  json vocab = {{"é", 7}, {"@@é", 8}, {"@@" + word.substr(0, 1000) + "x", 9}};
  for (int id = 10; id < 50; ++id) vocab[std::to_string(id)] = id;
  const auto tokenizer = tokenizer_of(without_normalizing(vocab, 10000));
  // Minutes where each length is tried.
  expect_cpu_seconds_below(10, [&] { EXPECT_EQ(pieces_of(*tokenizer, word).size(), 10000u); });
  expect_no_tokenizer(without_normalizing(json::object(), 1'000'001),
                      {"max_input_chars_per_word is 1000001", "1 to 1000000"});
  const json long_piece = {{std::string(1025, 'a'), 7}};  // each token would hold a copy
  expect_no_tokenizer(without_normalizing(long_piece, 100), {"1025 bytes", "1024"});
}

}  // namespace
}  // namespace phasor
