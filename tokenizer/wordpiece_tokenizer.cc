// Greedy longest match from the front of each word, without an allocation per attempt.
#include "tokenizer/wordpiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/longest_prefix.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {
namespace {

Vocabulary make_vocabulary(const WordPieceSpec& spec) {
  Vocabulary vocabulary(spec.file);
  vocabulary.reserve(std::ssize(spec.pieces) + std::ssize(spec.written) + std::ssize(spec.added));
  // Backwards, so that the last of equal pieces comes first.
  for (auto entry = spec.pieces.rbegin(); entry != spec.pieces.rend(); ++entry) {
    check_length(entry->first, spec.file);
    vocabulary.set(entry->first, entry->second);
  }
  add_tokens(spec.written, vocabulary);
  add_fitting_tokens(spec.added, vocabulary);
  return vocabulary;
}

/// In bytes. Pieces up to this length are looked up one length at a time.
constexpr size_t kShortPiece = 64;

std::vector<std::pair<std::string, int32_t>> long_pieces(const WordPieceSpec& spec,
                                                         const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string, int32_t>> pieces;
  for (const auto& [piece, id] : spec.pieces) {
    if (piece.size() > kShortPiece) pieces.emplace_back(piece, vocabulary.find(piece));
  }
  return pieces;
}

/// Words are normalized as they are cut; the text before that only to find added tokens in it.
Normalizer normalizer(const WordPieceSpec& spec) {
  const auto normalized = [](const AddedToken& token) { return token.normalized; };
  const bool needed =
      std::ranges::any_of(spec.written, normalized) || std::ranges::any_of(spec.added, normalized);
  if (!needed) return {};
  return [words = spec.words](std::string_view text) { return bert_normalized(text, words); };
}

bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

class WordPieceTokenizer : public Tokenizer {
 public:
  explicit WordPieceTokenizer(const WordPieceSpec& spec)
      : vocabulary_(make_vocabulary(spec)),
        long_pieces_(long_pieces(spec, vocabulary_)),
        specials_(vocabulary_, spec.prefix, spec.suffix, spelled_specials(spec), spec.pair,
                  all_added(spec.added, spec.written, vocabulary_), normalizer(spec),
                  spec.truncate_left),
        words_(spec.words),
        continuation_(spec.continuation),
        max_word_length_(spec.max_word_length),
        unk_(vocabulary_.find(spec.unk)),
        mask_id_(vocabulary_.lookup(spec.mask)),
        description_(fmt::format("{} (WordPiece, {}, {})", spec.kind,
                                 std::filesystem::path(spec.file).filename().string(),
                                 spec.words.lower_case ? "lower case" : "cased")),
        notes_(all_notes(spec.notes, spec.added, vocabulary_)) {}

  Tokens encode(std::string_view text, const TokenizeOptions& options) const override {
    return specials_.encode(text, options, part_encoder());
  }
  /// In Transformers, a pair with an empty second text is the first alone.
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options) const override {
    if (second.empty()) return encode(first, options);
    return specials_.encode_pair(first, second, options, part_encoder());
  }
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t text_vocab_size() const override { return specials_.text_size(vocabulary_); }
  std::string piece(int32_t id) const override { return vocabulary_.piece(id); }
  std::optional<int32_t> mask_id() const override { return mask_id_; }
  std::string description() const override { return description_; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  SpecialTokens::EncodePart part_encoder() const {
    return [this, rest = std::string()](std::string_view part, bool, TokenList& tokens) mutable {
      for_each_bert_word(part, words_, [&](std::string_view word, int64_t num_characters) {
        append_word(word, num_characters, rest, tokens);
      });
    };
  }

  /// The special tokens that are in the vocabulary.
  std::vector<std::string> spelled_specials(const WordPieceSpec& spec) const {
    std::vector<std::string> pieces = {spec.unk, spec.mask, spec.pad};
    std::erase_if(pieces, [&](const std::string& piece) { return !vocabulary_.lookup(piece); });
    return pieces;
  }

  void append(int32_t id, TokenList& tokens) const { tokens.append(id, vocabulary_.piece(id)); }

  /// `rest` is scratch space.
  void append_word(std::string_view word, int64_t num_characters, std::string& rest,
                   TokenList& tokens) const {
    if (num_characters > max_word_length_) return append(unk_, tokens);
    const size_t before = tokens.ids.size();
    rest = word;
    size_t prefix = 0;  // bytes of rest that are the continuation mark
    while (rest.size() > prefix) {
      const Match match = longest_match(rest, prefix);
      if (match.size == 0) {
        tokens.resize(before);
        return append(unk_, tokens);
      }
      append(match.id, tokens);
      rest.replace(0, match.size, continuation_);
      prefix = continuation_.size();
    }
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
      if (const auto id = vocabulary_.lookup(rest.substr(0, size))) return {*id, size};
    }
    return {};
  }

  const Vocabulary vocabulary_;
  const LongestPrefix long_pieces_;  // longer than kShortPiece
  const SpecialTokens specials_;
  const BertWordOptions words_;
  const std::string continuation_;
  const int64_t max_word_length_;
  const int32_t unk_;
  const std::optional<int32_t> mask_id_;
  const std::string description_;
  const std::vector<std::string> notes_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_wordpiece_tokenizer(const WordPieceSpec& spec) {
  check_length(spec.continuation, spec.file);
  return std::make_shared<WordPieceTokenizer>(spec);
}

}  // namespace phasor::internal
