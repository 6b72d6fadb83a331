// A function for each type of component, and a table of them for each kind. Those of post_processor
// are in json_template.cc.
#include "tokenizer/files/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "files/files.h"
#include "files/json_writer.h"
#include "files/refuse.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr size_t kMaxSteps = 32;

[[noreturn]] void refuse_second(const ConfigReader& part, std::string_view type) {
  refuse_component(part, "type", fmt::format("only one {}", type));
}

// ---------------------------------------------------------------- normalizer

void add_step(const ConfigReader& part, TokenizerJson& result, NormalizerStep step) {
  if (result.steps.size() == kMaxSteps) part.fail("more than {} steps", kMaxSteps);
  result.replaces_spaces = false;  // unless it is the last step that does
  result.steps.push_back(std::move(step));
}

template <NormalForm form>
void read_normal_form(const ConfigReader& part, TokenizerJson& result) {
  add_step(part, result,
           [](const AlignedView& text, size_t most) { return to_normal_form(text, form, most); });
}

AlignedText in_lower_case(const AlignedView& text, size_t) { return lower_case(text); }

void read_lower_case(const ConfigReader& part, TokenizerJson& result) {
  add_step(part, result, in_lower_case);
}

void read_strip_accents(const ConfigReader& part, TokenizerJson& result) {
  add_step(part, result, [](const AlignedView& text, size_t) { return without_marks(text); });
}

void read_strip(const ConfigReader& part, TokenizerJson& result) {
  const bool left = part.boolean({"strip_left"}, true), right = part.boolean({"strip_right"}, true);
  add_step(part, result, [=](const AlignedView& text, size_t) {
    return AlignedText(text.part(without_outer_spaces(text.text, left, right)));
  });
}

/// A regular expression of published files, and the function that replaces its matches.
struct KnownPattern {
  std::string_view regex;
  AlignedText (*replace)(const AlignedView& text, std::string_view content, size_t most);
};
AlignedText replace_line_feeds(const AlignedView& text, std::string_view content, size_t most) {
  return replace_all(text, "\n", content, most);
}

constexpr KnownPattern kPatterns[] = {{" {2,}", replace_runs_of_spaces},
                                      {"\\s{2,}|[\\n\\r\\t]", replace_runs_and_breaks},
                                      {"\\n", replace_line_feeds}};

void read_replace(const ConfigReader& part, TokenizerJson& result) {
  constexpr size_t kMostBytes = 16, kMostOfPattern = 64;  // which is looked for at every place
  const std::string content = part.text({"content"});
  const ConfigReader pattern = part.object("pattern");
  const std::string text = pattern.text({"String"}, "");
  if (content.size() > kMostBytes)
    part.fail("content has {} bytes; at most {} are read", content.size(), kMostBytes);
  if (text.size() > kMostOfPattern)
    part.fail("pattern has {} bytes; at most {} are read", text.size(), kMostOfPattern);
  if (!text.empty()) {
    add_step(part, result, [=](const AlignedView& whole, size_t most) {
      return replace_all(whole, text, content, most);
    });
    result.replaces_spaces = text == " " && content.find(' ') == content.npos;
    return;
  }
  const auto* const known =
      std::ranges::find(kPatterns, pattern.text({"Regex"}, ""), &KnownPattern::regex);
  if (known == std::end(kPatterns)) {
    std::string regexes;
    for (const KnownPattern& one : kPatterns) regexes += " " + json(one.regex).dump();
    refuse_component(part, "pattern",
                     fmt::format("{{\"String\": …}}, and of {{\"Regex\": …}} only{}", regexes));
  }
  add_step(part, result, [=](const AlignedView& whole, size_t most) {
    return known->replace(whole, content, most);
  });
}

void read_prepend(const ConfigReader& part, TokenizerJson& result) {
  constexpr size_t kMostBytes = 16;
  const std::string before = part.text({"prepend"});
  if (before.size() > kMostBytes)
    part.fail("prepend has {} bytes; at most {} are read", before.size(), kMostBytes);
  add_step(part, result, [=](const AlignedView& text, size_t) {
    return prepend(text, text.text.empty() ? "" : before);
  });
}

void read_precompiled(const ConfigReader& part, TokenizerJson& result) {
  if (result.charsmap) refuse_second(part, "Precompiled");
  result.charsmap = true;
  const std::optional<std::string> bytes = from_base64(part.text({"precompiled_charsmap"}, ""));
  if (!bytes) part.fail("precompiled_charsmap is not base64");
  if (bytes->empty()) return;
  try {
    const auto rules = std::make_shared<const Charsmap>(*bytes);
    add_step(part, result, [rules](const AlignedView& text, size_t most) {
      return rules->normalize_clusters(text, most);
    });
  } catch (const Charsmap::Fault& fault) {
    part.fail("precompiled_charsmap: {}; get the file again", fault.what());
  }
}

