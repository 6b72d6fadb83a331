// Binary search, then back along the chain of prefixes.
#include "tokenizer/longest_prefix.h"

#include <algorithm>

namespace phasor::internal {

LongestPrefix::LongestPrefix(const std::vector<std::pair<std::string, int32_t>>& pieces) {
  for (const auto& [text, id] : pieces) {
    if (text.empty()) continue;
    pieces_.push_back({text, id, nullptr});
    begins_[static_cast<unsigned char>(text.front())] = true;
  }
  std::ranges::stable_sort(pieces_, {}, &Piece::text);
  const auto repeated =
      std::unique(pieces_.begin(), pieces_.end(),
                  [](const Piece& a, const Piece& b) { return a.text == b.text; });
  pieces_.erase(repeated, pieces_.end());
  const Piece* before = nullptr;
  for (Piece& piece : pieces_) {
    while (before != nullptr && !piece.text.starts_with(before->text)) before = before->shorter;
    piece.shorter = std::exchange(before, &piece);
  }
}

const LongestPrefix::Piece* LongestPrefix::find(std::string_view text) const {
  if (text.empty() || !begins_[static_cast<unsigned char>(text.front())]) return nullptr;
  const auto after = std::ranges::upper_bound(pieces_, text, {}, &Piece::text);
  if (after == pieces_.begin()) return nullptr;
  // The last piece that does not sort after `text` begins with every piece that `text` begins with.
  const Piece* piece = &*std::prev(after);
  const auto end = std::mismatch(piece->text.begin(), piece->text.end(), text.begin(), text.end());
  const auto common = static_cast<size_t>(end.first - piece->text.begin());
  while (piece != nullptr && piece->text.size() > common) piece = piece->shorter;
  return piece;
}

}  // namespace phasor::internal
