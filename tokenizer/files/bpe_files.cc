#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "tokenizer/byte_level_bpe.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_json.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using MergeList = std::vector<std::pair<std::string, std::string>>;

/// Splits "a b".
bool append_merge(std::string_view line, MergeList& merges) {
  const size_t space = line.find(' ');
  if (space == 0 || space >= line.size() - 1 || line.find(' ', space + 1) != line.npos)
    return false;
  merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  return true;
}

/// A merge in each line, after a line "#version: …".
MergeList read_merges_txt(const ModelPath& file) {
  MergeList merges;
  for_each_line(file, [&](std::string_view line, int64_t number) {
    if (line.empty() || line.starts_with("#version") || append_merge(line, merges)) return;
    refuse<ModelError>(
        "{}: line {} is {}; it must be two pieces with a space between them; get the file again",
        file.string(), number, value_text(std::string(line)));
  });
  return merges;
}

/// The model's "merges": ["a b", …] or [["a", "b"], …].
MergeList read_merges(const ConfigReader& model) {
  const json* const list = model.value("merges");
  if (list == nullptr || !list->is_array()) model.refuse("merges", "a list");
  MergeList merges;
  for (const json& merge : *list) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    if (is_pair) {
      merges.emplace_back(merge[0], merge[1]);
    } else if (!merge.is_string() || !append_merge(merge.get_ref<const std::string&>(), merges)) {
      model.fail("merge {} is {}; it must be \"a b\" or [\"a\", \"b\"]", merges.size() + 1,
                 value_text(merge));
    }
  }
  return merges;
}

std::shared_ptr<const SplitPattern> gpt2_split() {
  static const auto pattern = std::make_shared<const SplitPattern>(kGpt2Pattern);
  return pattern;
}

/// Options that change the ids and that phasor does not follow.
void refuse_options(const ConfigReader& model) {
  for (const char* const key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text({key}, "").empty()) refuse_component(model, key, "\"\"");
  }
  const json* const dropout = model.value("dropout");
  if (dropout != nullptr && *dropout != 0) refuse_component(model, "dropout", "null");
}

/// The older files of the same tokenizer, where they say something else.
void note_other_files(const ModelPath& folder, ByteLevelBpeSpec& spec) {
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt";
  const auto sorted = [](PieceIds pieces) {
    std::ranges::sort(pieces);
    return pieces;
  };
  bool same = true;
  try {
    if (is_file(vocab)) same = sorted(read_vocab_json(vocab)) == sorted(spec.pieces);
    if (is_file(merges)) same = same && read_merges_txt(merges) == spec.merges;
  } catch (const ModelError&) {
    same = false;
  }
  if (same) return;
  spec.common.notes.push_back(
      "vocab.json or merges.txt differs from tokenizer.json, which is followed");
}

/// RoBERTa's class has an option of its own, which is false where tokenizer_config.json lacks it.
/// Where no class is named, tokenizer.json says it.
bool adds_prefix_space(ModelFolder& folder, const TokenizerSettings& settings,
                       const TokenizerJson& parts) {
  const bool own = parts.byte_level->add_prefix_space;
  if (settings.follows_json) return own;
  const std::string& name = settings.tokenizer_class;
  const std::string type = folder.object("config.json").text({"model_type"}, "");
  const bool by_class = name == "RobertaTokenizer" || name == "BartTokenizer" ||
                        (name.empty() && (type == "roberta" || type == "bart"));
  return settings.config.boolean({"add_prefix_space"}, own && !by_class);
}

}  // namespace

std::shared_ptr<const Tokenizer> load_bpe_json(ModelFolder& folder,
                                               const TokenizerSettings& settings) {
  const ConfigReader reader = folder.object(kTokenizerJson);
  const std::string& file = reader.where();
  const TokenizerJson parts = read_tokenizer_json(reader);
  const bool of_characters = !parts.byte_level && (parts.replaces_spaces || parts.metaspace);
  const bool others = parts.bert_words || (parts.whitespace_split && !parts.metaspace) ||
                      (parts.metaspace && (parts.byte_level || !parts.splits.empty()));
  if (others || (!parts.byte_level && !of_characters)) {
    refuse_component(reader, "pre_tokenizer",
                     "in BPE ByteLevel, or Metaspace alone, or none and a normalizer that replaces "
                     "spaces");
  }
  if (parts.bert || parts.charsmap)
    refuse_component(reader, "normalizer", "no BertNormalizer and no Precompiled in BPE");
  const bool add_prefix_space = !of_characters && adds_prefix_space(folder, settings, parts);
  if (!parts.splits.empty() && add_prefix_space)
    refuse_component(reader, "pre_tokenizer", "no add_prefix_space after a Split");
  const ConfigReader model = reader.object("model");
  refuse_options(model);
  ByteLevelBpeSpec spec{.pieces = read_vocab_object(model),
                        .merges_file = file,
                        .merges = read_merges(model),
                        .ignore_merges = model.boolean({"ignore_merges"}, false),
                        .add_prefix_space = add_prefix_space,
                        .splits = parts.splits,
                        .metaspace = parts.metaspace,
                        .unk = model.text({"unk_token"}, ""),
                        .of_characters = of_characters,
                        .byte_fallback = model.boolean({"byte_fallback"}, false),
                        .fuses_unk = model.boolean({"fuse_unk"}, false),
                        .common = common_spec(file, settings, parts)};
  if (!of_characters && parts.byte_level->split_words) spec.splits.push_back(gpt2_split());
  if (!of_characters && (spec.byte_fallback || spec.fuses_unk)) {
    refuse_component(model, spec.byte_fallback ? "byte_fallback" : "fuse_unk",
                     "false where bytes are merged");
  }
  note_other_files(folder.path(), spec);
  const auto tokenizer = make_byte_level_bpe(spec);
  check_named(parts, *tokenizer, file);
  return tokenizer;
}

std::shared_ptr<const Tokenizer> load_bpe(const ModelPath& folder,
                                          const TokenizerSettings& settings) {
  const fs::path vocab = folder / "vocab.json", merges = folder / "merges.txt";
  SpecialNames names{.cls = "<s>", .sep = "</s>", .unk = "<unk>", .pad = "<pad>", .mask = "<mask>"};
  read_specials(settings, names);
  ByteLevelBpeSpec spec{.pieces = read_vocab_json(vocab),
                        .merges_file = merges.string(),
                        .merges = read_merges_txt(merges),
                        .add_prefix_space = settings.config.boolean({"add_prefix_space"}, false),
                        .splits = {gpt2_split()},
                        .common = common_spec(vocab.string(), settings, {})};
  CommonSpec& common = spec.common;
  common.prefix = {names.cls};
  common.suffix = {names.sep};
  common.pair = roberta_pair(names.cls, names.sep);
  common.mask = names.mask;
  common.trim_offsets = true;
  for (const std::string& special : {names.cls, names.sep, names.unk, names.pad, names.mask}) {
    const bool known = std::ranges::count(common.written, special, &AddedToken::piece) > 0;
    const auto entry = std::find_if(spec.pieces.rbegin(), spec.pieces.rend(),  // the last counts
                                    [&](const auto& piece) { return piece.first == special; });
    if (known || entry == spec.pieces.rend()) continue;
    common.written.push_back(
        {.piece = special, .id = entry->second, .lstrip = special == names.mask});
  }
  return make_byte_level_bpe(spec);
}

}  // namespace phasor::internal
