#include "tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "phasor/errors.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/sentencepiece_library.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/unigram.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

using ModelPieces = std::vector<ModelPiece>;

/// The pieces' ids and those of the special tokens.
Vocabulary make_vocabulary(const SentencePieceSpec& spec, const ModelPieces& pieces) {
  Vocabulary vocabulary(spec.file);
  for (const auto& [piece, id] : spec.fixed) vocabulary.set(piece, id);
  if (spec.vocabulary) {
    vocabulary.reserve(std::ssize(*spec.vocabulary) + std::ssize(spec.added));
    // Backwards, so that the last of equal pieces counts.
    for (auto entry = spec.vocabulary->rbegin(); entry != spec.vocabulary->rend(); ++entry) {
      vocabulary.set(entry->first, entry->second);
    }
  } else {
    vocabulary.reserve(std::ssize(pieces) + std::ssize(spec.written) + std::ssize(spec.added));
    for (int64_t n = 0; n < std::ssize(pieces); ++n) {
      vocabulary.set(pieces[n].text, n + spec.offset);
    }
  }
  for (const std::string& piece : spec.appended) vocabulary.append(piece);
  add_tokens(spec.written, vocabulary);
  add_fitting_tokens(spec.added, vocabulary);
  return vocabulary;
}

/// The special tokens that are not added to every text.
std::vector<std::string> other_specials(const SentencePieceSpec& spec, const std::string& unk,
                                        const Vocabulary& vocabulary, const ModelPieces& model) {
  std::vector<std::string> pieces = {unk, spec.mask, spec.pad};
  for (const auto& [piece, id] : spec.fixed) pieces.push_back(piece);
  pieces.insert(pieces.end(), spec.appended.begin(), spec.appended.end());
  for (const ModelPiece& piece : model) {
    if (piece.type == ModelPiece::kControl && vocabulary.lookup(piece.text)) {
      pieces.emplace_back(piece.text);
    }
  }
  return pieces;
}

int32_t unknown_of(const ModelPieces& pieces) {
  return static_cast<int32_t>(std::ranges::find(pieces, ModelPiece::kUnknown, &ModelPiece::type) -
                              pieces.begin());
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(const SentencePieceSpec& spec, const ModelPieces& pieces,
                         std::unique_ptr<const PieceCutter> cutter);

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
  std::vector<int32_t> number_ids(const ModelPieces& pieces) const;
  int32_t id_of(std::string_view piece, int32_t number) const;
  SpecialTokens::EncodePart part_encoder() const;
  void encode_part(std::string_view text, bool after_special, TokenList& tokens) const;
  void encode_number_with_comma(std::string_view piece, TokenList& tokens) const;
  std::string_view take_language_code(std::string_view text, TokenList& tokens) const;
  void append(std::string_view piece, int32_t id, TokenList& tokens) const;

  const std::unique_ptr<const PieceCutter> cutter_;
  const Vocabulary vocabulary_;
  const int32_t unknown_;  // the number of the model's piece
  const std::string unk_piece_;
  const int32_t unk_;
  const SpecialTokens specials_;
  const std::vector<int32_t> id_of_number_;  // by the model's own number
  const std::optional<int32_t> mask_id_;
  const std::optional<AlbertTextOptions> albert_;
  const bool leading_language_code_;
  const bool new_word_after_special_;
  const bool has_vocabulary_;  // ids are from vocab.json
  const bool has_written_;     // some of them may be in plain text
  const std::string description_;
  const std::vector<std::string> notes_;
};

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceSpec& spec,
                                               const ModelPieces& pieces,
                                               std::unique_ptr<const PieceCutter> cutter)
    : cutter_(std::move(cutter)),
      vocabulary_(make_vocabulary(spec, pieces)),
      unknown_(unknown_of(pieces)),
      unk_piece_(spec.unk.empty() ? pieces[unknown_].text : spec.unk),
      unk_(vocabulary_.find(unk_piece_)),
      specials_(vocabulary_, spec.prefix, spec.suffix,
                other_specials(spec, unk_piece_, vocabulary_, pieces), spec.pair,
                all_added(spec.added, spec.written, vocabulary_), spec.normalizer,
                spec.truncate_left),
      id_of_number_(number_ids(pieces)),
      mask_id_(spec.mask.empty() ? std::nullopt : std::optional(vocabulary_.find(spec.mask))),
      albert_(spec.albert),
      leading_language_code_(spec.leading_language_code),
      new_word_after_special_(spec.new_word_after_special),
      has_vocabulary_(spec.vocabulary.has_value()),
      has_written_(!spec.written.empty() || !spec.added.empty()),
      description_(fmt::format("{} (SentencePiece, {})", spec.kind,
                               std::filesystem::path(spec.file).filename().string())),
      notes_(all_notes(spec.notes, spec.added, vocabulary_)) {}

