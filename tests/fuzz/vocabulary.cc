// Vocabularies that are no JSON of tokenizers': WordPiece's vocab.txt, byte-level BPE's vocab.json
// and merges.txt.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenize.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kVocabularyFiles[] = {"vocab.txt", "vocab.json", "merges.txt",
                                                 "tokenizer_config.json", "config.json"};

bool run_vocabulary(std::string_view bytes) {
  static const Folder folder;
  return encode_in(folder, bytes, kVocabularyFiles);
}

std::vector<std::string> vocabulary_seeds() {
  const std::string merges = "#version: 0.2\na b\n\xc4\xa0 ab\n";
  const std::string bpe =
      R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "\u0120": 6,
"ab": 7, "\u0120ab": 8, "<mask>": 9})";
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n\xe4\xb8\xad\n";
  return {
      input_of({{"vocab.txt", words}, {"text", "ab [MASK]\xe4\xb8\xad"}}),
      input_of(
          {{"vocab.txt", words},
           {"tokenizer_config.json",
            R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "strip_accents": true,
"tokenize_chinese_chars": true, "model_max_length": 8})"},
           {"text", "AB \xc3\x84"}}),
      input_of({{"vocab.json", bpe},
                {"merges.txt", merges},
                {"text", "ab abb<mask>"},
                {"config.json", R"({"model_type": "roberta"})"}}),
      input_of({{"vocab.json", bpe},
                {"merges.txt", merges},
                {"text", "ab's 12"},
                {"tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer",
"add_prefix_space": true})"}})};
}

}  // namespace

Fuzzer vocabulary_fuzzer() {
  return {.name = "vocabulary", .run = run_vocabulary, .seeds = vocabulary_seeds, .words = words(R"(
===\svocab.txt\n ===\svocab.json\n ===\smerges.txt\n ===\stext\n ===\stokenizer_config.json\n
===\sconfig.json\n "tokenizer_class" "BertTokenizer" "RobertaTokenizer" "do_lower_case"
"model_type" "mpnet" "distilbert" [UNK]\n ## \xc4\xa0 #version:\s0.2\n)")};
}

}  // namespace phasor::fuzz
