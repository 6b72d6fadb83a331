// The one file that knows the SentencePiece library (whose header declares a namespace absl).
#include "tokenizer/sentencepiece_tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "phasor/errors.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

namespace phasor {
namespace {

using sentencepiece::SentencePieceProcessor;

/// A private-use character that stands where a special token was; see encode_joined().
constexpr std::string_view kHole = "\xee\x80\x80";  // U+E000

struct SpecialToken {
  std::string piece;
  int32_t id;
};

std::unique_ptr<SentencePieceProcessor> load_processor(const SentencePieceSpec& spec) {
  auto processor = std::make_unique<SentencePieceProcessor>();
  // SentencePiece's own message names a line of its source code, so it is left out.
  if (!processor->LoadFromSerializedProto(spec.model).ok()) {
    throw ModelError(fmt::format("{}: not a SentencePiece model ({} bytes); get the file again",
                                 spec.file, spec.model.size()));
  }
  return processor;
}

Vocabulary make_vocabulary(const SentencePieceSpec& spec, const SentencePieceProcessor& processor) {
  std::vector<std::string> pieces;
  pieces.reserve(processor.GetPieceSize());
  for (int n = 0; n < processor.GetPieceSize(); ++n) pieces.push_back(processor.IdToPiece(n));
  return Vocabulary(spec, pieces, processor.unk_id());
}

std::string_view without_trailing_spaces(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

class SentencePieceTokenizer : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const SentencePieceSpec& spec);

  Tokens encode(std::string_view text, const TokenizeOptions& options) const override;
  int64_t vocab_size() const override { return vocabulary_.size(); }
  std::string piece(int32_t id) const override;
  std::optional<int32_t> mask_id() const override { return mask_id_; }
  std::string description() const override { return description_; }

 private:
  void find_special_tokens(const SentencePieceSpec& spec);
  void check_room(int64_t max_tokens) const;
  void encode_with_specials(std::string_view text, Tokens& tokens) const;
  void encode_plain(std::string_view text, Tokens& tokens) const;
  void encode_joined(std::string_view text, Tokens& tokens) const;
  std::string_view take_language_code(std::string_view text, Tokens& tokens) const;
  const SpecialToken* special_at(std::string_view text) const;
  SpecialToken special(const std::string& piece) const { return {piece, vocabulary_.find(piece)}; }
  void append(std::string_view piece, int32_t number, Tokens& tokens) const;

