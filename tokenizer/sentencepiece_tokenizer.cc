#include "tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "files/utf8.h"
#include "tokenizer/model_tokenizer.h"
#include "tokenizer/sentencepiece_check.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unigram.h"

namespace phasor::internal {
namespace {

using ModelPieces = std::vector<ModelPiece>;

/// The pieces' ids and those of the special tokens.
Vocabulary make_vocabulary(const SentencePieceSpec& spec, const ModelPieces& pieces) {
  const CommonSpec& common = spec.common;
  Vocabulary vocabulary(common.file);
  for (const auto& [piece, id] : spec.fixed) vocabulary.set(piece, id);
  if (spec.vocabulary) {
    vocabulary.reserve(std::ssize(*spec.vocabulary) + std::ssize(common.added));
    vocabulary.set_all(*spec.vocabulary);
  } else {
    vocabulary.reserve(std::ssize(pieces) + std::ssize(common.written) + std::ssize(common.added));
    for (int64_t n = 0; n < std::ssize(pieces); ++n) {
      vocabulary.set(pieces[n].text, n + spec.offset);
    }
  }
  for (const std::string& piece : spec.appended) vocabulary.append(piece);
  add_tokens(common.written, vocabulary);
  add_fitting_tokens(common.added, vocabulary);
  return vocabulary;
}

/// The special tokens that are not added to every text.
std::vector<std::string> other_specials(const SentencePieceSpec& spec, const std::string& unk,
                                        const Vocabulary& vocabulary, const ModelPieces& model) {
  std::vector<std::string> pieces = {unk, spec.common.mask, spec.pad};
  for (const auto& [piece, id] : spec.fixed) pieces.push_back(piece);
  pieces.insert(pieces.end(), spec.appended.begin(), spec.appended.end());
  for (const ModelPiece& piece : model) {
    if (piece.type == ModelPiece::kControl && vocabulary.lookup(piece.text)) {
      pieces.emplace_back(piece.text);
    }
  }
  return pieces;
}

/// Whether ALBERT's class splits this piece again before its comma: "9," and "▁1999,".
bool is_number_with_comma(std::string_view piece) {
  if (!piece.ends_with(',')) return false;
  char32_t before = 0;
  for (piece.remove_suffix(1); !piece.empty();) before = take_character(piece);
  return is_decimal_digit(before);
}

int32_t unknown_of(const ModelPieces& pieces) {
  return static_cast<int32_t>(std::ranges::find(pieces, ModelPiece::kUnknown, &ModelPiece::type) -
                              pieces.begin());
}

class SentencePieceTokenizer : public ModelTokenizer {
 public:
  SentencePieceTokenizer(const SentencePieceSpec& spec, const std::string& unk,
                         Vocabulary&& vocabulary, const ModelPieces& pieces,
                         std::unique_ptr<const PieceCutter> cutter)
      : ModelTokenizer(spec.common, std::move(vocabulary),
                       other_specials(spec, unk, vocabulary, pieces),
                       fmt::format("{} (SentencePiece, {})", spec.kind, file_name(spec.common))),
        cutter_(std::move(cutter)),
        unknown_(unknown_of(pieces)),
        unk_piece_(unk),
        unk_(vocabulary_.find(unk)),
        id_of_number_(number_ids(pieces)),
        albert_(spec.albert),
        leading_language_code_(spec.leading_language_code),
        new_word_after_special_(spec.new_word_after_special),
        has_vocabulary_(spec.vocabulary.has_value()),
        has_written_(!spec.common.written.empty() || !spec.common.added.empty()) {}

  int64_t text_vocab_size() const override {
    // All of vocab.json except the special tokens, which come last if they are in it; see id_of().
    const int64_t size = has_vocabulary_ || has_written_ ? specials_.text_size(vocabulary_) : 0;
    return std::max(size, int64_t{*std::ranges::max_element(id_of_number_)} + 1);
  }

  std::optional<int32_t> unknown_id() const override { return unk_; }

 private:
  std::vector<int32_t> number_ids(const ModelPieces& pieces) const {
    std::vector<int32_t> ids;
    ids.reserve(pieces.size());
    for (const ModelPiece& piece : pieces) {
      const bool unknown = piece.type == ModelPiece::kUnknown;
      ids.push_back(unknown ? unk_ : vocabulary_.model_id(piece.text).value_or(unk_));
    }
    return ids;
  }

