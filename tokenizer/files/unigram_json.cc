#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "files/files.h"
#include "phasor/errors.h"
#include "tokenizer/files/readers.h"
#include "tokenizer/files/tokenizer_json.h"
#include "tokenizer/seeded_hash.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/sentencepiece_tokenizer.h"
#include "tokenizer/unigram.h"

namespace phasor::internal {
namespace {

using nlohmann::json;

/// The pieces, with their scores: [["<unk>", 0], ["\u2581the", -3.1], …].
std::vector<ModelPiece> read_pieces(const ConfigReader& model, const json& vocab, size_t unk_id,
                                    const TokenizerJson& parts, const std::string& file) {
  std::set<std::string_view> special;
  std::unordered_set<std::string_view, SeededHash> known;
  for (const AddedToken& token : parts.added) {
    if (token.special) special.insert(token.piece);
  }
  std::vector<ModelPiece> pieces;
  size_t total_bytes = 0;
  for (size_t id = 0; id < vocab.size(); ++id) {
    const json& entry = vocab[id];
    const bool good =
        entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!good)
      model.fail("vocab: entry {} is {}; it must be [\"piece\", score]", id, value_text(entry));
    const auto& piece = entry[0].get_ref<const std::string&>();
    check_length(piece, file);
    if ((total_bytes += piece.size()) > PieceTrie::kMostBytes)
      model.fail("vocab: its pieces have more than {} bytes together", PieceTrie::kMostBytes);
    if (!known.insert(piece).second)
      model.fail("vocab: entry {} is {}, as an earlier one", id, value_text(piece));
    const auto score = entry[1].get<double>();
    if (!std::isfinite(static_cast<float>(score))) {
      model.fail("vocab: entry {} has the score {}; it must be that of a float", id,
                 value_text(entry[1]));
    }
    pieces.push_back({.text = piece,
                      .score = score,
                      .type = id == unk_id              ? ModelPiece::kUnknown
                              : special.contains(piece) ? ModelPiece::kControl
                                                        : ModelPiece::kNormal});
  }
  return pieces;
}

/// The pieces that texts are cut into, with their scores, in one order.
std::vector<std::pair<std::string_view, float>> sorted(std::span<const ModelPiece> pieces) {
  std::vector<std::pair<std::string_view, float>> all;
  for (const ModelPiece& piece : pieces) {
    if (piece.is_in_text()) all.emplace_back(piece.text, static_cast<float>(piece.score));
  }
  std::ranges::sort(all);
  return all;
}

/// Whether `pieces` are those of the SentencePiece model in `file`, if it is there, and perhaps
/// more.
bool same_pieces(const ModelPath& file, std::span<const ModelPiece> pieces) {
  if (!is_file(file)) return true;
  try {
    const std::string bytes = read_model_file(file);
    const auto other = sorted(checked_sentencepiece_model(bytes, file.string()).pieces);
    return std::ranges::includes(sorted(pieces), other);
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
  if (!parts.metaspace || parts.bert_words || parts.byte_level || !parts.splits.empty())
    refuse_component(reader, "pre_tokenizer", "Metaspace in Unigram");
  if (parts.bert) refuse_component(reader, "normalizer", "no BertNormalizer in Unigram");
  const ConfigReader model = reader.object("model");
  if (model.boolean({"byte_fallback"}, false)) refuse_component(model, "byte_fallback", "false");
  const json* const vocab = model.value("vocab");
  if (vocab == nullptr || !vocab->is_array() || vocab->empty())
    model.refuse("vocab", "a list [[\"piece\", score], …], as Unigram has it");
  const auto last = std::ssize(*vocab) - 1;
  if (!model.has("unk_id")) refuse_component(model, "unk_id", "an id");
  const auto unk_id = static_cast<size_t>(model.integer({"unk_id"}, 0, last));

  const MetaspaceRules metaspace = *parts.metaspace;
  if (!metaspace.others && metaspace.split_white_space)
    refuse_component(reader, "pre_tokenizer", "prepend_scheme \"always\" there");

  SentencePieceSpec spec{.kind = "Unigram",
                         .new_word_after_special = metaspace.others || !metaspace.first,
                         .common = common_spec(file, settings, parts)};
  const std::vector<ModelPiece> pieces = read_pieces(model, *vocab, unk_id, parts, file);
  if (metaspace.first && !settings.config.boolean({"add_prefix_space"}, true)) {
    spec.common.notes.push_back(
        "tokenizer_config.json's add_prefix_space is false and tokenizer.json adds one, which is "
        "followed");
  }
  if (!same_pieces(folder.path() / model_file, pieces)) {
    spec.common.notes.push_back(
        fmt::format("{} has other pieces than tokenizer.json, which is followed", model_file));
  }
  const auto tokenizer =
      make_sentencepiece_tokenizer(spec, pieces, make_metaspace_cutter(pieces, metaspace));
  check_named(parts, *tokenizer, file);
  return tokenizer;
}

}  // namespace phasor::internal
