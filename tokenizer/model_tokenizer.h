// The base of all kinds of tokenizers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// A tokenizer whose model encodes the parts of a text between special and added tokens.
class ModelTokenizer : public Tokenizer {
 public:
  Tokens encode(std::string_view text, const TokenizeOptions& options) const override {
    return specials_.encode(text, options, part_encoder());
  }
  Tokens encode_pair(std::string_view first, std::string_view second,
                     const TokenizeOptions& options) const override {
    return specials_.encode_pair(first, second, options, part_encoder());
  }
  int64_t vocab_size() const override { return vocabulary_.size(); }
  int64_t text_vocab_size() const override { return specials_.text_size(vocabulary_); }
  std::string piece(int32_t id) const override { return vocabulary_.piece(id); }
  std::optional<int32_t> mask_id() const override { return mask_id_; }
  std::string description() const override { return description_; }
  std::vector<std::string> notes() const override { return notes_; }

 protected:
  /// `others`: see SpecialTokens.
  ModelTokenizer(const CommonSpec& spec, Vocabulary&& vocabulary,
                 const std::vector<std::string>& others, std::string description)
      : vocabulary_(std::move(vocabulary)),
        specials_(vocabulary_, spec, others),
        mask_id_(vocabulary_.lookup(spec.mask)),
        description_(std::move(description)),
        notes_(all_notes(spec.notes, spec.added, vocabulary_)) {}

  virtual SpecialTokens::EncodePart part_encoder() const = 0;
  void append(int32_t id, const AlignedView& from, TokenList& tokens) const {
    tokens.append(id, vocabulary_.piece(id), from);
  }

  const Vocabulary vocabulary_;
  const SpecialTokens specials_;
  const std::optional<int32_t> mask_id_;
  const std::string description_;
  std::vector<std::string> notes_;
};

/// The vocabulary of `pieces` and of the tokens that are added to them.
inline Vocabulary make_vocabulary(const CommonSpec& spec, const PieceIds& pieces) {
  Vocabulary vocabulary(spec.file);
  vocabulary.reserve(std::ssize(pieces) + std::ssize(spec.written) + std::ssize(spec.added));
  vocabulary.set_all(pieces);
  add_tokens(spec.written, vocabulary);
  add_fitting_tokens(spec.added, vocabulary);
  return vocabulary;
}

/// For descriptions.
inline std::string file_name(const CommonSpec& spec) {
  return std::filesystem::path(spec.file).filename().string();
}

}  // namespace phasor::internal