void read_bert_normalizer(const ConfigReader& part, TokenizerJson& result) {
  if (result.bert) refuse_second(part, "BertNormalizer");
  if (!part.boolean({"clean_text"}, true)) refuse_component(part, "clean_text", "true");
  BertWordOptions words;
  words.lower_case = part.boolean({"lowercase"}, true);
  words.strip_accents = part.boolean({"strip_accents"}, words.lower_case);
  words.split_han = part.boolean({"handle_chinese_chars"}, true);
  result.bert = words;
}

constexpr Component kNormalizers[] = {{"BertNormalizer", read_bert_normalizer},
                                      {"NFC", read_normal_form<NormalForm::kNfc>},
                                      {"NFD", read_normal_form<NormalForm::kNfd>},
                                      {"NFKC", read_normal_form<NormalForm::kNfkc>},
                                      {"NFKD", read_normal_form<NormalForm::kNfkd>},
                                      {"Lowercase", read_lower_case},
                                      {"StripAccents", read_strip_accents},
                                      {"Strip", read_strip},
                                      {"Replace", read_replace},
                                      {"Prepend", read_prepend},
                                      {"Precompiled", read_precompiled}};

// ---------------------------------------------------------------- pre_tokenizer

void read_bert_words(const ConfigReader&, TokenizerJson& result) { result.bert_words = true; }

void read_byte_level(const ConfigReader& part, TokenizerJson& result) {
  if (result.byte_level) refuse_second(part, "ByteLevel");
  result.byte_level = {part.boolean({"add_prefix_space"}, true), part.boolean({"use_regex"}, true)};
}

void add_split(const ConfigReader& part, std::string_view expression, TokenizerJson& result) {
  if (result.byte_level) refuse_component(part, "type", "Split and Digits only before a ByteLevel");
  if (result.splits.size() == kMaxSteps) part.fail("more than {} splits", kMaxSteps);
  try {
    result.splits.push_back(std::make_shared<const SplitPattern>(expression));
  } catch (const SplitPattern::Fault& fault) {
    refuse_component(part, "pattern",
                     fmt::format("alternatives of characters, sets like [^\\s\\p{{L}}], groups "
                                 "(?:…) and (?i:…), ?, *, + and {{1,3}}, and (?!\\S), but not {}",
                                 fault.what()));
  }
}

void read_split(const ConfigReader& part, TokenizerJson& result) {
  const ConfigReader pattern = part.object("pattern");
  const std::string behavior = part.text({"behavior"}, "");
  if (part.boolean({"invert"}, false)) refuse_component(part, "invert", "false");
  // Gemma's, after whose normalizer no space is left.
  if (result.replaces_spaces && pattern.text({"String"}, "") == " ") return;
  if (behavior != "Isolated") refuse_component(part, "behavior", "\"Isolated\"");
  if (!pattern.has("Regex")) refuse_component(part, "pattern", "{\"Regex\": …}");
  add_split(part, pattern.text({"Regex"}), result);
}

void read_digits(const ConfigReader& part, TokenizerJson& result) {
  add_split(part, part.boolean({"individual_digits"}, false) ? "\\p{N}" : "\\p{N}+", result);
}

void read_whitespace_split(const ConfigReader& part, TokenizerJson& result) {
  if (result.metaspace) refuse_component(part, "type", "WhitespaceSplit only before Metaspace");
  result.whitespace_split = true;
}

void read_metaspace(const ConfigReader& part, TokenizerJson& result) {
  if (result.metaspace) refuse_second(part, "Metaspace");
  if (part.text({"replacement"}, "\u2581") != "\u2581")
    refuse_component(part, "replacement", "\"\u2581\"");
  const bool prefix = part.boolean({"add_prefix_space"}, true);
  const std::string scheme = part.text({"prepend_scheme"}, prefix ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    refuse_component(part, "prepend_scheme", "\"always\", \"first\" or \"never\"");
  result.metaspace = {.split_white_space = result.whitespace_split,
                      .first = scheme != "never",
                      .others = scheme == "always",
                      .split = part.boolean({"split"}, true)};
}

constexpr Component kPreTokenizers[] = {{"BertPreTokenizer", read_bert_words},
                                        {"ByteLevel", read_byte_level},
                                        {"Split", read_split},
                                        {"Digits", read_digits},
                                        {"WhitespaceSplit", read_whitespace_split},
                                        {"Metaspace", read_metaspace}};

/// Reads `part`, which is of one of the types in `known`, or a Sequence with a list of such parts
/// under `list`.
void read_component(const ConfigReader& part, std::string_view list,
                    std::span<const Component> known, TokenizerJson& result) {
  const std::string type = part.text({"type"}, "");
  if (type == "Sequence") {
    part.for_each_object(
        list, [&](const ConfigReader& step) { read_component(step, list, known, result); });
    return;
  }
  for (const Component& component : known) {
    if (component.type == type) return component.read(part, result);
  }
  std::string types = "Sequence";
  for (const Component& component : known) types += fmt::format(", {}", component.type);
  refuse_component(part, "type", types);
}

}  // namespace

