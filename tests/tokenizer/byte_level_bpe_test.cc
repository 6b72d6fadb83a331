// Byte-level BPE: against a second implementation, on crafted vocabularies, and its refusals.
#include "tokenizer/byte_level_bpe.h"

#include "files/utf8.h"
#include "tests/support/run_program.h"
#include "tests/support/tokenizer_folder.h"

namespace phasor {
using namespace internal;

namespace {

TEST(ByteLevelBpeTest, IdsAreThoseOfASecondImplementation) {
  const TempFolder folder;
  const ProgramResult made =
      run_program({"/usr/bin/env", "python3", fixture("byte_level_bpe.py"), folder.path()});
  if (made.exit_code == 127) GTEST_SKIP() << "There is no python3.";
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer->notes(), Pieces{});
  std::ifstream file(folder / "texts.json");
  const json items = json::parse(file);
  ASSERT_EQ(items.size(), 10000u);
  int wrong = 0;
  for (const json& item : items) {
    const auto text = item["text"].get<std::string>();
    if (tokenizer->encode(text).ids == item["ids"].get<Ids>()) continue;
    if (++wrong <= 3) ADD_FAILURE() << json(text).dump(-1, ' ', true);
  }
  EXPECT_EQ(wrong, 0);
}

/// RoBERTa's special tokens, a piece for each byte, and `merges` and their results.
json bpe_files(const Pieces& merges,
               const json& config = {{"tokenizer_class", "RobertaTokenizer"}}) {
  json vocab = json::object();
  int32_t id = 0;
  for (const char* const special : {"<s>", "<pad>", "</s>", "<unk>", "<mask>"})
    vocab[special] = id++;
  for (int byte = 0; byte < 256; ++byte) {
    std::string piece;
    append_character(byte_character(static_cast<unsigned char>(byte)), piece);
    vocab[piece] = id++;
  }
  std::string lines = "#version: 0.2\n";
  for (const std::string& merge : merges) {
    lines += merge + "\n";
    std::string piece = merge;
    piece.erase(piece.find(' '), 1);
    if (!vocab.contains(piece)) vocab[piece] = id++;
  }
  return {{"vocab.json", vocab}, {"merges.txt", lines}, {"tokenizer_config.json", config}};
}

TEST(ByteLevelBpeTest, TheLowestRankGoesFirstAndThenTheLeftmost) {
  const auto tokenizer = tokenizer_of(bpe_files({"b c", "a b", "a a", "aa a"}));
  EXPECT_EQ(pieces_of(*tokenizer, "abc"), (Pieces{"a", "bc"}));
  EXPECT_EQ(pieces_of(*tokenizer, "aab"), (Pieces{"a", "ab"}));
  EXPECT_EQ(pieces_of(*tokenizer, "aaaaa"), (Pieces{"aa", "aaa"}));
  EXPECT_EQ(pieces_of(*tokenizer, "a é"), (Pieces{"a", "Ġ", "Ã", "©"}));
  EXPECT_EQ(tokenizer->description(), "Byte-level BPE (vocab.json)");
  // Of equal merges the last counts.
  EXPECT_EQ(pieces_of(*tokenizer_of(bpe_files({"a b", "b c", "a b"})), "abc"), (Pieces{"a", "bc"}));
  const Tokens invalid = tokenizer->encode(
      "a\xff"
      "b\xc3");  // replaced and counted
  EXPECT_EQ(invalid.invalid_bytes, 2);
  EXPECT_EQ(invalid.pieces, (Pieces{"<s>", "a", "ï", "¿", "½", "b", "ï", "¿", "½", "</s>"}));
  json files = bpe_files({"a b"});
  files["vocab.json"].erase("c");  // a byte without a piece is left out and noted
  const auto without = tokenizer_of(files);
  EXPECT_EQ(pieces_of(*without, "acb"), (Pieces{"ab"}));
  expect_one_note(without->notes(), {"vocabulary: 1; texts lose them"});
}

TEST(ByteLevelBpeTest, AWordOfAMegabyteTakesLinearTime) {
  Pieces merges = {"a b", "b a"};
  for (std::string piece = "ab"; piece.size() < 600; piece += piece)
    merges.push_back(piece + " " + piece);
  const auto tokenizer = tokenizer_of(bpe_files(merges));
  const std::string word = repeat("ab", 500'000);
  std::string letters;
  for (int i = 0; i < 1'000'000; ++i) letters += static_cast<char>('a' + i * 7919LL % 1000 % 3);
  expect_cpu_seconds_below(5, [&] { EXPECT_EQ(tokenizer->encode(word).ids.size(), 980u); });
  expect_cpu_seconds_below(5, [&] { tokenizer->encode(letters); });
}

TEST(ByteLevelBpeTest, SpecialTokensHaveTheSpacesBeforeThemAndAddPrefixSpacePutsOneBeforeAllParts) {
  const auto tokenizer = tokenizer_of(bpe_files({"Ġ a"}));
  EXPECT_EQ(tokenizer->mask_id(), 4);
  EXPECT_EQ(pieces_of(*tokenizer, "a <mask> a </s>", true),
            (Pieces{"a", "<mask>", "Ġa", "Ġ", "</s>"}));
  EXPECT_EQ(pieces_of(*tokenizer, "<s>"), (Pieces{"<", "s", ">"}));
  const json decoder = {{"4", {{"content", "<mask>"}, {"lstrip", false}, {"special", true}}}};
  const auto plain = tokenizer_of(bpe_files({"Ġ a"}, {{"added_tokens_decoder", decoder}}));
  EXPECT_EQ(pieces_of(*plain, "a <mask>", true), (Pieces{"a", "Ġ", "<mask>"}));
  json files = bpe_files({"a b"});
  // Of a special token twice the last counts; one at the end is not of the text.
  const std::string vocab = files["vocab.json"].dump();
  files["vocab.json"] = "{\"<mask>\": 262, " + vocab.substr(1);
  EXPECT_EQ(tokenizer_of(files)->mask_id(), 4);
  files["vocab.json"] = json::parse(vocab);
  files["vocab.json"]["<mask>"] = 262;
  EXPECT_EQ(tokenizer_of(files)->vocab_size(), 263);
  EXPECT_EQ(tokenizer_of(files)->text_vocab_size(), 262);
  const auto spaced = tokenizer_of(bpe_files({"Ġ a"}, {{"add_prefix_space", true}}));
  EXPECT_EQ(pieces_of(*spaced, "a"), (Pieces{"Ġa"}));
  EXPECT_EQ(pieces_of(*spaced, " a"), (Pieces{"Ġa"}));
  EXPECT_EQ(pieces_of(*spaced, "a<mask>a", true), (Pieces{"Ġa", "<mask>", "Ġa"}));
  EXPECT_EQ(pieces_of(*spaced, ""), Pieces{});
}

TEST(ByteLevelBpeTest, OfAPairTheLongerTextIsCutAndSpecialTokensAreFoundInBoth) {
  const auto tokenizer = tokenizer_of(bpe_files({"a b"}));
  const auto cut = [&](std::string_view a, std::string_view b, int64_t room) {
    const Tokens tokens = tokenizer->encode_pair(a, b, {.max_tokens = room + 4});
    EXPECT_EQ(tokens.dropped, std::ssize(a) + std::ssize(b) + 4 - std::ssize(tokens.ids));
    std::string joined;
    for (const std::string& piece : tokens.pieces) joined += piece;
    return joined;
  };
  EXPECT_EQ(cut("ccccc", "dd", 5), "<s>ccc</s></s>dd</s>");
  EXPECT_EQ(cut("cc", "ddddd", 5), "<s>cc</s></s>ddd</s>");
  EXPECT_EQ(cut("cccc", "dddd", 5), "<s>cc</s></s>ddd</s>");
  EXPECT_EQ(cut("ccccc", "dddd", 5), "<s>ccc</s></s>dd</s>");
  EXPECT_EQ(cut("cccc", "dddd", 0), "<s></s></s></s>");
  EXPECT_EQ(cut("cc", "dd", 9), "<s>cc</s></s>dd</s>");
  EXPECT_TRUE(tokenizer->encode_pair("a", "b").token_types.empty());
  EXPECT_INVALID(tokenizer->encode_pair("a", "b", {.max_tokens = 3}),
                 {"max_tokens is 3", "at least 4"});
  const Tokens tokens =
      tokenizer_of(bpe_files({"a b"}))
          ->encode_pair("a\xff<mask>", "<mask>b\xff", {.parse_special = true, .max_tokens = 8});
  EXPECT_EQ(tokens.pieces, (Pieces{"<s>", "a", "ï", "</s>", "</s>", "<mask>", "b", "</s>"}));
  EXPECT_EQ(tokens.invalid_bytes, 2);
  EXPECT_EQ(tokens.dropped, 6);
}

TEST(ByteLevelBpeTest, FilesThatContradictEachOtherAreRefused) {
  json files = bpe_files({"a b"});
  for (const auto& [pointer, value, words] : std::vector<Refusal>{
           {"/merges.txt", "#version: 0.2\n", {"merges.txt", "no merge", "--ids"}},
           {"/merges.txt", "a b c\n", {"merges.txt", "line 1", "\"a b c\""}},
           {"/merges.txt", "a b\nab\n", {"merges.txt", "line 2", "\"ab\""}},
           {"/merges.txt", "a b\nab c\n", {"merges.txt", "merge 2", "not in the vocabulary"}},
           {"/merges.txt", "a zz\n", {"merges.txt", "merge 1:"}},
           {"/merges.txt", "version https://git-lfs.github.com/spec/v1\n", {"Git LFS"}},
           {"/vocab.json/far", 1 << 21, {"far", "2097152"}},
           {"/tokenizer_config.json/cls_token", "", {"cls_token", "\"\""}},
           {"/tokenizer_config.json/sep_token", "", {"sep_token", "\"\""}}})
    expect_no_tokenizer(with(files, pointer, value), words);
  const std::string long_piece(1025, 'a');
  expect_no_tokenizer(with(files, "/vocab.json/" + long_piece, 400), {"1025 bytes", "1024"});
  json without = files;
  without["vocab.json"].erase("</s>");
  expect_no_tokenizer(without, {"vocab.json", "</s>"});
  files.erase("merges.txt");
  expect_no_tokenizer(files, {"merges.txt", "no such file"});
}

}  // namespace
}  // namespace phasor
