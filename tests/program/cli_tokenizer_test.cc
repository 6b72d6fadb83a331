// infer with tokenizers of other models: languages, prefixes, notes, and folders without one.
#include "tests/program/program.h"
#include "tests/support/sanitizer.h"

namespace phasor {
namespace {

/// A folder with the small fairseq model as a tokenizer of this class.
void make_tokenizer(const TempFolder& folder, const std::string& tokenizer_class) {
  fs::copy_file(fixture("fairseq.model"), folder.path() / "sentencepiece.bpe.model");
  folder.write("tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
}

/// A tokenizer.json of byte-level BPE, with these steps before it.
std::string growing_bpe(const json& steps) {
  json vocab;
  for (int i = 0; i < 94; ++i) vocab[std::string(1, static_cast<char>('!' + i))] = i;
  vocab["ab"] = 94;
  return json{{"normalizer", {{"type", "Sequence"}, {"normalizers", steps}}},
              {"pre_tokenizer", {{"type", "ByteLevel"}, {"use_regex", false}}},
              {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a b"}}}}}
      .dump();
}

json replace(const std::string& from, const std::string& to) {
  return {{"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
}

TEST(CliTokenizerTest, NoTokenizerMakesAMegabyteOfTextHundredsOfThem) {
#if HAS_ADDRESS_SANITIZER
  GTEST_SKIP() << "the sanitizer has memory of its own";
#endif
  const std::string unknown = "[" + std::string(998, 'U') + "]";
  const TempFolder wordpiece, twice, compatible, in_words;
  wordpiece.write("vocab.txt", "[PAD]\n" + unknown + "\n[CLS]\n[SEP]\n[MASK]\na\n");
  wordpiece.write("tokenizer_config.json", json{{"unk_token", unknown}}.dump());
  const std::string sixteen(16, 'a');
  twice.write("tokenizer.json", growing_bpe({replace("!", sixteen), replace("a", sixteen)}));
  compatible.write("tokenizer.json", growing_bpe({replace("!", "\uFDFA\uFDFA\uFDFA\uFDFA\uFDFA"),
                                                  {{"type", "NFKD"}}}));
  in_words.write("tokenizer.json", growing_bpe(json::array({replace("!", "ab")})));
  const std::string text(1 << 20, '!');
  for (const TempFolder* const folder : {&wordpiece, &twice, &compatible, &in_words}) {
    for (const bool as_json : {false, true}) {
      Words words = {"tokenize", "-q", "-m", folder->path(), "-"};
      if (as_json) words.insert(words.begin() + 1, "--json");
      const ProgramResult result = run_infer(words, {.input = text});
      EXPECT_EQ(result.exit_code, folder == &in_words ? 0 : 4) << result.err;
      EXPECT_LT(result.peak_bytes, int64_t{400} << 20) << result.err;
    }
  }
}

TEST(CliTokenizerTest, ALanguageIsATokenOfTheText) {
  const TempFolder folder;
  make_tokenizer(folder, "NllbTokenizer");
  const auto first_piece = [&](const Words& options) {
    return infer_json(Words{"tokenize", "-m", folder.path(), "Tom"} + options).at(0)["pieces"][0];
  };
  EXPECT_EQ(first_piece({}), "eng_Latn");
  EXPECT_EQ(first_piece({"--lang", "fra_Latn"}), "fra_Latn");
  expect_infer_fails({"tokenize", "-m", folder.path(), "--lang", "fr", "Tom"}, 3,
                     {"'fr'", "fra_Latn", "202"});
}

TEST(CliTokenizerTest, InfoShowsWhatIsPutRoundATextAndInWhichLanguage) {
  const TempFolder folder;
  fs::copy(bundled_model("none"), folder.path());
  json config = json::parse(read_text_file(folder.path() / "config.json"));
  config.erase("tokenizer");
  folder.write("config.json", config.dump());
  make_tokenizer(folder, "NllbTokenizer");
  const auto frame = [&](const Words& options) {
    return infer_json(Words{"info"} + options).at(0)["tokenizer"]["frame"];
  };
  EXPECT_EQ(frame({}), "[CLS] … [SEP]");
  EXPECT_EQ(frame({folder.path()}), "eng_Latn … </s>");
  EXPECT_EQ(frame({folder.path(), "--lang", "fra_Latn"}), "fra_Latn … </s>");
}

TEST(CliTokenizerTest, APrefixIsPutBeforeEveryText) {
  const std::vector<json> with =
      infer_json({"tokenize", "--prefix", "query: ", "Tom", "-"}, {.input = "a dog\n"});
  const std::vector<json> without = infer_json({"tokenize", "query: Tom", "query: a dog"});
  EXPECT_EQ(with, without);
  EXPECT_EQ(with.at(0)["text"], "query: Tom");
  EXPECT_EQ(infer_json({"--prefix", "[x] ", "Tom"}), infer_json({"[x] Tom"}));
}

TEST(CliTokenizerTest, WhatWasAssumedIsSaidUnlessQuiet) {
  const TempFolder folder;
  make_tokenizer(folder, "");
  const ProgramResult result = succeed({"tokenize", "-m", folder.path(), "Tom"});
  EXPECT_TRUE(contains(result.err, "XLM-R's is assumed")) << result.err;
  EXPECT_EQ(run_infer({"tokenize", "-q", "-m", folder.path(), "Tom"}).err, "");
}

TEST(CliTokenizerTest, AByteLevelTokenizerWithoutMergesIsRefusedWithAWayOn) {
  const TempFolder folder;
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  folder.write("vocab.json", "{}");
  folder.write("merges.txt", "");
  expect_infer_fails({"tokenize", "-m", folder.path(), "Tom"}, 4, {"byte-level BPE", "--ids"});
}

}  // namespace
}  // namespace phasor
