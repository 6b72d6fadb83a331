#include "tokenizer/vocabulary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/crowding.h"

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

void Vocabulary::set(std::string_view piece, int64_t id) {
  if (id < 0 || id >= id_limit_) {
    refuse<ModelError>("{}: the piece '{}' has the id {}; ids run from 0 to {}", file_,
                       in_one_line(piece), id, id_limit_ - 1);
  }
  if (lookup(piece)) return;
  if (id >= size()) pieces_.resize(id + 1);
  if (piece.empty()) return;
  std::string& place = pieces_[id].empty() ? pieces_[id] : aliases_.emplace_back();
  place = piece;
  insert_uncrowded(ids_, {place, static_cast<int32_t>(id)}, file_);
  longest_piece_ = std::max(longest_piece_, static_cast<int64_t>(piece.size()));
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

std::optional<int32_t> Vocabulary::lookup(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

int32_t Vocabulary::find(std::string_view piece) const {
  const std::optional<int32_t> id = lookup(piece);
  if (!id) {
    refuse<ModelError>(
        "{}: the special token '{}' is not in the tokenizer's vocabulary of {} pieces", file_,
        in_one_line(piece), ids_.size());
  }
  return *id;
}

void add_tokens(const std::vector<AddedToken>& added, Vocabulary& vocabulary) {
  for (const AddedToken& token : added) {
    check_length(token.piece, vocabulary.file());
    const std::optional<int32_t> known = vocabulary.lookup(token.piece);
    const bool taken = !known && token.id >= 0 && token.id < vocabulary.size() &&
                       !vocabulary.piece(static_cast<int32_t>(token.id)).empty();
    if (taken || token.piece.empty() || (known && *known != token.id)) {
      refuse<ModelError>(
          "{}: the added token '{}' has the id {}, but {}; get the file again", vocabulary.file(),
          in_one_line(token.piece), token.id,
          taken   ? fmt::format("that is '{}'",
                                in_one_line(vocabulary.piece(static_cast<int32_t>(token.id))))
          : known ? fmt::format("the vocabulary gives it {}", *known)
                  : "it is empty");
    }
    vocabulary.set(token.piece, token.id);
  }
}

void add_fitting_tokens(const std::vector<AddedToken>& added, Vocabulary& vocabulary) {
  const int64_t most = vocabulary.size() + std::ssize(added);
  for (const AddedToken& token : added) {
    check_length(token.piece, vocabulary.file());
    if (token.piece.empty() || vocabulary.lookup(token.piece)) continue;
    const int64_t id = token.id < 0 ? vocabulary.size() : token.id;
    const bool taken =
        id < vocabulary.size() && !vocabulary.piece(static_cast<int32_t>(id)).empty();
    if (!taken && id < most) vocabulary.set(token.piece, id);
  }
}

std::vector<AddedToken> all_added(const std::vector<AddedToken>& added,
                                  const std::vector<AddedToken>& written,
                                  const Vocabulary& vocabulary) {
  std::vector<AddedToken> all;
  std::unordered_set<std::string_view> pieces;
  for (const std::vector<AddedToken>* const list : {&added, &written}) {
    for (AddedToken token : *list) {
      const std::optional<int32_t> id = vocabulary.lookup(token.piece);
      if (!id || (token.id >= 0 && token.id != *id)) continue;
      token.id = *id;
      if (pieces.insert(vocabulary.piece(*id)).second) all.push_back(std::move(token));
    }
  }
  return all;
}

void check_length(std::string_view piece, const std::string& file) {
  constexpr size_t kMostBytes = 1024;
  if (piece.size() <= kMostBytes) return;
  refuse<ModelError>("{}: a piece of {} bytes; at most {} are read", file, piece.size(),
                     kMostBytes);
}

std::vector<std::string> all_notes(std::vector<std::string> notes,
                                   const std::vector<AddedToken>& added,
                                   const Vocabulary& vocabulary) {
  constexpr size_t kNamed = 5;
  std::vector<std::string> unread;
  for (const AddedToken& token : added) {
    if (vocabulary.lookup(token.piece) == token.id || token.id < 0) continue;
    unread.push_back(fmt::format("'{}' ({})", in_one_line(token.piece), token.id));
  }
  if (unread.empty()) return notes;
  const size_t named = std::min(kNamed, unread.size());
  notes.push_back(fmt::format(
      "added tokens that are read as plain text, because their ids are taken or too large: {}{}",
      fmt::join(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(named), ", "),
      unread.size() > named ? fmt::format(", … ({} in all)", unread.size()) : ""));
  return notes;
}

}  // namespace phasor::internal
