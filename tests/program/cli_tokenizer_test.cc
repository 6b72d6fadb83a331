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
  if (HAS_ADDRESS_SANITIZER) GTEST_SKIP() << "the sanitizer has memory of its own";
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

TEST(CliTokenizerTest, NeedsNoWeights) {
  const TempFolder folder;
  const fs::path copy = copy_of_bundled(folder, "sinusoidal");
  fs::remove(copy / "model.safetensors");
  EXPECT_EQ(json_of("tokenize Tom -m " + copy.string()), json_of("tokenize Tom"));
  fs::remove(copy / "tokenizer.model");
  expect_infer_fails({"tokenize", "-m", copy.string(), "Tom"}, 4, {"tokenizer"});
}

TEST(CliTokenizerTest, ALanguageIsATokenOfTheTextAndInfoShowsIt) {
  const TempFolder folder;
  fs::copy(bundled_model("none"), folder.path());
  json config = json::parse(read_text_file(folder.path() / "config.json"));
  config.erase("tokenizer");
  folder.write("config.json", config.dump());
  make_tokenizer(folder, "NllbTokenizer");
  const std::string at = " -m " + folder.path().string();
  expect_json({
      {"tokenize Tom" + at, R"({"pieces": ["eng_Latn", "▁Tom", "</s>"]})"},
      {"tokenize Tom --lang fra_Latn" + at, R"({"pieces": ["fra_Latn", "▁Tom", "</s>"]})"},
      {"info", R"({"tokenizer": {"frame": "[CLS] … [SEP]"}})"},
      {"info" + at, R"({"tokenizer": {"frame": "eng_Latn … </s>"}})"},
      {"info --lang fra_Latn" + at, R"({"tokenizer": {"frame": "fra_Latn … </s>"}})"},
  });
  expect_refused({{3, "tokenize --lang fr Tom" + at, {"'fr'", "fra_Latn", "202"}}});
}

TEST(CliTokenizerTest, WhatWasAssumedIsSaidUnlessQuiet) {
  const TempFolder folder;
  make_tokenizer(folder, "");
  expect_noted({{"tokenize Tom -m " + folder.path().string(), {"XLM-R's is assumed"}}});
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
