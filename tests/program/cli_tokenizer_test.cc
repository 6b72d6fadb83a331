// infer with tokenizers of other models: languages, prefixes, notes, and folders without one.
#include "tests/program/program.h"

namespace phasor {
namespace {

/// A folder with the small fairseq model as a tokenizer of this class.
void make_tokenizer(const TempFolder& folder, const std::string& tokenizer_class) {
  fs::copy_file(fixture("fairseq.model"), folder.path() / "sentencepiece.bpe.model");
  folder.write("tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
}

TEST(CliTokenizerTest, NeedsNoWeights) {
  const BundledFolder copy;
  fs::remove(copy.folder().path() / "model.safetensors");
  EXPECT_EQ(json_of("tokenize Tom -m " + copy.path()), json_of("tokenize Tom"));
  fs::remove(copy.folder().path() / "tokenizer.model");
  expect_infer_fails({"tokenize", "-m", copy.path(), "Tom"}, 4, {"tokenizer"});
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

}  // namespace
}  // namespace phasor
