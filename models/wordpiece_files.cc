// Options come from two files, which use different keys.
#include "models/wordpiece_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/files.h"
#include "phasor/errors.h"
#include "tokenizer/wordpiece_tokenizer.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxWordLength = 10000;

/// One piece a line; its id is the line's number, from 0.
std::vector<std::string> read_vocab_txt(const fs::path& file) {
  const std::string bytes = read_file(file);
  if (const std::string_view what = imposter(bytes); !what.empty()) {
    throw ModelError(fmt::format("{}: this is {}", file.string(), what));
  }
  std::vector<std::string> pieces;
  for (std::string_view rest = bytes; !rest.empty();) {
    if (std::ssize(pieces) == kMaxPieces) {
      throw ModelError(fmt::format("{}: more than {} lines", file.string(), kMaxPieces));
    }
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    pieces.emplace_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return pieces;
}

/// tokenizer.json's "vocab": {"piece": id, …}.
std::vector<std::string> read_vocab_object(const ConfigReader& model) {
  const json* const vocab = model.value("vocab");
  if (vocab == nullptr || !vocab->is_object()) model.refuse("vocab", "an object {\"piece\": id}");
  const ConfigReader reader = model.object("vocab");
  const auto limit = static_cast<uint64_t>(id_limit(std::ssize(*vocab)));
  std::vector<std::string> pieces(vocab->size());
  for (const auto& [piece, id] : vocab->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limit) {
      reader.fail(
          fmt::format("{} is {}; it must be a whole number below {}, as there are {} pieces",
                      value_text(piece), value_text(id), limit, vocab->size()));
    }
    const auto place = id.get<size_t>();
    if (place >= pieces.size()) pieces.resize(place + 1);
    pieces[place] = piece;
  }
  return pieces;
}

/// The name of the special token under `key`, which may be written as {"content": "[MASK]", …}.
void read_special(const ConfigReader& config, std::string_view key, std::string& piece) {
  const json* const value = config.value(key);
  if (value == nullptr) return;
  piece = value->is_object() ? config.object(key).text({"content"}) : config.text({key});
}

/// If tokenizer.json has other rules than BERT's, texts would be split wrongly.
ConfigReader of_type(const ConfigReader& root, std::string_view key, const std::string& type) {
  const ConfigReader part = root.object(key);
  if (part.text({"type"}, "") != type) part.refuse("type", fmt::format("\"{}\"", type));
  return part;
}

void read_normalizer(const ConfigReader& root, BertWordOptions& words) {
  of_type(root, "pre_tokenizer", "BertPreTokenizer");
  const ConfigReader normalizer = of_type(root, "normalizer", "BertNormalizer");
  if (!normalizer.boolean({"clean_text"}, true)) normalizer.refuse("clean_text", "true");
  words.lower_case = normalizer.boolean({"lowercase"}, true);
  words.strip_accents = normalizer.boolean({"strip_accents"}, words.lower_case);
  words.split_han = normalizer.boolean({"handle_chinese_chars"}, true);
}

void read_tokenizer_json(const ConfigReader& root, bool with_pieces, WordPieceSpec& spec) {
  const ConfigReader model = root.object("model");
  spec.unk = model.text({"unk_token"}, spec.unk);
  spec.continuation = model.text({"continuing_subword_prefix"}, spec.continuation);
  spec.max_word_length =
      model.integer({"max_input_chars_per_word"}, 1, kMaxWordLength, spec.max_word_length);
  read_normalizer(root, spec.words);
  if (with_pieces) spec.pieces = read_vocab_object(model);
}

void read_config(const ConfigReader& config, WordPieceSpec& spec) {
  for (const auto& [key, piece] : {std::pair("cls_token", &spec.cls),
                                   {"sep_token", &spec.sep},
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

bool has_capitals(const std::vector<std::string>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(), [](const std::string& piece) {
    return !piece.empty() && piece.front() >= 'A' && piece.front() <= 'Z';
  });
}

}  // namespace

std::string model_of_tokenizer_json(const json& root) {
  const auto model = root.find("model");
  if (model == root.end() || !model->is_object()) return {};
  const auto type = model->find("type");
  if (type != model->end()) return type->is_string() ? type->get<std::string>() : "";
  return model->contains("max_input_chars_per_word") ? "WordPiece" : "";  // files of 2020
}

std::shared_ptr<const Tokenizer> load_wordpiece(const fs::path& folder, const ConfigReader& config,
                                                std::vector<AddedToken> added) {
  const fs::path vocab_txt = folder / "vocab.txt", tokenizer_json = folder / "tokenizer.json";
  const bool has_vocab_txt = is_file(vocab_txt), has_json = is_there(tokenizer_json);
  const bool says_case = config.has("do_lower_case");
  WordPieceSpec spec{.kind = "BERT", .added = std::move(added)};
  bool json_says_case = false;
  if (has_json && !(has_vocab_txt && says_case)) {
    const json root = read_json_object(tokenizer_json, kMaxTokenizerFile);
    if (model_of_tokenizer_json(root) == "WordPiece") {
      read_tokenizer_json(ConfigReader(tokenizer_json.string(), root), !has_vocab_txt, spec);
      json_says_case = true;
    }
  }
  spec.file = (spec.pieces.empty() ? vocab_txt : tokenizer_json).string();
  if (spec.pieces.empty()) spec.pieces = read_vocab_txt(vocab_txt);
  read_config(config, spec);
  if (!says_case && !json_says_case && has_capitals(spec.pieces)) {
    spec.notes.push_back(
        "texts are lower-cased, as nothing says do_lower_case, but the vocabulary has capitals; if "
        "this is a cased model, put \"do_lower_case\": false into tokenizer_config.json");
  }
  return make_wordpiece_tokenizer(spec);
}

}  // namespace phasor::internal
