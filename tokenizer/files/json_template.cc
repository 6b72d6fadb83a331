// Special tokens round a text and a pair of texts: the types of post_processor in tokenizer.json.
#include <fmt/format.h>

#include <algorithm>

#include "files/files.h"
#include "phasor/errors.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr size_t kMaxTemplate = 32;
constexpr int64_t kMaxTokenType = 1023;

void begin_template(const ConfigReader& part, TokenizerJson& result) {
  if (result.has_template)
    part.fail(ErrorCode::kUnsupported, "a second template of special tokens");
  result.has_template = true;
}

/// "cls": ["[CLS]", 101].
std::string read_framing(const ConfigReader& part, std::string_view key, TokenizerJson& result) {
  const json* const value = part.value(key);
  const bool good = value != nullptr && value->is_array() && value->size() == 2 &&
                    (*value)[0].is_string() && (*value)[1].is_number_unsigned() &&
                    !(*value)[0].get_ref<const std::string&>().empty() &&
                    (*value)[1].get<uint64_t>() < kMaxPieces;
  if (!good) part.refuse(key, "[\"piece\", id]");
  result.named.push_back({.piece = (*value)[0], .id = (*value)[1]});
  return (*value)[0];
}

template <Template (*pair)(const std::string&, const std::string&)>
void read_cls_and_sep(const ConfigReader& part, TokenizerJson& result) {
  begin_template(part, result);
  const std::string cls = read_framing(part, "cls", result);
  const std::string sep = read_framing(part, "sep", result);
  result.prefix = {cls};
  result.suffix = {sep};
  result.pair = pair(cls, sep);
}

/// Appends the tokens that `name` stands for: {"[CLS]": {"id": "[CLS]", "ids": [101], "tokens":
/// ["[CLS]"]}}.
void append_special(const ConfigReader& part, const std::string& name, int32_t type,
                    Template& items, TokenizerJson& result) {
  const ConfigReader all = part.object("special_tokens");
  if (!all.has(name)) all.fail("{} is missing", value_text(name));
  const ConfigReader special = all.object(name);
  const std::vector<std::string> tokens = special.texts({"tokens"});
  const json* const ids = special.value("ids");
  const bool good = ids != nullptr && ids->is_array() && ids->size() == tokens.size() &&
                    tokens.size() <= kMaxTemplate &&
                    std::all_of(ids->begin(), ids->end(), [](const json& id) {
                      return id.is_number_unsigned() && id.get<uint64_t>() < kMaxPieces;
                    });
  if (!good) special.refuse("ids", "a list of ids, as many as tokens");
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) special.refuse("tokens", "not empty");
    items.push_back({tokens[i], type});
    result.named.push_back({.piece = tokens[i], .id = (*ids)[i]});
  }
}

/// Reads [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
/// …], in which `texts` are "A" or "A" and "B".
Template read_template(const ConfigReader& part, std::string_view key, std::string_view texts,
                       TokenizerJson& result) {
  Template items;
  std::string found;
  part.for_each_object(key, [&](const ConfigReader& item) {
    const bool is_text = item.has("Sequence");
    const ConfigReader what = item.object(is_text ? "Sequence" : "SpecialToken");
    const auto type = static_cast<int32_t>(what.integer({"type_id"}, 0, kMaxTokenType, 0));
    const std::string id = what.text({"id"});
    if (is_text) {
      if (id != "A" && id != "B") what.refuse("id", "\"A\" or \"B\"");
      found += id;
      items.push_back({"", type});
    } else {
      append_special(part, id, type, items, result);
    }
    if (items.size() > kMaxTemplate) part.fail("{} has more than {} items", key, kMaxTemplate);
  });
  if (found != texts && !(items.empty() && key == "pair"))
    refuse_component(part, key, fmt::format("a template with {} in this order", texts));
  return items;
}

void read_template_processing(const ConfigReader& part, TokenizerJson& result) {
  begin_template(part, result);
  std::vector<std::string>* side = &result.prefix;
  for (const TemplateItem& item : read_template(part, "single", "A", result)) {
    if (item.type != 0) refuse_component(part, "single", "a template with type_id 0 throughout");
    if (item.piece.empty()) {
      side = &result.suffix;
    } else {
      side->push_back(item.piece);
    }
  }
  result.pair = read_template(part, "pair", "AB", result);
}

void read_trimming(const ConfigReader& part, TokenizerJson& result) {
  result.trim_offsets = part.boolean({"trim_offsets"}, true);
}

void read_roberta(const ConfigReader& part, TokenizerJson& result) {
  read_cls_and_sep<roberta_pair>(part, result);
  read_trimming(part, result);
}

constexpr Component kPostProcessors[] = {{"TemplateProcessing", read_template_processing},
                                         {"BertProcessing", read_cls_and_sep<bert_pair>},
                                         {"RobertaProcessing", read_roberta},
                                         {"ByteLevel", read_trimming}};

}  // namespace

std::span<const Component> post_processors() { return kPostProcessors; }

}  // namespace phasor::internal
