// The only file that includes SentencePiece's header (which declares a namespace absl).
#include "tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "phasor/errors.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using sentencepiece::SentencePieceProcessor;

/// A private-use character in place of a special token; see encode_joined().
constexpr std::string_view kHole = "\xee\x80\x80";  // U+E000

std::unique_ptr<SentencePieceProcessor> load_processor(const SentencePieceSpec& spec,
                                                       const CheckedModel& model) {
  auto processor = std::make_unique<SentencePieceProcessor>();
  // SentencePiece's own message names a line of its source code, so it is not shown.
  if (!processor->LoadFromSerializedProto(model.bytes).ok()) {
    throw ModelError(fmt::format("{}: not a SentencePiece model ({} bytes); get the file again",
                                 spec.file, spec.model.size()));
  }
  if (processor->unk_id() < 0) {
    throw ModelError(fmt::format(
        "{}: trainer_spec.unk_piece names a piece that is not of the type UNKNOWN", spec.file));
  }
  return processor;
}

/// The pieces' ids and those of the special tokens.
Vocabulary make_vocabulary(const SentencePieceSpec& spec, const SentencePieceProcessor& processor) {
  Vocabulary vocabulary(spec.file);
  for (const auto& [piece, id] : spec.fixed) vocabulary.set(piece, id);
  if (spec.vocabulary) {
    vocabulary.reserve(std::ssize(*spec.vocabulary) + std::ssize(spec.added));
    // Backwards, so that the last of equal pieces counts.
    for (auto entry = spec.vocabulary->rbegin(); entry != spec.vocabulary->rend(); ++entry) {
      vocabulary.set(entry->first, entry->second);
    }
  } else {
    vocabulary.reserve(processor.GetPieceSize() + std::ssize(spec.written) +
                       std::ssize(spec.added));
    for (int n = 0; n < processor.GetPieceSize(); ++n) {
      vocabulary.set(processor.IdToPiece(n), int64_t{n} + spec.offset);
    }
  }
  for (const std::string& piece : spec.appended) vocabulary.append(piece);
  add_tokens(spec.written, vocabulary);
  add_fitting_tokens(spec.added, vocabulary);
  return vocabulary;
}

/// Cuts texts where SentencePiece would take too long: it makes one piece of a run of unknown
/// characters, in a time that grows with the square of its length after normalization. So a longer
/// word is cut: the tokens beside the cut may differ from those of the whole.
class WordLimit {
 public:
  WordLimit(const CheckedModel& model, const SentencePieceProcessor& processor)
      : most_(model.growth.most), greatest_(1 + *std::ranges::max_element(most_)) {
    const int space = processor.PieceToId("\xe2\x96\x81");
    // An unknown character like the others does not end their run.
    spaces_end_words_ = model.spaces_are_pieces && !model.growth.maps_space &&
                        !processor.IsUnknown(space) && !processor.IsControl(space) &&
                        !processor.IsUnused(space);
  }

  /// Where the first word of `text` that is too long is cut: before its last control character,
  /// which the model may take for a space, or else at any character; the end, where no word is too
  /// long.
  size_t end_of_part(std::string_view text) const {
    size_t word = 0, control = 0;  // where the word begins, and the last of these characters
    size_t cost = 0;               // the bytes of the word so far, if every rule applies
    for (size_t i = 0; cost + greatest_ * (text.size() - i) > kLongest && i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool begins_character = (byte & 0xC0) != 0x80;
      if (byte < ' ') control = i;
      if (cost >= kLongest && begins_character) return control > word ? control : i;
      const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
      cost += 1 + (begins_character ? most_[256 * size_t{byte} + next] : 0);
      if (byte != ' ' || !spaces_end_words_) continue;
      word = i + 1;
      cost = 0;
    }
    return text.size();
  }

 private:
  static constexpr size_t kLongest = size_t{1} << 16;  // bytes

  const std::vector<uint8_t> most_;  // CharsmapGrowth's
  const size_t greatest_;            // of a byte
  bool spaces_end_words_ = true;
};

