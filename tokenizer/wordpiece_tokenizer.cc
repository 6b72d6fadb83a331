// Greedy longest match from the front of each word.
#include "tokenizer/wordpiece_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "files/refuse.h"
#include "tokenizer/model_tokenizer.h"
#include "tokenizer/piece_trie.h"

namespace phasor::internal {
namespace {

PieceTrie trie_of(const PieceIds& pieces, const Vocabulary& vocabulary) {
  std::vector<std::pair<std::string_view, int32_t>> found;
  for (const auto& [piece, id] : pieces) {
    if (!piece.empty()) found.emplace_back(piece, vocabulary.find(piece));
  }
  return PieceTrie(std::move(found));
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
        pieces_(trie_of(spec.pieces, vocabulary_)),
        continuations_(pieces_.node_behind(spec.continuation)),
        words_(spec.words),
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
    return [this](const AlignedView& part, bool, TokenList& tokens) {
      for_each_bert_word(part, words_, [&](const AlignedView& word, int64_t num_characters) {
        if (num_characters <= max_word_length_ && append_pieces(word, tokens)) return;
        append_at(0, unk_, word, tokens);
      });
    };
  }

  /// False where the word is not made of pieces; then it appends nothing.
  bool append_pieces(const AlignedView& word, TokenList& tokens) const {
    const size_t before = tokens.ids.size();
    for (size_t at = 0; at < word.text.size();) {
      const std::optional<uint32_t> node = at == 0 ? 0 : continuations_;
      const PieceTrie::Found found =
          node ? pieces_.longest(word.text.substr(at), *node) : PieceTrie::Found();
      if (found.size == 0) {
        tokens.resize(before);
        return false;
      }
      append_at(at, found.number, word.substr(at, found.size), tokens);
      at += found.size;
    }
    return true;
  }

  /// `at`: above 0 where the token goes on a word.
  void append_at(size_t at, int32_t id, const AlignedView& from, TokenList& tokens) const {
    append(id, from, tokens);
    if (!tokens.aligned) return;
    tokens.continues_word.resize(tokens.ids.size());
    tokens.continues_word.back() = at > 0;
  }

  const PieceTrie pieces_;                       // the numbers are ids
  const std::optional<uint32_t> continuations_;  // their node, behind the mark of those in a word
  const BertWordOptions words_;
  const int64_t max_word_length_;
  const int32_t unk_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_wordpiece_tokenizer(const WordPieceSpec& spec) {
  check_length(spec.continuation, spec.common.file);
  size_t bytes = 0;
  for (const auto& [piece, id] : spec.pieces) bytes += piece.size();
  if (bytes > PieceTrie::kMostBytes) {
    refuse<ModelError>("{}: its pieces have more than {} bytes together", spec.common.file,
                       PieceTrie::kMostBytes);
  }
  return std::make_shared<WordPieceTokenizer>(spec, make_vocabulary(spec.common, spec.pieces));
}

}  // namespace phasor::internal
