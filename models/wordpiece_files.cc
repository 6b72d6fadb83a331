// Options come from two files, which use different keys.
#include "models/wordpiece_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/file_kinds.h"
#include "models/files.h"
#include "models/tokenizer_json.h"
#include "phasor/errors.h"
#include "tokenizer/wordpiece_tokenizer.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxWordLength = 10000;

/// One piece a line; its id is the line's number, from 0.
std::vector<std::pair<std::string, int32_t>> read_vocab_txt(const fs::path& file) {
  const std::string bytes = read_model_file(file);
  refuse_other_kind(bytes, file);
  std::vector<std::pair<std::string, int32_t>> pieces;
  for (std::string_view rest = bytes; !rest.empty();) {
    if (std::ssize(pieces) == kMaxPieces) {
      throw ModelError(fmt::format("{}: more than {} lines", file.string(), kMaxPieces));
    }
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    pieces.emplace_back(line, static_cast<int32_t>(pieces.size()));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return pieces;
}

/// The special tokens round a text.
struct Framing {
  std::string cls = "[CLS]";
  std::string sep = "[SEP]";
  Template (*pair)(const std::string& cls, const std::string& sep) = bert_pair;
};

/// If tokenizer.json has other rules than BERT's, texts would be split wrongly.
void check_rules(const ConfigReader& root, const TokenizerJson& parts) {
  const bool other_words =
      parts.byte_level || parts.metaspace || parts.whitespace_split || parts.gpt2_split;
  if (!parts.bert_words || other_words) {
    refuse_component(root, "pre_tokenizer", "BertPreTokenizer in WordPiece");
  }
  if (!parts.bert || parts.charsmap || !parts.steps.empty()) {
    refuse_component(root, "normalizer", "BertNormalizer in WordPiece");
  }
}

/// The options, and if `whole` also the pieces and special tokens.
TokenizerJson read_json(const ConfigReader& root, const std::string& file, const json& content,
                        bool whole, WordPieceSpec& spec) {
  const ConfigReader model = root.object("model");
  spec.unk = model.text({"unk_token"}, spec.unk);
  spec.continuation = model.text({"continuing_subword_prefix"}, spec.continuation);
  spec.max_word_length =
      model.integer({"max_input_chars_per_word"}, 1, kMaxWordLength, spec.max_word_length);
  const TokenizerJson parts = read_tokenizer_json(file, content, !whole);
  check_rules(root, parts);
  spec.words = *parts.bert;
  if (!whole) return parts;
  spec.pieces = read_vocab_object(model);
  spec.prefix = parts.prefix;
  spec.suffix = parts.suffix;
  spec.pair = parts.pair;
  spec.written = parts.added;
  return parts;
}

void read_config(const ConfigReader& config, Framing& framing, WordPieceSpec& spec) {
  for (const auto& [key, piece] : {std::pair("cls_token", &framing.cls),
                                   {"sep_token", &framing.sep},
                                   {"unk_token", &spec.unk},
                                   {"mask_token", &spec.mask},
                                   {"pad_token", &spec.pad}}) {
    read_special(config, key, *piece);
  }
  BertWordOptions& words = spec.words;
  if (config.has("do_lower_case")) {
    words.lower_case = config.boolean({"do_lower_case"});
    words.strip_accents = words.lower_case;
  }
  words.strip_accents = config.boolean({"strip_accents"}, words.strip_accents);
  words.split_han = config.boolean({"tokenize_chinese_chars"}, words.split_han);
  if (!config.boolean({"do_basic_tokenize"}, true)) config.refuse("do_basic_tokenize", "true");
  const json* const never_split = config.value("never_split");
  if (never_split != nullptr && !never_split->empty()) config.refuse("never_split", "empty");
}

bool has_capitals(const WordPieceSpec& spec) {
  return std::any_of(spec.pieces.begin(), spec.pieces.end(), [](const auto& entry) {
    return !entry.first.empty() && entry.first.front() >= 'A' && entry.first.front() <= 'Z';
  });
}

}  // namespace

std::shared_ptr<const Tokenizer> load_wordpiece(const fs::path& folder, std::string_view kind,
                                                const ConfigReader& config,
                                                std::vector<AddedToken> added) {
  const fs::path vocab_txt = folder / "vocab.txt", tokenizer_json = folder / "tokenizer.json";
  const bool has_vocab_txt = is_file(vocab_txt), has_json = is_there(tokenizer_json);
  const bool says_case = config.has("do_lower_case");
  WordPieceSpec spec{.kind = "BERT", .added = std::move(added)};
  Framing framing;
  if (kind == "MPNet") {
    framing = {"<s>", "</s>", roberta_pair};
    spec.kind = "MPNet";
    spec.mask = "<mask>";
    spec.pad = "<pad>";
  }
  TokenizerJson parts;
  bool json_says_case = false;
  if (has_json && !(has_vocab_txt && says_case)) {
    const JsonDocument document = read_json_object(tokenizer_json, kMaxTokenizerFile);
    const json& root = *document;
    const std::string file = tokenizer_json.string(), model = model_of_tokenizer_json(root);
    if (model == "WordPiece") {
      parts = read_json(ConfigReader(file, root), file, root, !has_vocab_txt, spec);
      json_says_case = true;
    } else if (!has_vocab_txt) {
      throw ModelError(fmt::format("{}: its model is {}; a {} tokenizer needs WordPiece, or a "
                                   "vocab.txt beside it",
                                   file, value_text(model), spec.kind),
                       ErrorCode::kUnsupported);
    }
  }
  const bool from_txt = has_vocab_txt || !has_json;
  spec.file = (from_txt ? vocab_txt : tokenizer_json).string();
  if (from_txt) spec.pieces = read_vocab_txt(vocab_txt);
  read_config(config, framing, spec);
  if (!parts.has_template) {
    spec.prefix = {framing.cls};
    spec.suffix = {framing.sep};
    spec.pair = framing.pair(framing.cls, framing.sep);
  }
  if (!says_case && !json_says_case && has_capitals(spec)) {
    spec.notes.push_back(
        "texts are lower-cased, as nothing says do_lower_case, but the vocabulary has capitals; if "
        "this is a cased model, put \"do_lower_case\": false into tokenizer_config.json");
  }
  if (kind == "RoFormer") {
    spec.notes.push_back(
        "RoFormer's tokenizer cuts Chinese into words with jieba, phasor into characters: Chinese "
        "texts get other ids");
  }
  const auto tokenizer = make_wordpiece_tokenizer(spec);
  check_named(parts, *tokenizer, spec.file);
  return tokenizer;
}

}  // namespace phasor::internal
