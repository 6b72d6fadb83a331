// The pieces of a tokenizer by their ids, and the ids by their pieces.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace phasor::internal {

/// The most pieces of a vocabulary; the largest known tokenizers have a million.
constexpr int64_t kMaxPieces = int64_t{1} << 22;

/// The limit on the ids of a vocabulary with that many pieces. Ids may have gaps, but not so many
/// that a small file needs a large table.
int64_t id_limit(int64_t num_pieces);

/// Pieces with their ids.
using PieceIds = std::vector<std::pair<std::string, int32_t>>;

class Vocabulary {
 public:
  /// `file` names the vocabulary in messages.
  explicit Vocabulary(std::string file) : file_(std::move(file)) {}
  Vocabulary(Vocabulary&&) = default;  // not copied: ids_ refers to strings in pieces_

  /// Allows ids below id_limit(num_pieces); without it the limit is that of zero pieces.
  void reserve(int64_t num_pieces);
  /// If a piece or an id comes twice, the first counts. Throws ModelError for ids beyond the limit.
  void set(std::string_view piece, int64_t id);
  /// The last of equal pieces counts. Throws ModelError also for a piece that is too long.
  void set_all(const PieceIds& pieces);
  void append(std::string_view piece) { set(piece, size()); }

  /// Ids run from 0 to size() − 1.
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  int64_t longest_piece() const { return longest_piece_; }  // in bytes
  /// Empty for an id without a piece. Throws InvalidArgument for an id out of range.
  const std::string& piece(int32_t id) const;
  std::optional<int32_t> lookup(std::string_view piece) const;
  /// Like lookup(), but throws ModelError if there is no such piece.
  int32_t find(std::string_view piece) const;
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  // Deques, because ids_ has views of their elements.
  std::deque<std::string> pieces_;   // by id
  std::deque<std::string> aliases_;  // further pieces of an id
  std::unordered_map<std::string_view, int32_t> ids_;
  int64_t longest_piece_ = 0;
  int64_t id_limit_ = id_limit(0);
};

/// A token added to a tokenizer's own ones, as files list it; see tokenizer/added_tokens.h.
struct AddedToken {
  std::string piece;
  int64_t id = 0;             // −1: see add_fitting_tokens()
  bool special = true;        // counts only where special tokens do
  bool lstrip = false;        // takes the white space before it
  bool rstrip = false;        // and after it
  bool single_word = false;   // counts only as a word by itself
  bool normalized = false;    // is looked for in the normalized text
  bool trims_offset = false;  // its span is without that white space
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

/// The first 60 bytes of a piece, for messages, which are one line.
std::string in_one_line(std::string_view piece);

/// Throws ModelError for a piece of more than a kilobyte: each token holds its own copy.
void check_length(std::string_view piece, const std::string& file);

/// `notes`, and one more if not all of `added` are in the vocabulary under their ids.
std::vector<std::string> all_notes(std::vector<std::string> notes,
                                   const std::vector<AddedToken>& added,
                                   const Vocabulary& vocabulary);

}  // namespace phasor::internal
