// Options come from two files, which use different keys.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/wordpiece_tokenizer.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxWordLength = 1'000'000;

/// One piece a line, without the white space at its end; its id is the line's number, from 0.
PieceIds read_vocab_txt(const ModelPath& file) {
  PieceIds pieces;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    line.remove_suffix(spaces_at_end(line));
    pieces.emplace_back(line, static_cast<int32_t>(number - 1));
  });
  return pieces;
}

/// If tokenizer.json has other rules than BERT's, texts would be split wrongly.
void check_rules(const ConfigReader& root, const TokenizerJson& parts) {
  const bool other_words =
      parts.byte_level || parts.metaspace || parts.whitespace_split || !parts.splits.empty();
  if (!parts.bert_words || other_words)
    refuse_component(root, "pre_tokenizer", "BertPreTokenizer in WordPiece");
  if (!parts.bert || parts.charsmap || !parts.steps.empty())
    refuse_component(root, "normalizer", "BertNormalizer in WordPiece");
}

/// As the class of Transformers has it, whatever tokenizer.json says.
void read_class(const TokenizerSettings& settings, std::string_view kind, WordPieceSpec& spec) {
  const bool mpnet = kind == "MPNet";
  SpecialNames names = mpnet ? SpecialNames{"<s>", "</s>", "[UNK]", "<pad>", "<mask>"}
                             : SpecialNames{"[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"};
  read_specials(settings, names);
  spec.unk = names.unk;
  spec.pad = names.pad;
  if (spec.common.mask.empty()) spec.common.mask = names.mask;
  spec.common.prefix = {names.cls};
  spec.common.suffix = {names.sep};
  spec.common.pair = mpnet ? roberta_pair(names.cls, names.sep) : bert_pair(names.cls, names.sep);
  const ConfigReader& config = settings.config;
  BertWordOptions& words = spec.words;
  words.lower_case = config.boolean({"do_lower_case"}, true);
  words.strip_accents = config.boolean({"strip_accents"}, words.lower_case);
  words.split_han = config.boolean({"tokenize_chinese_chars"}, true);
  if (!config.boolean({"do_basic_tokenize"}, true)) config.refuse("do_basic_tokenize", "true");
  const json* const never_split = config.value("never_split");
  if (never_split != nullptr && !never_split->empty()) config.refuse("never_split", "empty");
}

bool same_words(const BertWordOptions& a, const BertWordOptions& b) {
  return a.lower_case == b.lower_case && a.strip_accents == b.strip_accents &&
         a.split_han == b.split_han;
}

/// tokenizer.json; what a class does in its place is set already.
void read_json(const ConfigReader& root, bool follows_json, const TokenizerJson& parts,
               WordPieceSpec& spec) {
  const ConfigReader model = root.object("model");
  check_rules(root, parts);
  const std::string continuation = model.text({"continuing_subword_prefix"}, spec.continuation);
  const int64_t max_word_length =
      model.integer({"max_input_chars_per_word"}, 1, kMaxWordLength, spec.max_word_length);
  spec.pieces = read_vocab_object(model);
  if (follows_json) {
    spec.unk = model.text({"unk_token"}, spec.unk);
    spec.words = *parts.bert;
    spec.continuation = continuation;
    spec.max_word_length = max_word_length;
    return;
  }
  if (continuation != spec.continuation || max_word_length != spec.max_word_length) {
    spec.common.notes.push_back(
        fmt::format("continuing_subword_prefix and max_input_chars_per_word of tokenizer.json are "
                    "not followed, "
                    "as Transformers' {} class has its own: \"{}\" and {}",
                    spec.kind, spec.continuation, spec.max_word_length));
  }
  if (!same_words(spec.words, *parts.bert)) {
    spec.common.notes.push_back(
        "tokenizer.json and tokenizer_config.json differ in do_lower_case, strip_accents or "
        "tokenize_chinese_chars; tokenizer_config.json is followed, as Transformers does");
  }
  if (parts.has_template &&
      (parts.prefix != spec.common.prefix || parts.suffix != spec.common.suffix)) {
    spec.common.notes.push_back(fmt::format(
        "tokenizer.json puts other special tokens round a text than {}'s class in Transformers, "
        "which is followed",
        spec.kind));
  }
}

