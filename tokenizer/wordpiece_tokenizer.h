// WordPiece: BERT's tokenizer, which cuts each word into the longest pieces it knows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "phasor/tokenizer.h"
#include "tokenizer/bert_words.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// All that tells one WordPiece tokenizer from another.
struct WordPieceSpec {
  std::string kind = {};                 // for people: "BERT"
  std::string file = {};                 // the vocabulary's path, for messages
  std::vector<std::string> pieces = {};  // by id; of equal ones the last counts
  std::string continuation = "##";       // begins the pieces that do not begin a word
  int64_t max_word_length = 100;         // in characters; a longer word is unknown
  BertWordOptions words = {};

  std::string cls = "[CLS]";
  std::string sep = "[SEP]";
  std::string unk = "[UNK]";
  std::string mask = "[MASK]";  // this and the next where the vocabulary has them
  std::string pad = "[PAD]";
  std::vector<std::string> notes = {};  // see Tokenizer::notes()
  std::vector<AddedToken> added = {};   // what tokenizer_config.json adds, or lists once more
};

/// Throws ModelError where `cls`, `sep` or `unk` is not among the pieces.
std::shared_ptr<const Tokenizer> make_wordpiece_tokenizer(const WordPieceSpec& spec);

}  // namespace phasor::internal