/// The special tokens that are not added to every text.
std::vector<std::string> other_specials(const SentencePieceSpec& spec, const std::string& unk,
                                        const Vocabulary& vocabulary,
                                        const SentencePieceProcessor& processor) {
  std::vector<std::string> pieces = {unk, spec.mask, spec.pad};
  for (const auto& [piece, id] : spec.fixed) pieces.push_back(piece);
  pieces.insert(pieces.end(), spec.appended.begin(), spec.appended.end());
  for (int n = 0; n < processor.GetPieceSize(); ++n) {
    if (!processor.IsControl(n)) continue;
    const std::string& piece = processor.IdToPiece(n);
    if (vocabulary.lookup(piece)) pieces.push_back(piece);
  }
  return pieces;
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const SentencePieceSpec& spec, const CheckedModel& model);

  Tokens encode(std::string_view text, const TokenizeOptions& options) const override {
    return specials_.encode(text, options, part_encoder());
  }
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options) const override {
    return specials_.encode_pair(first, second, options, part_encoder());
  }
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t text_vocab_size() const override;
  std::string piece(int32_t id) const override { return vocabulary_.piece(id); }
  std::optional<int32_t> mask_id() const override { return mask_id_; }
  std::string description() const override { return description_; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  std::vector<int32_t> number_ids() const;
  int32_t id_of(std::string_view piece, int32_t number) const;
  sentencepiece::ImmutableSentencePieceText cut(std::string_view text) const;
  SpecialTokens::EncodePart part_encoder() const;
  void encode_part(std::string_view text, bool after_special, TokenList& tokens) const;
  void encode_rest_of_word(std::string_view text, TokenList& tokens) const;
  void encode_plain(std::string_view text, TokenList& tokens) const;
  void encode_joined(std::string_view text, TokenList& tokens) const;
  void encode_number_with_comma(std::string_view piece, TokenList& tokens) const;
  std::string_view take_language_code(std::string_view text, TokenList& tokens) const;
  void append(std::string_view piece, int32_t number, TokenList& tokens) const;

  const std::unique_ptr<SentencePieceProcessor> processor_;
  const WordLimit limit_;
  const std::string file_;
  const Vocabulary vocabulary_;
  const std::string unk_piece_;
  const int32_t unk_;
  const SpecialTokens specials_;
  const std::vector<int32_t> id_of_number_;  // by SentencePiece's own number
  const std::optional<int32_t> mask_id_;
  const std::optional<AlbertTextOptions> albert_;
  const Normalizer prepare_;
  const bool leading_language_code_;
  const bool new_word_after_special_;
  const bool has_vocabulary_;  // ids are from vocab.json
  const bool has_written_;     // some of them may be in plain text
  const std::string description_;
  const std::vector<std::string> notes_;
};

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceSpec& spec,
                                               const CheckedModel& model)
    : processor_(load_processor(spec, model)),
      limit_(model, *processor_),
      file_(spec.file),
      vocabulary_(make_vocabulary(spec, *processor_)),
      unk_piece_(spec.unk.empty() ? processor_->IdToPiece(processor_->unk_id()) : spec.unk),
      unk_(vocabulary_.find(unk_piece_)),
      specials_(vocabulary_, spec.prefix, spec.suffix,
                other_specials(spec, unk_piece_, vocabulary_, *processor_), spec.pair,
                all_added(spec.added, spec.written, vocabulary_), spec.normalizer,
                spec.truncate_left),
      id_of_number_(number_ids()),
      mask_id_(spec.mask.empty() ? std::nullopt : std::optional(vocabulary_.find(spec.mask))),
      albert_(spec.albert),
      prepare_(spec.prepare),
      leading_language_code_(spec.leading_language_code),
      new_word_after_special_(spec.new_word_after_special),
      has_vocabulary_(spec.vocabulary.has_value()),
      has_written_(!spec.written.empty() || !spec.added.empty()),
      description_(fmt::format("{} (SentencePiece, {})", spec.kind,
                               std::filesystem::path(spec.file).filename().string())),
      notes_(all_notes(spec.notes, spec.added, vocabulary_)) {}

std::vector<int32_t> SentencePieceTokenizer::number_ids() const {
  std::vector<int32_t> ids;
  ids.reserve(processor_->GetPieceSize());
  for (int n = 0; n < processor_->GetPieceSize(); ++n) {
    const bool unknown = n == processor_->unk_id();
    ids.push_back(unknown ? unk_ : vocabulary_.lookup(processor_->IdToPiece(n)).value_or(unk_));
  }
  return ids;
}

int64_t SentencePieceTokenizer::text_vocab_size() const {
  // All of vocab.json except the special tokens, which come last if they are in it; see id_of().
  const int64_t size = has_vocabulary_ || has_written_ ? specials_.text_size(vocabulary_) : 0;
  return std::max(size, int64_t{*std::ranges::max_element(id_of_number_)} + 1);
}

SpecialTokens::EncodePart SentencePieceTokenizer::part_encoder() const {
  return [this](std::string_view part, bool after_special, TokenList& tokens) {
    encode_part(prepare_ ? prepare_(part) : std::string(part), after_special, tokens);
  };
}

void SentencePieceTokenizer::encode_part(std::string_view text, bool after_special,
                                         TokenList& tokens) const {
  if (leading_language_code_ && !after_special) text = take_language_code(text, tokens);
  const std::string prepared = albert_ ? prepare_albert_text(text, *albert_) : "";
  if (albert_) text = prepared;
  const size_t end = limit_.end_of_part(text);
  if (!albert_ && after_special && !new_word_after_special_) {
    encode_joined(text.substr(0, end), tokens);
  } else {
    encode_plain(text.substr(0, end), tokens);
  }
  encode_rest_of_word(text.substr(end), tokens);
}

