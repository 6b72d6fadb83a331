#include "tokenizer/vocabulary.h"

#include <algorithm>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {

std::string in_one_line(std::string_view piece) {
  std::string line = to_valid_utf8(piece.substr(0, 60)).text;
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return line;
}

int64_t id_limit(int64_t num_pieces) {
  constexpr int64_t kGaps = int64_t{1} << 16;
  return std::min(4 * num_pieces + kGaps, kMaxPieces);
}

void Vocabulary::reserve(int64_t num_pieces) {
  ids_.reserve(num_pieces);
  id_limit_ = id_limit(num_pieces);
}

void Vocabulary::insert(std::string_view piece, int64_t id, Ids& ids) {
  if (id < 0 || id >= id_limit_) {
    refuse<ModelError>("{}: the piece '{}' has the id {}; ids run from 0 to {}", file_,
                       in_one_line(piece), id, id_limit_ - 1);
  }
  if (lookup(piece)) return;
  if (id >= size()) pieces_.resize(id + 1);
  if (piece.empty()) return;
  std::string& place = pieces_[id].empty() ? pieces_[id] : aliases_.emplace_back();
  place = piece;
  ids.emplace(place, static_cast<int32_t>(id));
}

void Vocabulary::set_all(const PieceIds& pieces) {
  for (auto entry = pieces.rbegin(); entry != pieces.rend(); ++entry) {
    check_length(entry->first, file_);
    set(entry->first, entry->second);
  }
}

const std::string& Vocabulary::piece(int32_t id) const {
  if (id < 0 || id >= size()) {
    refuse<InvalidArgument>(
        "the token id {} is not in the tokenizer's vocabulary; ids run from 0 to {}", id,
        size() - 1);
  }
  return pieces_[id];
}

std::optional<int32_t> Vocabulary::find_in(const Ids& ids, std::string_view piece) {
  if (ids.empty()) return std::nullopt;
  const auto found = ids.find(piece);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::optional<int32_t> Vocabulary::lookup(std::string_view piece) const {
  const std::optional<int32_t> id = find_in(ids_, piece);
  return id ? id : find_in(added_ids_, piece);
}

int32_t Vocabulary::find(std::string_view piece) const {
  const std::optional<int32_t> id = lookup(piece);
  if (!id) {
    refuse<ModelError>(
        "{}: the special token '{}' is not in the tokenizer's vocabulary of {} pieces", file_,
        in_one_line(piece), ids_.size() + added_ids_.size());
  }
  return *id;
}

void check_length(std::string_view piece, const std::string& file) {
  constexpr size_t kMostBytes = 1024;
  if (piece.size() <= kMostBytes) return;
  refuse<ModelError>("{}: a piece of {} bytes; at most {} are read", file, piece.size(),
                     kMostBytes);
}

}  // namespace phasor::internal
