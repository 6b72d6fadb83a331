// WordPiece: BERT's tokenizer, which splits each word into the longest known pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// Everything that distinguishes WordPiece tokenizers.
struct WordPieceSpec {
  std::string kind = {};            // for people: "BERT"
  PieceIds pieces = {};             // of equal ones the last counts
  std::string continuation = "##";  // prefix of pieces inside a word
  int64_t max_word_length = 100;    // in characters; a longer word is unknown
  BertWordOptions words = {};

  std::string unk = "[UNK]";
  std::string pad = "[PAD]";  // this and the mask if the vocabulary has them
  CommonSpec common = {};     // a normalizer follows from `words`
};

/// Throws ModelError if `unk` or a token of a template is not among the pieces.
std::shared_ptr<const Tokenizer> make_wordpiece_tokenizer(const WordPieceSpec& spec);

}  // namespace phasor::internal
