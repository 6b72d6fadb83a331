// Unigram models: a text becomes the pieces whose scores have the greatest sum. The sums and what
// counts among equal ones are those of sentencepiece 0.2.3 and of Hugging Face's tokenizers, with
// any libsentencepiece: its versions up to 0.2.1 choose other pieces where sums are equal.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/metaspace.h"
#include "tokenizer/piece_cutter.h"
#include "tokenizer/piece_trie.h"
#include "tokenizer/sentencepiece_text.h"

namespace phasor::internal {

struct UnigramOptions {
  bool float_sums = false;     // as SentencePiece's; otherwise double
  bool byte_fallback = false;  // there is a piece for each byte, and an unknown character is these
};

class Unigram {
 public:
  /// A place where a text can be cut, with the best way there from its beginning.
  struct Place {
    double sum = 0;
    uint32_t size = 0;   // of its last piece; 0: no way leads there
    int32_t number = 0;  // of that piece
  };

  /// One of `pieces` is of the type kUnknown; those of the types kNormal and kUserDefined are found
  /// in texts.
  Unigram(const std::vector<ModelPiece>& pieces, double unknown_score,
          const UnigramOptions& options);

  /// See PieceCutter::cut(); `text` is normalized. `places` is scratch space.
  void cut(const AlignedView& text, std::vector<Place>& places,
           const PieceCutter::Visit& visit) const;

 private:
  void find_best(std::string_view text, std::vector<Place>& places) const;
  void rebase(size_t at, std::vector<Place>& places) const;
  void visit_unknown(const AlignedView& text, const PieceCutter::Visit& visit) const;

  const UnigramOptions options_;
  const double unknown_score_;
  int32_t unknown_ = 0;
  size_t longest_ = 4;          // bytes of a piece or a character
  std::vector<int32_t> bytes_;  // the pieces of bytes
  std::vector<double> scores_;  // by number
  PieceTrie trie_;
};

/// The cutter of a SentencePiece file.
std::unique_ptr<PieceCutter> make_unigram_cutter(const std::vector<ModelPiece>& pieces,
                                                 const SentencePieceRules& rules,
                                                 bool byte_fallback);

/// The cutter of a tokenizer.json.
std::unique_ptr<PieceCutter> make_metaspace_cutter(const std::vector<ModelPiece>& pieces,
                                                   const MetaspaceRules& rules);

}  // namespace phasor::internal
