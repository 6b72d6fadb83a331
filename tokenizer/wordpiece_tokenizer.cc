// Greedy longest match from the front of each word, without an allocation per attempt.
#include "tokenizer/wordpiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "files/utf8.h"
#include "tokenizer/longest_prefix.h"
#include "tokenizer/model_tokenizer.h"

namespace phasor::internal {
namespace {

/// In bytes. Pieces up to this length are looked up one length at a time.
constexpr size_t kShortPiece = 64;

PieceIds long_pieces(const WordPieceSpec& spec, const Vocabulary& vocabulary) {
  PieceIds pieces;
  for (const auto& [piece, id] : spec.pieces) {
    if (piece.size() > kShortPiece) pieces.emplace_back(piece, vocabulary.find(piece));
  }
  return pieces;
}

/// Words are normalized as they are cut; the text before that only to find added tokens in it.
CommonSpec with_normalizer(const WordPieceSpec& spec) {
  CommonSpec common = spec.common;
  common.normalizer = nullptr;
  if (std::ranges::any_of(common.written, &AddedToken::normalized) ||
      std::ranges::any_of(common.added, &AddedToken::normalized)) {
    common.normalizer = [words = spec.words](const AlignedView& text) {
      return bert_normalized(text, words);
    };
  }
  return common;
}

/// The special tokens that are in the vocabulary.
std::vector<std::string> specials_in(const Vocabulary& vocabulary, const WordPieceSpec& spec) {
  std::vector<std::string> pieces = {spec.unk, spec.common.mask, spec.pad};
  std::erase_if(pieces, [&](const std::string& piece) { return !vocabulary.lookup(piece); });
  return pieces;
}

class WordPieceTokenizer : public ModelTokenizer {
 public:
  WordPieceTokenizer(const WordPieceSpec& spec, Vocabulary&& vocabulary)
      : ModelTokenizer(with_normalizer(spec), std::move(vocabulary), specials_in(vocabulary, spec),
                       fmt::format("{} (WordPiece, {}, {})", spec.kind, file_name(spec.common),
                                   spec.words.lower_case ? "lower case" : "cased")),
        long_pieces_(long_pieces(spec, vocabulary_)),
        words_(spec.words),
        continuation_(spec.continuation),
        max_word_length_(spec.max_word_length),
        unk_(vocabulary_.find(spec.unk)) {}

  std::optional<int32_t> unknown_id() const override { return unk_; }

  /// In Transformers, a pair with an empty second text is the first alone.
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options) const override {
    return second.empty() ? encode(first, options)
                          : ModelTokenizer::encode_pair(first, second, options);
  }

 private:
  SpecialTokens::EncodePart part_encoder() const override {
    return [this, rest = std::string()](const AlignedView& part, bool, TokenList& tokens) mutable {
      for_each_bert_word(part, words_, [&](const AlignedView& word, int64_t num_characters) {
        append_word(word, num_characters, rest, tokens);
      });
    };
  }

  /// `rest` is scratch space.
  void append_word(const AlignedView& word, int64_t num_characters, std::string& rest,
                   TokenList& tokens) const {
    if (num_characters > max_word_length_) return append_at(0, unk_, word, tokens);
    const size_t before = tokens.ids.size();
    rest = word.text;
    size_t prefix = 0;  // bytes of rest that are the continuation mark
    while (rest.size() > prefix) {
      const Match match = longest_match(rest, prefix);
      if (match.size == 0) {
        tokens.resize(before);
        return append_at(0, unk_, word, tokens);
      }
      const size_t begin = word.text.size() - (rest.size() - prefix);
      append_at(prefix, match.id, word.substr(begin, match.size - prefix), tokens);
      rest.replace(0, match.size, continuation_);
      prefix = continuation_.size();
    }
  }

  /// `prefix`: above 0 where the token goes on a word.
  void append_at(size_t prefix, int32_t id, const AlignedView& from, TokenList& tokens) const {
    append(id, from, tokens);
    if (!tokens.aligned) return;
    tokens.continues_word.resize(tokens.ids.size());
    tokens.continues_word.back() = prefix > 0;
  }

  struct Match {
    int32_t id = 0;
    size_t size = 0;  // in bytes; not that of piece(id), for pieces may share an id
  };

  /// The longest piece at the front of `rest` that is longer than `prefix`; of size 0, if none is.
  Match longest_match(std::string_view rest, size_t prefix) const {
    const auto fits = [&](size_t size) {
      return size > prefix && (size == rest.size() || !is_inside_character(rest[size]));
    };
    for (const auto* piece = long_pieces_.find(rest); piece != nullptr; piece = piece->shorter) {
      if (fits(piece->text.size())) return {piece->id, piece->text.size()};
    }
    size_t size =
        std::min({rest.size(), static_cast<size_t>(vocabulary_.longest_piece()), kShortPiece});
    for (; size > prefix; --size) {
      if (!fits(size)) continue;
      if (const auto id = vocabulary_.model_id(rest.substr(0, size))) return {*id, size};
    }
    return {};
  }

  const LongestPrefix long_pieces_;  // longer than kShortPiece
  const BertWordOptions words_;
  const std::string continuation_;
  const int64_t max_word_length_;
  const int32_t unk_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_wordpiece_tokenizer(const WordPieceSpec& spec) {
  check_length(spec.continuation, spec.common.file);
  return std::make_shared<WordPieceTokenizer>(spec, make_vocabulary(spec.common, spec.pieces));
}

}  // namespace phasor::internal
