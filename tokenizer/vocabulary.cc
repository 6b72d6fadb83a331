// Numbers pieces as a SentencePieceSpec says.
#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include "phasor/errors.h"

namespace phasor {
namespace {

constexpr int64_t kMaxVocabulary = int64_t{1} << 24;

}  // namespace

Vocabulary::Vocabulary(const SentencePieceSpec& spec, const std::vector<std::string>& pieces,
                       int32_t unk)
    : file_(spec.file) {
  for (const auto& [piece, id] : spec.fixed) set(piece, id);
  if (spec.vocabulary) {
    for (const auto& [piece, id] : *spec.vocabulary) set(piece, id);
  } else {
    for (size_t n = 0; n < pieces.size(); ++n) {
      set(pieces[n], static_cast<int64_t>(n) + spec.offset);
    }
  }
  for (const std::string& piece : spec.appended) set(piece, size());
  unk_ = find(spec.unk.empty() ? pieces.at(unk) : spec.unk);

  id_of_number_.reserve(pieces.size());
  for (size_t n = 0; n < pieces.size(); ++n) {
    const bool unknown = static_cast<int32_t>(n) == unk;
    id_of_number_.push_back(unknown ? unk_ : lookup(pieces[n]).value_or(unk_));
  }
}

std::optional<int32_t> Vocabulary::lookup(const std::string& piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

int32_t Vocabulary::find(const std::string& piece) const {
  const std::optional<int32_t> id = lookup(piece);
  if (!id) {
    throw ModelError(
        fmt::format("{}: the special token '{}' is not in the tokenizer's vocabulary of {} "
                    "pieces",
                    file_, piece, ids_.size()));
  }
  return *id;
}

/// The first to name a piece wins.
void Vocabulary::set(const std::string& piece, int64_t id) {
  if (id < 0 || id >= kMaxVocabulary) {
    throw ModelError(fmt::format("{}: the piece '{}' has the id {}; ids run from 0 to {}", file_,
                                 piece, id, kMaxVocabulary - 1));
  }
  if (!ids_.emplace(piece, static_cast<int32_t>(id)).second) return;
  if (id >= size()) pieces_.resize(id + 1);
  pieces_[id] = piece;
}

}  // namespace phasor