  /// With ids from vocab.json, a piece unknown to SentencePiece may be in vocab.json, but not as a
  /// special token.
  int32_t id_of(std::string_view piece, int32_t number) const {
    if (!has_vocabulary_ || number != unknown_) return id_of_number_[number];
    return specials_.contains(piece) ? unk_ : vocabulary_.model_id(piece).value_or(unk_);
  }

  SpecialTokens::EncodePart part_encoder() const override {
    return [this](const AlignedView& part, bool after_special, TokenList& tokens) {
      const bool has_code = leading_language_code_ && !after_special;
      const AlignedView text = has_code ? take_language_code(part, tokens) : part;
      const size_t most = most_normalized(text.text.size());
      const bool joined = !albert_ && after_special && !new_word_after_special_;
      const auto visit = [&](const AlignedView& piece, int32_t number) {
        const bool splits = albert_ && is_number_with_comma(piece.text);
        if (splits) return encode_number_with_comma(piece, tokens);
        append(piece, id_of(piece.text, number), tokens);
      };
      if (albert_) return cutter_->cut(prepare_albert_text(text, *albert_), joined, most, visit);
      cutter_->cut(text, joined, most, visit);
    };
  }

  /// Encodes "▁1999," as "▁1999" and then ",", because a piece for all of it would hide the number.
  void encode_number_with_comma(const AlignedView& piece, TokenList& tokens) const {
    const size_t comma = piece.text.size() - 1;
    const bool begins_word = piece.text.starts_with(kSpaceMark);
    const size_t begin = begins_word ? kSpaceMark.size() : 0;
    bool first = true;
    cutter_->cut(piece.substr(begin, comma - begin), false, most_normalized(comma),
                 [&](AlignedView text, int32_t part) {
                   int32_t id = id_of(text.text, part);
                   // SentencePiece puts a space before every text; inside a word it is removed.
                   const bool is_first = std::exchange(first, false);
                   if (is_first && !begins_word && text.text.starts_with(kSpaceMark)) {
                     text = text.substr(kSpaceMark.size());
                     if (text.text.empty()) return;
                     id = vocabulary_.model_id(text.text).value_or(unk_);
                   }
                   append(text, id, tokens);
                 });
    append(piece.substr(comma), vocabulary_.model_id(",").value_or(unk_), tokens);
  }

  AlignedView take_language_code(const AlignedView& text, TokenList& tokens) const {
    const size_t end = text.text.find("<<");
    if (!text.text.starts_with(">>") || end == std::string_view::npos || end == 2) return text;
    const AlignedView code = text.substr(0, end + 2);
    const int32_t id = vocabulary_.lookup(code.text).value_or(unk_);
    tokens.append(id, vocabulary_.piece(id), code);
    return text.substr(end + 2);
  }

  void append(const AlignedView& piece, int32_t id, TokenList& tokens) const {
    const bool by_name = has_vocabulary_ && id == unk_;  // "<unk>" instead of the text's characters
    tokens.append(id, by_name ? unk_piece_ : piece.text, piece);
  }

  const std::unique_ptr<const PieceCutter> cutter_;
  const int32_t unknown_;  // the number of the model's piece
  const std::string unk_piece_;
  const int32_t unk_;
  const std::vector<int32_t> id_of_number_;  // by the model's own number
  const std::optional<AlbertTextOptions> albert_;
  const bool leading_language_code_;
  const bool new_word_after_special_;
  const bool has_vocabulary_;  // ids are from vocab.json
  const bool has_written_;     // some of them may be in plain text
};

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(const SentencePieceSpec& spec) {
  const CheckedModel model = checked_sentencepiece_model(spec.model, spec.common.file);
  return make_sentencepiece_tokenizer(
      spec, model.pieces,
      model.type == CheckedModel::kUnigram
          ? make_unigram_cutter(model.pieces, model.rules, model.byte_fallback)
          : make_library_cutter(model, spec.common.file));
}

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(
    const SentencePieceSpec& spec, const std::vector<ModelPiece>& pieces,
    std::unique_ptr<const PieceCutter> cutter) {
  const std::string unk =
      spec.unk.empty() ? std::string(pieces[unknown_of(pieces)].text) : spec.unk;
  return std::make_shared<SentencePieceTokenizer>(spec, unk, make_vocabulary(spec, pieces), pieces,
                                                  std::move(cutter));
}

}  // namespace phasor::internal