std::string model_of_tokenizer_json(const ConfigReader& root) {
  const json* const model = root.value("model");
  if (model == nullptr || !model->is_object()) return {};
  const auto type = model->find("type");
  if (type != model->end() && type->is_binary()) root.object("model").text({"type"});  // NaN
  if (type != model->end()) return type->is_string() ? type->get<std::string>() : "";
  if (model->contains("max_input_chars_per_word")) return "WordPiece";  // files of 2020
  return model->contains("merges") ? "BPE" : "";
}

TokenizerJson read_tokenizer_json(const ConfigReader& root) {
  TokenizerJson result;
  const auto read = [&](std::string_view key, std::string_view list,
                        std::span<const Component> known) {
    if (root.has(key)) read_component(root.object(key), list, known, result);
  };
  read("normalizer", "normalizers", kNormalizers);
  read("pre_tokenizer", "pretokenizers", kPreTokenizers);
  read("post_processor", "processors", post_processors());
  result.added = read_added_tokens(root);
  if (root.has("truncation")) {
    const std::string side = root.object("truncation").text({"direction"}, "Right");
    if (side != "Right" && side != "Left")
      refuse_component(root.object("truncation"), "direction", "\"Right\" or \"Left\"");
    result.truncate_left = side == "Left";
  }
  return result;
}

std::vector<AddedToken> read_added_tokens(const ConfigReader& root) {
  std::vector<AddedToken> added;
  root.for_each_object("added_tokens", [&](const ConfigReader& entry) {
    added.push_back(read_added_token(entry, entry.integer({"id"}, 0, kMaxPieces - 1)));
  });
  return added;
}

PieceIds read_vocab_object(const ConfigReader& model) {
  const json* const vocab = model.value("vocab");
  if (vocab == nullptr || !vocab->is_object()) model.refuse("vocab", "an object {{\"piece\": id}}");
  const auto limit = static_cast<uint64_t>(id_limit(std::ssize(*vocab)));
  PieceIds pieces;
  pieces.reserve(vocab->size());
  for (const auto& [piece, id] : vocab->items()) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limit) {
      model.fail("vocab: {} is {}; it must be a whole number below {}, as there are {} pieces",
                 value_text(piece), value_text(id), limit, vocab->size());
    }
    pieces.emplace_back(piece, id.get<int32_t>());
  }
  return pieces;
}

CommonSpec common_spec(const std::string& file, const TokenizerSettings& settings,
                       const TokenizerJson& parts) {
  std::vector<NormalizerStep> steps = parts.steps;
  if (settings.lower_case) steps.insert(steps.begin(), in_lower_case);
  CommonSpec spec{.file = file,
                  .prefix = parts.prefix,
                  .suffix = parts.suffix,
                  .pair = parts.pair,
                  .added = settings.added,
                  .written = parts.added,
                  .truncate_left = settings.truncate_left.value_or(parts.truncate_left),
                  .trim_offsets = parts.trim_offsets,
                  .normalizer = in_order(std::move(steps), file)};
  for (const AddedToken& token : parts.added) {
    if (token.piece == "[MASK]" || token.piece == "<mask>") spec.mask = token.piece;
  }
  read_special(settings, "mask_token", spec.mask);
  return spec;
}

void check_named(const TokenizerJson& parts, const Tokenizer& tokenizer, const std::string& file) {
  for (const AddedToken& token : parts.named) {
    const auto id = static_cast<int32_t>(token.id);
    if (id < tokenizer.vocab_size() && tokenizer.piece(id) == token.piece) continue;
    refuse<ModelError>(
        "{}: post_processor gives {} the id {}, which is another piece's; get the file again", file,
        value_text(token.piece), id);
  }
}

void refuse_component(const ConfigReader& part, std::string_view key, std::string_view must_be) {
  const json* const value = part.value(key);
  part.fail(
      ErrorCode::kUnsupported,
      "{} is {}; phasor follows {}; or give token ids instead of text (infer --ids \"5 17 9\")",
      key, value == nullptr ? "missing" : value_text(*value), must_be);
}

}  // namespace phasor::internal
