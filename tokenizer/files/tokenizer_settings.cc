#include "tokenizer/files/tokenizer_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "files/files.h"
#include "files/refuse.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr const char* kDecoder = "added_tokens_decoder";

/// The added tokens, each piece once: the last that is set.
class AddedList {
 public:
  explicit AddedList(std::string where) : where_(std::move(where)) {}

  bool has(const std::string& piece) const { return places_.contains(piece); }
  void set(const AddedToken& token) {
    constexpr size_t kMostTokens = size_t{1} << 18;
    if (tokens_.size() == kMostTokens)
      refuse<ModelError>("{}: more than {} added tokens", where_, kMostTokens);
    const auto [place, is_new] = places_.emplace(token.piece, tokens_.size());
    if (is_new) tokens_.emplace_back();
    tokens_[place->second] = token;
  }
  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  std::string where_;
  std::vector<AddedToken> tokens_;
  std::map<std::string, size_t> places_;  // not by hashes, which a file's maker can make collide
};

/// {"103": {"content": "[MASK]", …}, …}.
void read_decoder(const ConfigReader& list, AddedList& added) {
  for (const std::string& id : list.keys()) {
    const bool is_id =
        !id.empty() && id.size() < 10 && id.find_first_not_of("0123456789") == id.npos;
    if (!is_id) list.fail("{} is no token id", value_text(id));
    added.set(read_added_token(list.object(id), std::stoll(id)));
  }
}

/// A list of "<x>" or {"content": "<x>", …}, or an object of such: tokens of the maker's own.
void read_extra(const ConfigReader& reader, std::string_view key, AddedList& added) {
  const json* const list = reader.value(key);
  if (list == nullptr || !list->is_structured()) return;
  for (const json& entry : *list) {
    std::string piece;
    if (entry.is_string()) piece = entry.get<std::string>();
    if (entry.is_object() && entry.contains("content") && entry["content"].is_string()) {
      piece = entry["content"].get<std::string>();
    }
    if (piece.empty()) reader.refuse(key, "a list of tokens");
    if (!added.has(piece)) added.set({.piece = piece, .id = -1});
  }
}

/// added_tokens.json, {"<x>": 30522, …}, as Transformers 4 and older write it.
void read_old_added(ModelFolder& folder, const TokenizerSettings& settings, AddedList& added) {
  const ConfigReader file = folder.object("added_tokens.json");
  std::vector<std::string> special;
  for (const char* const key : {"cls_token", "sep_token", "unk_token", "pad_token", "mask_token",
                                "bos_token", "eos_token"}) {
    read_special(settings, key, special.emplace_back());
  }
  for (const std::string& piece : file.keys()) {
    const int64_t id = file.integer({piece}, 0, kMaxPieces - 1);
    const bool is_special = added.has(piece) || std::ranges::find(special, piece) != special.end();
    added.set({.piece = piece, .id = id, .special = is_special, .normalized = !is_special});
  }
}

std::optional<bool> read_side(const ConfigReader& config) {
  const std::string side = config.text({"truncation_side"}, "");
  if (side.empty()) return std::nullopt;
  if (side != "left" && side != "right") config.refuse("truncation_side", "\"left\" or \"right\"");
  return side == "left";
}

/// The class in tokenizer_config.json, otherwise in config.json.
void read_class(ModelFolder& folder, TokenizerSettings& settings) {
  for (const ConfigReader& reader : {settings.config, folder.object("config.json")}) {
    std::string name = reader.text({"tokenizer_class"}, "");
    if (name.ends_with("Fast")) name.resize(name.size() - 4);
    settings.follows_json |= name == "PreTrainedTokenizer" || name == "TokenizersBackend";
    if (name.empty() || name == "AutoTokenizer") continue;
    if (!settings.follows_json) settings.tokenizer_class = name;
    return;
  }
}

}  // namespace

TokenizerSettings read_tokenizer_settings(ModelFolder& folder) {
  const ConfigReader config = folder.object(kTokenizerConfig);
  const bool has_decoder = config.has(kDecoder);
  const bool has_map = folder.has("special_tokens_map.json");
  TokenizerSettings settings{
      .config = config,
      .specials = has_map && !has_decoder ? folder.object("special_tokens_map.json") : config,
      .truncate_left = read_side(config)};
  settings.lower_case = folder.object(sentence_file(folder)).boolean({"do_lower_case"}, false);
  read_class(folder, settings);
  AddedList added(folder.path().string());
  if (has_decoder) read_decoder(config.object(kDecoder), added);
  for (const ConfigReader& reader : {config, settings.specials}) {
    for (const char* const key : {"additional_special_tokens", "extra_special_tokens"}) {
      read_extra(reader, key, added);
    }
  }
  if (!has_decoder) read_old_added(folder, settings, added);
  settings.added = added.take();
  if (config.has("model_input_names")) {
    const std::vector<std::string> names = config.texts({"model_input_names"});
    settings.gives_types = std::ranges::find(names, "token_type_ids") != names.end();
  }
  if (settings.follows_json && !settings.gives_types) settings.gives_types = false;
  return settings;
}

void read_special(const TokenizerSettings& settings, std::string_view key, std::string& piece) {
  for (const ConfigReader& reader : {settings.specials, settings.config}) {
    const json* const value = reader.value(key);
    if (value == nullptr) continue;
    piece = value->is_object() ? reader.object(key).text({"content"}) : reader.text({key});
    if (piece.empty()) reader.refuse(key, "a piece of the vocabulary");
    return;
  }
}

void read_specials(const TokenizerSettings& settings, SpecialNames& names) {
  read_special(settings, "cls_token", names.cls);
  read_special(settings, "sep_token", names.sep);
  read_special(settings, "unk_token", names.unk);
  read_special(settings, "pad_token", names.pad);
  read_special(settings, "mask_token", names.mask);
}

AddedToken read_added_token(const ConfigReader& entry, int64_t id) {
  AddedToken token{.piece = entry.text({"content"}), .id = id};
  token.special = entry.boolean({"special"}, false);
  token.lstrip = entry.boolean({"lstrip"}, false);
  token.rstrip = entry.boolean({"rstrip"}, false);
  token.single_word = entry.boolean({"single_word"}, false);
  token.normalized = entry.boolean({"normalized"}, !token.special);
  return token;
}

std::string sentence_file(const ModelFolder& folder) {
  const std::string first = "sentence_bert_config.json";
  if (folder.has(first)) return first;
  for (const char* const family :
       {"roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const std::string name = fmt::format("sentence_{}_config.json", family);
    if (folder.has(name)) return name;
  }
  return first;
}

}  // namespace phasor::internal