  const std::unique_ptr<SentencePieceProcessor> processor_;
  const Vocabulary vocabulary_;
  const std::string description_;
  const bool leading_language_code_;
  const bool new_word_after_special_;
  const bool unknown_by_name_;  // "<unk>" instead of what the text said
  std::optional<int32_t> mask_id_;
  std::vector<SpecialToken> prefix_, suffix_;
  std::vector<SpecialToken> specials_;  // longest first
};

SentencePieceTokenizer::SentencePieceTokenizer(const SentencePieceSpec& spec)
    : processor_(load_processor(spec)),
      vocabulary_(make_vocabulary(spec, *processor_)),
      description_(fmt::format("{} (SentencePiece, {})", spec.kind,
                               std::filesystem::path(spec.file).filename().string())),
      leading_language_code_(spec.leading_language_code),
      new_word_after_special_(spec.new_word_after_special),
      unknown_by_name_(spec.vocabulary.has_value()) {
  find_special_tokens(spec);
}

void SentencePieceTokenizer::find_special_tokens(const SentencePieceSpec& spec) {
  for (const std::string& piece : spec.prefix) prefix_.push_back(special(piece));
  for (const std::string& piece : spec.suffix) suffix_.push_back(special(piece));
  if (!spec.mask.empty()) mask_id_ = vocabulary_.find(spec.mask);

  specials_ = prefix_;
  specials_.insert(specials_.end(), suffix_.begin(), suffix_.end());
  specials_.push_back({vocabulary_.piece(vocabulary_.unk()), vocabulary_.unk()});
  for (const std::string& piece : {spec.mask, spec.pad}) {
    if (!piece.empty()) specials_.push_back(special(piece));
  }
  for (const auto& [piece, id] : spec.fixed) specials_.push_back({piece, id});
  for (const std::string& piece : spec.appended) specials_.push_back(special(piece));
  for (int number = 0; number < processor_->GetPieceSize(); ++number) {
    const std::string& piece = processor_->IdToPiece(number);
    if (processor_->IsControl(number) && vocabulary_.lookup(piece)) {
      specials_.push_back(special(piece));
    }
  }
  std::stable_sort(specials_.begin(), specials_.end(),
                   [](const auto& a, const auto& b) { return a.piece.size() > b.piece.size(); });
}

std::string SentencePieceTokenizer::piece(int32_t id) const {
  if (id < 0 || id >= vocab_size()) {
    throw InvalidArgument(
        fmt::format("the token id {} is not in the tokenizer's vocabulary; ids run from 0 to {}",
                    id, vocab_size() - 1));
  }
  return vocabulary_.piece(id);
}

void SentencePieceTokenizer::check_room(int64_t max_tokens) const {
  const auto special = static_cast<int64_t>(prefix_.size() + suffix_.size());
  if (max_tokens < 0 || (max_tokens > 0 && max_tokens < special)) {
    throw InvalidArgument(
        fmt::format("max_tokens is {}; it must be 0 (no limit) or at least {}, the number of "
                    "special tokens that every text gets",
                    max_tokens, std::max<int64_t>(special, 1)));
  }
}

Tokens SentencePieceTokenizer::encode(std::string_view text, const TokenizeOptions& options) const {
  check_room(options.max_tokens);
  const ValidText valid = to_valid_utf8(text);
  Tokens tokens;
  tokens.invalid_bytes = valid.invalid_bytes;
  const auto append_specials = [&](const std::vector<SpecialToken>& specials) {
    for (const auto& [piece, id] : specials) {
      tokens.ids.push_back(id);
      tokens.pieces.push_back(piece);
    }
  };

  append_specials(prefix_);
  std::string_view rest = valid.text;
  if (leading_language_code_) rest = take_language_code(rest, tokens);
  if (options.parse_special) {
    encode_with_specials(rest, tokens);
  } else {
    encode_plain(rest, tokens);
  }
  const auto room = options.max_tokens - static_cast<int64_t>(suffix_.size());
  const auto size = static_cast<int64_t>(tokens.ids.size());
  if (options.max_tokens > 0 && size > room) {
    tokens.dropped = size - room;
    tokens.ids.resize(room);
    tokens.pieces.resize(room);
  }
  append_specials(suffix_);
  if (tokens.ids.empty()) {
    throw InvalidArgument(
        "the text is empty and this tokenizer adds no special tokens; give at least one word");
  }
  return tokens;
}

std::string_view SentencePieceTokenizer::take_language_code(std::string_view text,
                                                            Tokens& tokens) const {
  const size_t end = text.find("<<");
  if (!text.starts_with(">>") || end == std::string_view::npos || end == 2) return text;
  const std::string code(text.substr(0, end + 2));
  const int32_t id = vocabulary_.lookup(code).value_or(vocabulary_.unk());
  tokens.ids.push_back(id);
  tokens.pieces.push_back(vocabulary_.piece(id));
  return text.substr(code.size());
}

const SpecialToken* SentencePieceTokenizer::special_at(std::string_view text) const {
  for (const SpecialToken& special : specials_) {
    if (text.starts_with(special.piece)) return &special;
  }
  return nullptr;
}

void SentencePieceTokenizer::encode_with_specials(std::string_view text, Tokens& tokens) const {
  bool after_special = false;
  const auto encode_between = [&](std::string_view between) {
    if (after_special && !new_word_after_special_) {
      encode_joined(between, tokens);
    } else {
      encode_plain(between, tokens);
    }
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const SpecialToken* const special = special_at(text.substr(at));
    if (special == nullptr) {
      ++at;
      continue;
    }
    // The spaces before a special token belong to it.
    encode_between(without_trailing_spaces(text.substr(begin, at - begin)));
    tokens.ids.push_back(special->id);
    tokens.pieces.push_back(special->piece);
    after_special = true;
    begin = at += special->piece.size();
  }
  encode_between(text.substr(begin));
}

void SentencePieceTokenizer::append(std::string_view piece, int32_t number, Tokens& tokens) const {
  const int32_t id = vocabulary_.id_of_number(number);
  const bool by_name = unknown_by_name_ && id == vocabulary_.unk();
  tokens.ids.push_back(id);
  tokens.pieces.emplace_back(by_name ? vocabulary_.piece(id) : piece);
}

void SentencePieceTokenizer::encode_plain(std::string_view text, Tokens& tokens) const {
  const sentencepiece::ImmutableSentencePieceText encoded =
      processor_->EncodeAsImmutableProto(text);
  for (const auto& piece : encoded.pieces()) append(piece.piece(), piece.id(), tokens);
}

/// Encodes `text` as if it followed something in the same word, so that the space which
/// SentencePiece puts before every text does not make "[MASK]." end with the piece "▁.".
void SentencePieceTokenizer::encode_joined(std::string_view text, Tokens& tokens) const {
  if (text.empty()) return;
  const sentencepiece::ImmutableSentencePieceText encoded =
      processor_->EncodeAsImmutableProto(std::string(kHole) + std::string(text));
  for (const auto& piece : encoded.pieces()) {
    if (piece.end() <= kHole.size()) continue;  // the hole itself, or the space before it
    // Unknown characters in a row make one piece, which may then begin with the hole.
    std::string_view rest = piece.piece();
    if (const size_t hole = piece.begin() == 0 ? rest.find(kHole) : rest.npos; hole != rest.npos) {
      rest.remove_prefix(hole + kHole.size());
    }
    append(rest, piece.id(), tokens);
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> make_sentencepiece_tokenizer(const SentencePieceSpec& spec) {
  return std::make_shared<SentencePieceTokenizer>(spec);
}

}  // namespace phasor