/// What follows a cut. A run of unknown characters stays one token.
void SentencePieceTokenizer::encode_rest_of_word(std::string_view text, TokenList& tokens) const {
  while (!text.empty()) {
    const size_t end = limit_.end_of_part(text), before = tokens.ids.size();
    encode_joined(text.substr(0, end), tokens);
    text.remove_prefix(end);
    if (before == 0 || before == tokens.ids.size()) continue;
    if (tokens.ids[before - 1] != unk_ || tokens.ids[before] != unk_) continue;
    tokens.ids.erase(tokens.ids.begin() + static_cast<int64_t>(before));
    if (tokens.ids_only) continue;
    if (!has_vocabulary_) tokens.pieces[before - 1] += tokens.pieces[before];
    tokens.pieces.erase(tokens.pieces.begin() + static_cast<int64_t>(before));
  }
}

std::string_view SentencePieceTokenizer::take_language_code(std::string_view text,
                                                            TokenList& tokens) const {
  const size_t end = text.find("<<");
  if (!text.starts_with(">>") || end == std::string_view::npos || end == 2) return text;
  const std::string_view code = text.substr(0, end + 2);
  const int32_t id = vocabulary_.lookup(code).value_or(unk_);
  tokens.append(id, vocabulary_.piece(id));
  return text.substr(code.size());
}

/// With ids from vocab.json, a piece unknown to SentencePiece may be in vocab.json, but not as a
/// special token.
int32_t SentencePieceTokenizer::id_of(std::string_view piece, int32_t number) const {
  if (!has_vocabulary_ || number != processor_->unk_id()) return id_of_number_[number];
  return specials_.contains(piece) ? unk_ : vocabulary_.lookup(piece).value_or(unk_);
}

void SentencePieceTokenizer::append(std::string_view piece, int32_t number,
                                    TokenList& tokens) const {
  const int32_t id = id_of(piece, number);
  const bool by_name = has_vocabulary_ && id == unk_;  // "<unk>" instead of the text's characters
  tokens.append(id, by_name ? unk_piece_ : piece);
}

sentencepiece::ImmutableSentencePieceText SentencePieceTokenizer::cut(std::string_view text) const {
  sentencepiece::ImmutableSentencePieceText encoded;
  const auto status = processor_->Encode(text, encoded.mutable_proto());
  if (!status.ok()) {
    throw ModelError(fmt::format("{}: SentencePiece cannot cut a text of {} bytes with this model",
                                 file_, text.size()));
  }
  return encoded;
}

void SentencePieceTokenizer::encode_plain(std::string_view text, TokenList& tokens) const {
  const auto encoded = cut(text);
  for (const auto& piece : encoded.pieces()) {
    if (albert_ && is_number_with_comma(piece.piece())) {
      encode_number_with_comma(piece.piece(), tokens);
    } else {
      append(piece.piece(), piece.id(), tokens);
    }
  }
}

/// Encodes "▁1999," as "▁1999" and then ",", because a piece for all of it would hide the number.
void SentencePieceTokenizer::encode_number_with_comma(std::string_view piece,
                                                      TokenList& tokens) const {
  constexpr std::string_view kSpace = "\xe2\x96\x81";  // U+2581, as SentencePiece writes a space
  const bool begins_word = piece.starts_with(kSpace);
  std::string_view number = piece.substr(0, piece.size() - 1);
  if (begins_word) number.remove_prefix(kSpace.size());
  const auto encoded = cut(number);
  bool first = true;
  for (const auto& part : encoded.pieces()) {
    std::string_view text = part.piece();
    int32_t id = part.id();
    // SentencePiece puts a space before every text; inside a word it is removed.
    if (std::exchange(first, false) && !begins_word && text.starts_with(kSpace)) {
      text.remove_prefix(kSpace.size());
      if (text.empty()) continue;
      id = processor_->PieceToId(text);
    }
    append(text, id, tokens);
  }
  append(",", processor_->PieceToId(","), tokens);
}

/// Encodes `text` as if it followed something in the same word, so that SentencePiece's space
/// before every text does not make "[MASK]." end with the piece "▁.".
void SentencePieceTokenizer::encode_joined(std::string_view text, TokenList& tokens) const {
  if (text.empty()) return;
  const auto encoded = cut(std::string(kHole) + std::string(text));
  bool past_hole = false;
  for (const auto& piece : encoded.pieces()) {
    // Consecutive unknown characters become one piece, which may begin with the hole.
    std::string_view rest = piece.piece();
    if (const size_t hole = past_hole ? rest.npos : rest.find(kHole); hole != rest.npos) {
      past_hole = true;
      rest.remove_prefix(hole + kHole.size());
      if (rest.empty()) continue;  // the hole, and characters that the model drops
    } else if (!past_hole && piece.end() <= kHole.size()) {
      continue;  // the space before the hole
    }
    append(rest, piece.id(), tokens);
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(const SentencePieceSpec& spec) {
  return std::make_shared<SentencePieceTokenizer>(
      spec, checked_sentencepiece_model(spec.model, spec.file));
}

}  // namespace phasor::internal
