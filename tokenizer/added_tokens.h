// Tokens that are found in a text before it is split into words: special tokens such as "[MASK]",
// and tokens added to a tokenizer's own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalizer.h"
#include "tokenizer/piece_trie.h"
#include "tokenizer/vocabulary.h"

namespace phasor::internal {

/// As files list it.
struct AddedToken {
  std::string piece;
  int64_t id = 0;             // −1: see add_fitting_tokens()
  bool special = true;        // counts only where special tokens do
  bool lstrip = false;        // takes the white space before it
  bool rstrip = false;        // and after it
  bool single_word = false;   // counts only as a word by itself
  bool normalized = false;    // is looked for in the normalized text
  bool trims_offset = false;  // its span is without white space at its ends
};

/// Adds those that `vocabulary` lacks. Throws ModelError if it has the piece under another
/// id, or the id for another piece.
void add_tokens(const std::vector<AddedToken>& added, Vocabulary& vocabulary);

/// Like add_tokens(), but leaves out those that do not fit. An id of −1 is the piece's own, or the
/// next one.
void add_fitting_tokens(const std::vector<AddedToken>& added, Vocabulary& vocabulary);

/// Of `added`, those that `vocabulary` has, with its ids; then those of `written` with other
/// pieces.
std::vector<AddedToken> all_added(const std::vector<AddedToken>& added,
                                  const std::vector<AddedToken>& written,
                                  const Vocabulary& vocabulary);

/// `notes`, and one more if not all of `added` are in the vocabulary under their ids.
std::vector<std::string> all_notes(std::vector<std::string> notes,
                                   const std::vector<AddedToken>& added,
                                   const Vocabulary& vocabulary);

class AddedTokens {
 public:
  /// `token` is null for the text between tokens, which is normalized. No part is empty. `spelled`:
  /// what of a token's part is its spelling; the rest is white space that it takes.
  using Visit = std::function<void(const AlignedView& part, const AddedToken* token,
                                   std::string_view spelled)>;

  /// Without a `normalizer` texts stay as they are. `file` is for messages.
  AddedTokens(const std::vector<AddedToken>& tokens, Normalizer normalizer,
              const std::string& file);

  /// Cuts `text`, valid UTF-8, at the tokens that are found in it as it is, and normalizes the
  /// parts between them and cuts these at the others. At each place the longest token counts; the
  /// parts of tokens may overlap where one takes white space that another begins with. Special ones
  /// count in the first `special_bytes` alone, and are plain text after them. The time is linear in
  /// the text, but for what `visit` does with parts that overlap.
  void split(const AlignedView& text, size_t special_bytes, const Visit& visit) const;

 private:
  /// Those that are looked for in the same text.
  class Set {
   public:
    struct Spelled {
      AddedToken token;
      std::string spelling;
    };
    using Visit = std::function<void(std::string_view part, const AddedToken* token,
                                     std::string_view spelled)>;

    explicit Set(std::vector<Spelled> tokens);
    void split(std::string_view text, size_t special_bytes, const Visit& visit) const;

   private:
    /// The token that `text` begins with, or null. `empty`: it may have an empty spelling.
    const Spelled* find(std::string_view text, bool empty) const;

    const std::vector<Spelled> tokens_;
    const PieceTrie spellings_;          // the numbers are indices of tokens_
    const std::optional<size_t> empty_;  // that of the token spelled so: it is found everywhere
    const bool has_plain_;               // whether some are not special
  };

  static std::vector<Set::Spelled> spelled(const std::vector<AddedToken>& tokens, bool normalized,
                                           const Normalizer& normalizer, const std::string& file);

  const Normalizer normalizer_;
  const Set raw_, normalized_;
};

}  // namespace phasor::internal
