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

#include "tokenizer/seeded_hash.h"

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
  void set(std::string_view piece, int64_t id) { insert(piece, id, ids_); }
  /// The last of equal pieces counts. Throws ModelError also for a piece that is too long.
  void set_all(const PieceIds& pieces);
  void append(std::string_view piece) { set(piece, size()); }
  /// Like set(), of a piece that only added tokens have: the model never sees it in a text.
  void add(std::string_view piece, int64_t id) { insert(piece, id, added_ids_); }

  /// Ids run from 0 to size() − 1.
  int64_t size() const { return static_cast<int64_t>(pieces_.size()); }
  /// Empty for an id without a piece. Throws InvalidArgument for an id out of range.
  const std::string& piece(int32_t id) const;
  std::optional<int32_t> lookup(std::string_view piece) const;
  /// Like lookup(), without the pieces that only added tokens have.
  std::optional<int32_t> model_id(std::string_view piece) const { return find_in(ids_, piece); }
  /// Like lookup(), but throws ModelError if there is no such piece.
  int32_t find(std::string_view piece) const;
  const std::string& file() const { return file_; }

 private:
  using Ids = std::unordered_map<std::string_view, int32_t, SeededHash>;

  static std::optional<int32_t> find_in(const Ids& ids, std::string_view piece);
  void insert(std::string_view piece, int64_t id, Ids& ids);

  std::string file_;
  // Deques, because ids_ and added_ids_ have views of their elements.
  std::deque<std::string> pieces_;   // by id
  std::deque<std::string> aliases_;  // further pieces of an id
  Ids ids_;                          // of the model's pieces
  Ids added_ids_;                    // of the others
  int64_t id_limit_ = id_limit(0);
};

/// The first 60 bytes of a piece, for messages, which are one line.
std::string in_one_line(std::string_view piece);

/// Throws ModelError for a piece of more than a kilobyte: each token holds its own copy.
void check_length(std::string_view piece, const std::string& file);

}  // namespace phasor::internal
