// The sources are Transformers' tokenization_*.py.
#include "tokenizer/files/tokenizer_families.h"

#include <fmt/format.h>

#include <utility>

#include "tokenizer/files/tokenizer_languages.h"

namespace phasor::internal {
namespace {

using Pieces = std::vector<std::string>;

constexpr int64_t kMaxExtraIds = 10000;
constexpr int32_t kPegasusOffset = 103;

/// fairseq's special tokens come first, then SentencePiece's pieces.
std::vector<std::pair<std::string, int32_t>> fairseq_tokens() {
  return {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}};
}

Pieces with_mask(Pieces pieces) {
  pieces.push_back("<mask>");
  return pieces;
}

/// T5's "<extra_id_0>" has the highest id.
Pieces extra_ids(int64_t count) {
  Pieces pieces;
  for (int64_t n = count - 1; n >= 0; --n) pieces.push_back(fmt::format("<extra_id_{}>", n));
  return pieces;
}

/// Pegasus has 105 special tokens: 0 to 104.
std::vector<std::pair<std::string, int32_t>> pegasus_tokens() {
  std::vector<std::pair<std::string, int32_t>> tokens = {
      {"<pad>", 0}, {"</s>", 1}, {"<mask_1>", 2}, {"<mask_2>", 3}};
  for (int32_t id = 4; id < kPegasusOffset + 2; ++id) {
    tokens.emplace_back(fmt::format("<unk_{}>", id - 2), id);
  }
  return tokens;
}

void read_albert_options(const ConfigReader& reader, SentencePieceSpec& spec) {
  spec.albert = {.collapse_spaces = reader.boolean({"remove_space"}, true),
                 .strip_accents = !reader.boolean({"keep_accents"}, false),
                 .lower_case = reader.boolean({"do_lower_case"}, true)};
}

void read_deberta_options(const ConfigReader& reader, SentencePieceSpec&) {
  for (const char* const key : {"do_lower_case", "split_by_punct"}) {
    if (reader.boolean({key}, false)) reader.refuse(key, "false");
  }
}

void read_t5_options(const ConfigReader& reader, SentencePieceSpec& spec) {
  spec.appended = extra_ids(reader.integer({"extra_ids"}, 0, kMaxExtraIds, 100));
  spec.new_word_after_special = reader.boolean({"legacy"}, true);
}

void read_pegasus_options(const ConfigReader& reader, SentencePieceSpec&) {
  const int64_t offset = reader.integer({"offset"}, 0, kMaxExtraIds, kPegasusOffset);
  if (offset != kPegasusOffset) reader.refuse("offset", "{}", kPegasusOffset);
}

void read_m2m100_options(const ConfigReader& reader, SentencePieceSpec&) {
  const bool known = reader.text({"language_codes"}, "m2m100") == "m2m100";
  if (!known) reader.refuse("language_codes", "\"m2m100\"");
}

void read_nllb_options(const ConfigReader& reader, SentencePieceSpec& spec) {
  if (!reader.boolean({"legacy_behaviour"}, false)) return;
  spec.prefix = {};
  spec.suffix = {"</s>", "{lang}"};
}

TokenizerFamily marian() {
  return {.tokenizer_class = "MarianTokenizer",
          .model_types = {"marian"},
          .model_file = "source.spm",
          .has_vocab_json = true,
          .spec = {.kind = "Marian",
                   .prefix = {"{lang}"},
                   .suffix = {"</s>"},
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .leading_language_code = true,
                   .new_word_after_special = true},
          .languages = {.before = ">>", .after = "<<"}};  // the codes are in vocab.json
}

TokenizerFamily m2m100() {
  TokenizerLanguages languages{
      .codes = m2m100_languages(), .fallback = "en", .before = "__", .after = "__"};
  return {.tokenizer_class = "M2M100Tokenizer",
          .model_types = {"m2m_100"},
          .model_file = "sentencepiece.bpe.model",
          .has_vocab_json = true,
          .spec = {.kind = "M2M100",
                   .appended = languages.pieces(),
                   .prefix = {"{lang}"},
                   .suffix = {"</s>"},
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .new_word_after_special = true},
          .languages = languages,
          .read_options = read_m2m100_options};
}

TokenizerFamily nllb() {
  TokenizerLanguages languages{.codes = nllb_languages(), .fallback = "eng_Latn"};
  return {.tokenizer_class = "NllbTokenizer",
          .model_types = {"m2m_100", "nllb-moe"},
          .model_file = "sentencepiece.bpe.model",
          .spec = {.kind = "NLLB",
                   .offset = 1,
                   .fixed = fairseq_tokens(),
                   .appended = with_mask(languages.pieces()),
                   .prefix = {"{lang}"},
                   .suffix = {"</s>"},
                   .unk = "<unk>",
                   .mask = "<mask>",
                   .new_word_after_special = true},
          .languages = languages,
          .read_options = read_nllb_options};
}

TokenizerFamily mbart() {
  TokenizerLanguages languages{.codes = mbart_languages(), .fallback = "en_XX"};
  return {.tokenizer_class = "MBartTokenizer",
          .model_types = {"mbart"},
          .model_file = "sentencepiece.bpe.model",
          .spec = {.kind = "mBART",
                   .offset = 1,
                   .fixed = fairseq_tokens(),
                   .appended = with_mask(languages.pieces()),
                   .suffix = {"</s>", "{lang}"},
                   .unk = "<unk>",
                   .mask = "<mask>",
                   .new_word_after_special = true},
          .languages = languages};
}

TokenizerFamily mbart50() {
  TokenizerFamily family = mbart();
  family.tokenizer_class = "MBart50Tokenizer";
  family.model_types = {};
  family.languages.codes = mbart50_languages();
  family.spec.kind = "mBART-50";
  family.spec.appended = with_mask(family.languages.pieces());
  family.spec.prefix = {"{lang}"};
  family.spec.suffix = {"</s>"};
  return family;
}

TokenizerFamily xlm_roberta() {
  return {.tokenizer_class = "XLMRobertaTokenizer",
          .model_types = {"xlm-roberta", "xlm-roberta-xl"},
          .model_file = "sentencepiece.bpe.model",
          .spec = {.kind = "XLM-R",
                   .offset = 1,
                   .fixed = fairseq_tokens(),
                   .appended = {"<mask>"},
                   .prefix = {"<s>"},
                   .suffix = {"</s>"},
                   .pair = roberta_pair("<s>", "</s>"),
                   .unk = "<unk>",
                   .mask = "<mask>",
                   .new_word_after_special = true}};
}

TokenizerFamily camembert() {
  return {.tokenizer_class = "CamembertTokenizer",
          .model_types = {"camembert"},
          .model_file = "sentencepiece.bpe.model",
          .spec = {.kind = "CamemBERT",
                   .offset = 4,
                   .fixed = {{"<s>NOTUSED", 0},
                             {"<pad>", 1},
                             {"</s>NOTUSED", 2},
                             {"<unk>", 3},
                             {"<unk>NOTUSED", 4}},
                   .appended = {"<mask>"},
                   .prefix = {"<s>"},
                   .suffix = {"</s>"},
                   .pair = roberta_pair("<s>", "</s>"),
                   .unk = "<unk>",
                   .mask = "<mask>",
                   .new_word_after_special = true}};
}

TokenizerFamily albert() {
  return {.tokenizer_class = "AlbertTokenizer",
          .model_types = {"albert"},
          .model_file = "spiece.model",
          .spec = {.kind = "ALBERT",
                   .prefix = {"[CLS]"},
                   .suffix = {"[SEP]"},
                   .pair = bert_pair("[CLS]", "[SEP]"),
                   .unk = "<unk>",
                   .mask = "[MASK]",
                   .pad = "<pad>",
                   .new_word_after_special = true},
          .read_options = read_albert_options};
}

TokenizerFamily deberta_v2() {
  return {.tokenizer_class = "DebertaV2Tokenizer",
          .model_types = {"deberta-v2"},
          .model_file = "spm.model",
          .spec = {.kind = "DeBERTa-v2",
                   .appended = {"[MASK]"},
                   .prefix = {"[CLS]"},
                   .suffix = {"[SEP]"},
                   .pair = bert_pair("[CLS]", "[SEP]"),
                   .unk = "[UNK]",
                   .mask = "[MASK]",
                   .pad = "[PAD]",
                   .new_word_after_special = true},
          .read_options = read_deberta_options};
}

TokenizerFamily pegasus() {
  return {.tokenizer_class = "PegasusTokenizer",
          .model_types = {"pegasus", "pegasus_x"},
          .model_file = "spiece.model",
          .spec = {.kind = "Pegasus",
                   .offset = kPegasusOffset,
                   .fixed = pegasus_tokens(),
                   .suffix = {"</s>"},
                   .unk = "<unk>",
                   .mask = "<mask_2>",
                   .new_word_after_special = true},
          .read_options = read_pegasus_options};
}

TokenizerFamily t5() {
  return {.tokenizer_class = "T5Tokenizer",
          .model_types = {"t5", "mt5"},
          .model_file = "spiece.model",
          .spec = {.kind = "T5",
                   .suffix = {"</s>"},
                   .pair = {{}, {"</s>"}, {}, {"</s>"}},
                   .unk = "<unk>",
                   .pad = "<pad>"},
          .read_options = read_t5_options};
}

}  // namespace

std::vector<std::string> TokenizerLanguages::pieces() const {
  std::vector<std::string> pieces;
  for (const std::string& code : codes) pieces.push_back(piece(code));
  return pieces;
}

std::vector<TokenizerFamily> tokenizer_families() {
  return {albert(),  camembert(), deberta_v2(), m2m100(), marian(),     mbart(),
          mbart50(), nllb(),      pegasus(),    t5(),     xlm_roberta()};
}

}  // namespace phasor::internal
