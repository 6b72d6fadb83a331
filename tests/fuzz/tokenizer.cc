// The files of tokenizers but for SentencePiece's models: tokenizer.json and the JSON beside it,
// WordPiece's vocab.txt, byte-level BPE's vocab.json and merges.txt.
#include "phasor/tokenizer.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenize.h"
#include "tests/support/run_program.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kTokenizerFiles[] = {"tokenizer.json",
                                                "tokenizer_config.json",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "vocab.json",
                                                "merges.txt",
                                                "dict.txt",
                                                "config.json",
                                                "vocab.txt",
                                                "sentencepiece.bpe.model",
                                                "spiece.model",
                                                "source.spm"};

bool run_tokenizer(std::string_view bytes) {
  static const Folder folder;
  return encode_in(folder, bytes, kTokenizerFiles);
}

/// Each row of the tests' tokenizers, and tokenizer.json in the form of each model that it may
/// hold.
std::vector<std::string> tokenizer_seeds() {
  std::vector<std::string> inputs;
  const auto rows = nlohmann::json::parse(read_text_file(fixture("tokenizers.json")));
  for (const auto& row : rows) {
    Parts parts = {{"text", "<s>Tom\n[MASK] caf\xc3\xa9 9,"}};
    for (const auto& [name, content] : row["files"].items())
      parts[name] = content.is_string() ? content.get<std::string>() : content.dump();
    for (const auto& [name, file] : row["models"].items())
      parts[name] = read_text_file(fixture(file.get<std::string>()));
    inputs.push_back(input_of(parts));
  }
  const char* const models[] = {
      R"({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
"max_input_chars_per_word": 100, "vocab": {"<s>": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4,
"a": 5, "##b": 6}})",
      R"({"type": "BPE", "unk_token": "<unk>", "vocab": {"<s>": 0, "</s>": 1, "<unk>": 2, "a": 3, "b": 4,
"ab": 5, "\u0120": 6, "\u0120a": 7}, "merges": ["a b", "\u0120 a"]})",
      R"({"type": "BPE", "ignore_merges": true, "vocab": {"<s>": 0, "</s>": 1, "a": 3, "b": 4,
"ab": 5, "\u0120": 6, "\u0120a": 7}, "merges": ["a b", "\u0120 a"]})",
      R"({"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "fuse_unk": true, "vocab": {"<s>": 0,
"<unk>": 2, "a": 3, "b": 4, "ab": 5, "\u2581": 6, "<0xC3>": 7, "<0xA9>": 1}, "merges": ["a b"]})",
      R"({"type": "Unigram", "unk_id": 1, "vocab": [["<s>", 0], ["<unk>", 0], ["</s>", 0],
["\u2581", -1.5], ["\u2581a", -2], ["b", -3.25]]})"};
  const char* const around[] = {
      R"("normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
"strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]})",
      R"("normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
"trim_offsets": true, "use_regex": true}, "post_processor": {"type": "RobertaProcessing",
"sep": ["</s>", 1], "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": false})",
      R"("normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
{"type": "Split", "pattern": {"Regex": "(?i:'s|[dt])|[^\\r\\n\\p{L}]?+\\p{Lu}*[a-z\\p{M}]+|\\p{N}{1,3}| ?[^\\s\\p{L}]++|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"},
"behavior": "Isolated", "invert": false}, {"type": "Digits", "individual_digits": true},
{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]}, "post_processor": null)",
      R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
{"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}, "pre_tokenizer": {"type": "Split",
"pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": false}, "post_processor": null)",
      R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Replace",
"pattern": {"Regex": " {2,}"}, "content": " "}]}, "pre_tokenizer": {"type": "Metaspace",
"replacement": "\u2581", "prepend_scheme": "always"}, "post_processor": {"type": "TemplateProcessing",
"single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
"pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
"special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}}})"};
  for (size_t i = 0; i < std::size(models); ++i) {
    inputs.push_back(input_of(
        {{"tokenizer.json",
          std::string(
              R"({"version": "1.0", "note": [-0, Infinity], "truncation": null, "padding": null, "added_tokens": [)") +
              R"({"id": 0, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false, )" +
              R"("normalized": false, "special": true}], )" + around[i] + R"(, "model": )" +
              models[i] + "}"},
         {"text", "a b ab<s>"}}));
  }
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n\xe4\xb8\xad\n";
  const Parts bpe = {{"vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5,
"\u0120": 6, "ab": 7, "\u0120ab": 8, "<mask>": 9})"},
                     {"merges.txt", "#version: 0.2\na b\n\xc4\xa0 ab\n"}};
  Parts roberta = bpe, spaced = bpe;
  roberta.insert({{"text", "ab abb<mask>"}, {"config.json", R"({"model_type": "roberta"})"}});
  spaced.insert({{"text", "ab's 12"},
                 {"tokenizer_config.json",
                  R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})"}});
  for (const Parts& parts :
       {Parts{{"vocab.txt", words}, {"text", "ab [MASK]\xe4\xb8\xad"}},
        Parts{
            {"vocab.txt", words},
            {"tokenizer_config.json",
             R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false, "strip_accents": true,
"tokenize_chinese_chars": true, "model_max_length": 8})"},
            {"text", "AB \xc3\x84"}},
        roberta, spaced})
    inputs.push_back(input_of(parts));
  return inputs;
}

}  // namespace

Fuzzer tokenizer_fuzzer() {
  return {.name = "tokenizer", .run = run_tokenizer, .seeds = tokenizer_seeds, .words = words(R"(
===\stokenizer.json\n ===\stokenizer_config.json\n ===\stext\n ===\sspecial_tokens_map.json\n
===\sadded_tokens.json\n ===\svocab.txt\n ===\svocab.json\n ===\smerges.txt\n ===\sconfig.json\n
"BertTokenizer" "RobertaTokenizer" "do_lower_case" "model_type" [UNK]\n ## #version:\s0.2\n "type" "BPE" "Unigram" "WordPiece" "vocab" "merges" "added_tokens"
"content" "lstrip" "rstrip" "single_word" "normalized" "Sequence" "normalizers" "pretokenizers"
"Replace" "pattern" "Regex" "Prepend" "NFKC" "StripAccents" "Lowercase" "Precompiled"
"precompiled_charsmap" "Split" "behavior" "Digits" "byte_fallback" "unk_id" "tokenizer_class"
"model_max_length" "added_tokens_decoder" "ByteLevel" "single" "pair" "ignore_merges" "dropout"
2147483647 -1 16777215 NaN Infinity -Infinity -0)")};
}

}  // namespace phasor::fuzz