/// Whether vocab.txt, if it is there, has the pieces of tokenizer.json.
bool same_vocabulary(const ModelPath& vocab_txt, const WordPieceSpec& spec) {
  if (!is_file(vocab_txt)) return true;
  try {
    const auto lines = read_vocab_txt(vocab_txt);
    return lines.size() == spec.pieces.size() &&
           std::ranges::all_of(spec.pieces, [&](const auto& piece) {
             const auto& [text, id] = piece;
             return id >= 0 && id < std::ssize(lines) &&
                    lines[static_cast<size_t>(id)].first == text;
           });
  } catch (const ModelError&) {
    return false;
  }
}

bool has_capitals(const WordPieceSpec& spec) {
  return std::ranges::any_of(spec.pieces, [](const auto& entry) {
    return !entry.first.empty() && entry.first.front() >= 'A' && entry.first.front() <= 'Z';
  });
}

void read_vocab_txt_alone(const ModelPath& vocab_txt, const TokenizerSettings& settings,
                          WordPieceSpec& spec) {
  spec.pieces = read_vocab_txt(vocab_txt);
  if (settings.config.has("do_lower_case") || !has_capitals(spec)) return;
  spec.common.notes.push_back(
      "texts are lower-cased, as nothing says do_lower_case, but the vocabulary has capitals; if "
      "this is a cased model, put \"do_lower_case\": false into tokenizer_config.json");
}

/// Token types 0 throughout, where the model is given none.
void drop_types(const TokenizerSettings& settings, WordPieceSpec& spec) {
  bool typed = false;
  for (TemplateItem& item : spec.common.pair) typed |= std::exchange(item.type, 0) != 0;
  if (!typed || !settings.follows_json || !settings.config.has("tokenizer_class")) return;
  spec.common.notes.push_back(
      "the second text of a pair has token type 0, as in Transformers 5: model_input_names in "
      "tokenizer_config.json does not list token_type_ids");
}

}  // namespace

std::shared_ptr<const Tokenizer> load_wordpiece(ModelFolder& folder, std::string_view kind,
                                                const TokenizerSettings& settings) {
  const ModelPath vocab_txt = folder.path() / "vocab.txt";
  const ConfigReader root = folder.object(kTokenizerJson);
  const std::string model = model_of_tokenizer_json(root);
  const bool has_json = model == "WordPiece";
  const bool follows_json = settings.follows_json && has_json;
  const TokenizerJson parts = has_json ? read_tokenizer_json(root) : TokenizerJson();
  WordPieceSpec spec{
      .kind = kind == "MPNet" ? "MPNet" : "BERT",
      .common = common_spec(has_json ? root.where() : vocab_txt.string(), settings, parts)};
  if (!follows_json) read_class(settings, kind, spec);
  if (spec.common.mask.empty()) spec.common.mask = "[MASK]";
  if (has_json) {
    read_json(root, follows_json, parts, spec);
    if (!same_vocabulary(vocab_txt, spec)) {
      spec.common.notes.push_back(
          "vocab.txt has other pieces than tokenizer.json, which is followed");
    }
  } else if (is_file(vocab_txt) || !folder.has(kTokenizerJson)) {
    read_vocab_txt_alone(vocab_txt, settings, spec);
    if (!model.empty()) {
      spec.common.notes.push_back(fmt::format(
          "vocab.txt is followed: the model in tokenizer.json is {}, not WordPiece", model));
    }
  } else {
    root.fail(ErrorCode::kUnsupported,
              "its model is {}; a {} tokenizer needs WordPiece, or a vocab.txt beside it",
              value_text(model), spec.kind);
  }
  if (!settings.gives_types.value_or(kind != "DistilBert")) drop_types(settings, spec);
  spec.words.lower_case |= settings.lower_case;
  if (kind == "RoFormer") {
    spec.common.notes.push_back(
        "RoFormer's tokenizer cuts Chinese into words with jieba, phasor into characters: Chinese "
        "texts get other ids");
  }
  const auto tokenizer = make_wordpiece_tokenizer(spec);
  if (follows_json) check_named(parts, *tokenizer, spec.common.file);
  return tokenizer;
}

}  // namespace phasor::internal