std::vector<int32_t> SentencePieceTokenizer::number_ids(const ModelPieces& pieces) const {
  std::vector<int32_t> ids;
  ids.reserve(pieces.size());
  for (const ModelPiece& piece : pieces) {
    const bool unknown = piece.type == ModelPiece::kUnknown;
    ids.push_back(unknown ? unk_ : vocabulary_.lookup(piece.text).value_or(unk_));
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
    encode_part(part, after_special, tokens);
  };
}

void SentencePieceTokenizer::encode_part(std::string_view text, bool after_special,
                                         TokenList& tokens) const {
  if (leading_language_code_ && !after_special) text = take_language_code(text, tokens);
  const size_t most = most_normalized(text.size());
  const std::string prepared = albert_ ? prepare_albert_text(text, *albert_) : "";
  if (albert_) text = prepared;
  const bool joined = !albert_ && after_special && !new_word_after_special_;
  cutter_->cut(text, joined, most, [&](std::string_view piece, int32_t number) {
    if (albert_ && is_number_with_comma(piece)) return encode_number_with_comma(piece, tokens);
    append(piece, id_of(piece, number), tokens);
  });
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
  if (!has_vocabulary_ || number != unknown_) return id_of_number_[number];
  return specials_.contains(piece) ? unk_ : vocabulary_.lookup(piece).value_or(unk_);
}

void SentencePieceTokenizer::append(std::string_view piece, int32_t id, TokenList& tokens) const {
  const bool by_name = has_vocabulary_ && id == unk_;  // "<unk>" instead of the text's characters
  tokens.append(id, by_name ? unk_piece_ : piece);
}

/// Encodes "▁1999," as "▁1999" and then ",", because a piece for all of it would hide the number.
void SentencePieceTokenizer::encode_number_with_comma(std::string_view piece,
                                                      TokenList& tokens) const {
  const bool begins_word = piece.starts_with(kSpaceMark);
  std::string_view number = piece.substr(0, piece.size() - 1);
  if (begins_word) number.remove_prefix(kSpaceMark.size());
  bool first = true;
  cutter_->cut(number, false, most_normalized(number.size()),
               [&](std::string_view text, int32_t part) {
                 int32_t id = id_of(text, part);
                 // SentencePiece puts a space before every text; inside a word it is removed.
                 if (std::exchange(first, false) && !begins_word && text.starts_with(kSpaceMark)) {
                   text.remove_prefix(kSpaceMark.size());
                   if (text.empty()) return;
                   id = vocabulary_.lookup(text).value_or(unk_);
                 }
                 append(text, id, tokens);
               });
  append(",", vocabulary_.lookup(",").value_or(unk_), tokens);
}

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(const SentencePieceSpec& spec) {
  const CheckedModel model = checked_sentencepiece_model(spec.model, spec.file);
  return make_sentencepiece_tokenizer(
      spec, model.pieces,
      model.type == CheckedModel::kUnigram
          ? make_unigram_cutter(model.pieces, model.rules, model.byte_fallback)
          : make_library_cutter(model, spec.file));
}

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(
    const SentencePieceSpec& spec, const std::vector<ModelPiece>& pieces,
    std::unique_ptr<const PieceCutter> cutter) {
  return std::make_shared<SentencePieceTokenizer>(spec, pieces, std::move(cutter));
}

}  // namespace phasor::internal
