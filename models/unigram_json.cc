// Writes sentencepiece_model.proto byte by byte, because libsentencepiece installs no header for
// it.
#include "models/unigram_json.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/files.h"
#include "models/tokenizer_json.h"
#include "phasor/errors.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/sentencepiece_tokenizer.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

constexpr std::string_view kMetaspace = "\u2581";

/// Types of pieces in sentencepiece_model.proto.
enum ProtoType : uint64_t {
  kProtoNormal = 1,
  kProtoUnknown = 2,
  kProtoControl = 3,
  kProtoUnused = 5
};

void append_varint(uint64_t value, std::string& message) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}

void append_number(uint64_t field, uint64_t value, std::string& message) {
  append_varint(field << 3, message);
  append_varint(value, message);
}

void append_bytes(uint64_t field, std::string_view bytes, std::string& message) {
  append_varint(field << 3 | 2, message);
  append_varint(bytes.size(), message);
  message += bytes;
}

void append_float(uint64_t field, float value, std::string& message) {
  append_varint(field << 3 | 5, message);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(bits >> shift);
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  }
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int8_t value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count);
  }
  return bytes;
}

/// The rules of the normalizer and how spaces are treated: NormalizerSpec.
std::string normalizer_spec(const ConfigReader& root, const TokenizerJson& parts,
                            bool add_dummy_prefix, bool remove_extra_whitespaces) {
  std::string spec;
  const std::optional<std::string> charsmap = from_base64(parts.charsmap.value_or(""));
  if (!charsmap) root.fail("normalizer: precompiled_charsmap is not base64");
  append_bytes(1, "tokenizer.json", spec);
  append_bytes(2, *charsmap, spec);
  append_number(3, add_dummy_prefix ? 1 : 0, spec);
  append_number(4, remove_extra_whitespaces ? 1 : 0, spec);
  append_number(5, 1, spec);  // a space is written as U+2581
  return spec;
}

/// The pieces, with their scores: [["<unk>", 0], ["\u2581the", -3.1], …].
std::string pieces_message(const ConfigReader& model, const json& vocab, size_t unk_id,
                           const TokenizerJson& parts) {
  std::set<std::string_view> special;
  for (const AddedToken& token : parts.added) {
    if (token.special) special.insert(token.piece);
  }
  std::string message;
  for (size_t id = 0; id < vocab.size(); ++id) {
    const json& entry = vocab[id];
    const bool good =
        entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!good) {
      model.fail(fmt::format("vocab: entry {} is {}; it must be [\"piece\", score]", id,
                             value_text(entry)));
    }
    const auto& piece = entry[0].get_ref<const std::string&>();
    // What crosses words is found in no word.
    const bool crosses = parts.metaspace->split && piece.find(kMetaspace, 1) != piece.npos;
    std::string item;
    append_bytes(1, piece, item);
    append_float(2, entry[1].get<float>(), item);
    append_number(3,
                  id == unk_id              ? kProtoUnknown
                  : special.contains(piece) ? kProtoControl
                  : crosses                 ? kProtoUnused
                                            : kProtoNormal,
                  item);
    append_bytes(1, item, message);
  }
  return message;
}

std::string with_leading_space(std::string_view text) {
  const bool has_one = text.empty() || text.front() == ' ' || text.starts_with(kMetaspace);
  return fmt::format("{}{}", has_one ? "" : " ", text);
}

/// Whether the SentencePiece model in `file`, if it is there, has the pieces and scores of `spec`.
bool same_pieces(const std::filesystem::path& file, const SentencePieceSpec& spec) {
  if (!is_file(file)) return true;
  try {
    return checked_sentencepiece_model(read_model_file(file), file.string()).pieces ==
           checked_sentencepiece_model(spec.model, spec.file).pieces;
  } catch (const ModelError&) {
    return false;
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> load_unigram_json(ModelFolder& folder,
                                                   const TokenizerSettings& settings,
                                                   const std::string& model_file) {
  const ConfigReader reader = folder.object(kTokenizerJson);
  const std::string& file = reader.where();
  const TokenizerJson parts = read_tokenizer_json(reader);
  if (!parts.metaspace || parts.bert_words || parts.byte_level || parts.gpt2_split) {
    refuse_component(reader, "pre_tokenizer", "Metaspace in Unigram");
  }
  if (parts.bert) refuse_component(reader, "normalizer", "no BertNormalizer in Unigram");
  const ConfigReader model = reader.object("model");
  if (model.boolean({"byte_fallback"}, false)) refuse_component(model, "byte_fallback", "false");
  const json* const vocab = model.value("vocab");
  if (vocab == nullptr || !vocab->is_array() || vocab->empty()) {
    model.refuse("vocab", "a list [[\"piece\", score], …], as Unigram has it");
  }
  const auto last = std::ssize(*vocab) - 1;
  if (!model.has("unk_id")) refuse_component(model, "unk_id", "an id");
  const auto unk_id = static_cast<size_t>(model.integer({"unk_id"}, 0, last));

  // SentencePiece removes spaces at both ends where it makes one of several.
  const bool collapse = parts.collapse_spaces || parts.whitespace_split;
  const auto [first, others, split] = *parts.metaspace;
  if (!others && (parts.whitespace_split || (first && !collapse))) {
    refuse_component(reader, "pre_tokenizer", "prepend_scheme \"always\" there");
  }

  SentencePieceSpec spec{.kind = "Unigram",
                         .file = file,
                         .prefix = parts.prefix,
                         .suffix = parts.suffix,
                         .pair = parts.pair,
                         .mask = mask_of(settings, parts),
                         .new_word_after_special = others || !first,
                         .added = settings.added,
                         .written = parts.added,
                         .truncate_left = cuts_left(settings, parts),
                         .normalizer = in_order(steps_of(settings, parts), file)};
  if (parts.whitespace_split) spec.prepare = with_plain_spaces;
  if (first && !collapse) spec.prepare = with_leading_space;
  spec.model = pieces_message(model, *vocab, unk_id, parts);
  std::string trainer;
  append_number(3, 1, trainer);  // the model's type: unigram
  append_bytes(45, (*vocab)[unk_id][0].get_ref<const std::string&>(), trainer);
  append_bytes(2, trainer, spec.model);
  append_bytes(3, normalizer_spec(reader, parts, first && collapse, collapse), spec.model);
  if (!same_pieces(folder.path() / model_file, spec)) {
    spec.notes.push_back(
        fmt::format("{} has other pieces than tokenizer.json, which is followed", model_file));
  }
  const auto tokenizer = make_sentencepiece_tokenizer(spec);
  check_named(parts, *tokenizer, file);
  return tokenizer;
}

}  // namespace phasor::internal
