// Texts for one tokenizer of each kind.

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenize.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

std::vector<std::shared_ptr<const Tokenizer>> tokenizers() {
  const TempFolder bytes;
  std::string vocabulary = R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4)";
  int id = 5;
  for (const char* const piece : {"a", "b", "ab", "\\u0120", "\\u0120a", "1", "'", "s"})
    vocabulary += std::string(", \"") + piece + "\": " + std::to_string(id++);
  bytes.write("vocab.json", vocabulary + "}");
  bytes.write("merges.txt", "#version: 0.2\na b\n\xc4\xa0 a\n");
  bytes.write("config.json", R"({"model_type": "roberta"})");
  // Where there are no sources, as under OSS-Fuzz, the bundled models lie beside the program.
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "models/sinusoidal";
  return {Tokenizer::load(exists(beside) ? beside : bundled_model("sinusoidal")),
          Tokenizer::load(BertFolder({}).path()), Tokenizer::load(bytes.path())};
}

/// The tokens of a text do not depend on an earlier one.
bool run_text(std::string_view text) {
  static const auto all = tokenizers();
  for (const auto& tokenizer : all) {
    encode_all_ways(*tokenizer, text);
    const Tokens whole = tokenizer->encode(text), again = tokenizer->encode(text);
    require(whole.ids == again.ids && whole.pieces == again.pieces,
            "the same text has the same tokens");
  }
  return true;
}

}  // namespace

Fuzzer text_fuzzer() {
  return {.name = "text",
          .run = run_text,
          .seeds = []() -> std::vector<std::string> {
            return {"Tom bit a dog.",
                    "ab's 11 <mask> [MASK]",
                    "caf\xc3\xa9 \xe4\xb8\xad\xe2\x80\x8d",
                    "\xff\xc0\x80\xed\xa0\x80",
                    "\xe2\x96\x81 a\n\tb\r\n",
                    std::string("a\0b", 3)};
          },
          .words = words(R"(
<s> </s> <mask> [MASK] [SEP] \xe2\x96\x81 \xe2\x80\x8b \xef\xbb\xbf \xcc\x81 \xf0\x9f\x98\x80
\xed\xa0\x80 \xef\xbf\xbd \xea\xb0\x80 's \xc2\xa0)")};
}

}  // namespace phasor::fuzz
