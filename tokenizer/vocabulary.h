// The ids that a family gives to the pieces of a SentencePiece model and to its special tokens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/sentencepiece_tokenizer.h"

namespace phasor {

class Vocabulary {
 public:
  /// `pieces` are the SentencePiece model's, by its own numbers; number `unk` is its unknown piece.
  /// Throws ModelError for ids that are absurd and for a missing unknown token.
  Vocabulary(const SentencePieceSpec& spec, const std::vector<std::string>& pieces, int32_t unk);

  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  const std::string& piece(int32_t id) const { return pieces_[id]; }
  int32_t unk() const { return unk_; }
  /// The id of SentencePiece's piece `number`.
  int32_t id_of_number(int32_t number) const { return id_of_number_[number]; }
  std::optional<int32_t> lookup(const std::string& piece) const;
  /// As lookup(), but throws ModelError where there is no such piece.
  int32_t find(const std::string& piece) const;

 private:
  void set(const std::string& piece, int64_t id);

  std::string file_;
  std::map<std::string, int32_t> ids_;
  std::vector<std::string> pieces_;    // by id; empty where an id stands for nothing
  std::vector<int32_t> id_of_number_;  // by SentencePiece's own number
  int32_t unk_ = 0;
};

}  // namespace phasor
