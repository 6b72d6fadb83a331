// The sources are Transformers' tokenization_*.py.
#include "tokenizer/files/tokenizer_families.h"

#include <fmt/format.h>

#include <utility>

namespace phasor::internal {
namespace {

using Pieces = std::vector<std::string>;

constexpr int64_t kMaxExtraIds = 10000;
constexpr int32_t kPegasusOffset = 103;

/// T5's "<extra_id_0>" has the highest id.
Pieces extra_ids(int64_t count) {
  Pieces pieces;
  for (int64_t n = count - 1; n >= 0; --n) pieces.push_back(fmt::format("<extra_id_{}>", n));
  return pieces;
}

/// Pegasus has 105 special tokens: 0 to 104.
PieceIds pegasus_tokens() {
  PieceIds tokens = {{"<pad>", 0}, {"</s>", 1}, {"<mask_1>", 2}, {"<mask_2>", 3}};
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
  spec.common.prefix = {};
  spec.common.suffix = {"</s>", "{lang}"};
}

TokenizerFamily marian() {
  return {.tokenizer_class = "MarianTokenizer",
          .model_types = {"marian"},
          .model_file = "source.spm",
          .has_vocab_json = true,
          .spec = {.kind = "Marian",
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .leading_language_code = true,
                   .new_word_after_special = true,
                   .common = {.prefix = {"{lang}"}, .suffix = {"</s>"}}},
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
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .new_word_after_special = true,
                   .common = {.prefix = {"{lang}"}, .suffix = {"</s>"}}},
          .languages = languages,
          .read_options = read_m2m100_options};
}

/// Ids as in fairseq: its special tokens, SentencePiece's pieces, the languages, and the mask.
TokenizerFamily fairseq(std::string tokenizer_class, Pieces model_types, std::string kind,
                        CommonSpec common, TokenizerLanguages languages = {}) {
  Pieces appended = languages.pieces();
  appended.push_back("<mask>");
  common.mask = "<mask>";
  return {.tokenizer_class = std::move(tokenizer_class),
          .model_types = std::move(model_types),
          .model_file = "sentencepiece.bpe.model",
          .spec = {.kind = std::move(kind),
                   .offset = 1,
                   .fixed = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}},
                   .appended = std::move(appended),
                   .unk = "<unk>",
                   .new_word_after_special = true,
                   .common = std::move(common)},
          .languages = std::move(languages)};
}

TokenizerFamily nllb() {
  TokenizerFamily family = fairseq("NllbTokenizer", {"m2m_100", "nllb-moe"}, "NLLB",
                                   {.prefix = {"{lang}"}, .suffix = {"</s>"}},
                                   {.codes = nllb_languages(), .fallback = "eng_Latn"});
  family.read_options = read_nllb_options;
  return family;
}

TokenizerFamily mbart() {
  return fairseq("MBartTokenizer", {"mbart"}, "mBART", {.suffix = {"</s>", "{lang}"}},
                 {.codes = mbart_languages(), .fallback = "en_XX"});
}

TokenizerFamily mbart50() {
  return fairseq("MBart50Tokenizer", {}, "mBART-50", {.prefix = {"{lang}"}, .suffix = {"</s>"}},
                 {.codes = mbart50_languages(), .fallback = "en_XX"});
}

CommonSpec roberta_tokens() {
  return {.prefix = {"<s>"}, .suffix = {"</s>"}, .pair = roberta_pair("<s>", "</s>")};
}

TokenizerFamily xlm_roberta() {
  return fairseq("XLMRobertaTokenizer", {"xlm-roberta", "xlm-roberta-xl"}, "XLM-R",
                 roberta_tokens());
}

TokenizerFamily camembert() {
  TokenizerFamily family =
      fairseq("CamembertTokenizer", {"camembert"}, "CamemBERT", roberta_tokens());
  family.spec.offset = 4;
  family.spec.fixed = {
      {"<s>NOTUSED", 0}, {"<pad>", 1}, {"</s>NOTUSED", 2}, {"<unk>", 3}, {"<unk>NOTUSED", 4}};
  return family;
}

CommonSpec bert_tokens() {
  return {.prefix = {"[CLS]"},
          .suffix = {"[SEP]"},
          .pair = bert_pair("[CLS]", "[SEP]"),
          .mask = "[MASK]"};
}

TokenizerFamily albert() {
  return {.tokenizer_class = "AlbertTokenizer",
          .model_types = {"albert"},
          .model_file = "spiece.model",
          .spec = {.kind = "ALBERT",
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .new_word_after_special = true,
                   .common = bert_tokens()},
          .read_options = read_albert_options};
}

TokenizerFamily deberta_v2() {
  return {.tokenizer_class = "DebertaV2Tokenizer",
          .model_types = {"deberta-v2"},
          .model_file = "spm.model",
          .spec = {.kind = "DeBERTa-v2",
                   .appended = {"[MASK]"},
                   .unk = "[UNK]",
                   .pad = "[PAD]",
                   .new_word_after_special = true,
                   .common = bert_tokens()},
          .read_options = read_deberta_options};
}

TokenizerFamily pegasus() {
  return {.tokenizer_class = "PegasusTokenizer",
          .model_types = {"pegasus", "pegasus_x"},
          .model_file = "spiece.model",
          .spec = {.kind = "Pegasus",
                   .offset = kPegasusOffset,
                   .fixed = pegasus_tokens(),
                   .unk = "<unk>",
                   .new_word_after_special = true,
                   .common = {.suffix = {"</s>"}, .mask = "<mask_2>"}},
          .read_options = read_pegasus_options};
}

TokenizerFamily t5() {
  return {.tokenizer_class = "T5Tokenizer",
          .model_types = {"t5", "mt5"},
          .model_file = "spiece.model",
          .spec = {.kind = "T5",
                   .unk = "<unk>",
                   .pad = "<pad>",
                   .common = {.suffix = {"</s>"}, .pair = {{}, {"</s>"}, {}, {"</s>"}}}},
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

std::optional<TokenizerFamily> find_tokenizer_family(std::string_view tokenizer_class) {
  for (TokenizerFamily& family : tokenizer_families()) {
    if (family.tokenizer_class == tokenizer_class) return std::move(family);
  }
  return std::nullopt;
}

}  // namespace phasor::internal
