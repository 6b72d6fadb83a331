// The rules are those of AddedVocabulary in Hugging Face tokenizers.
#include "tokenizer/added_tokens.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::string_view last = last_character(text);
  return is_word_character(take_character(last));
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word_character(take_character(text));
}

}  // namespace

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
    vocabulary.add(token.piece, token.id);
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
    if (!taken && id < most) vocabulary.add(token.piece, id);
  }
}

std::vector<AddedToken> all_added(const std::vector<AddedToken>& added,
                                  const std::vector<AddedToken>& written,
                                  const Vocabulary& vocabulary) {
  std::vector<AddedToken> all;
  std::unordered_set<std::string_view, SeededHash> pieces;
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

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, Normalizer normalizer,
                         const std::string& file)
    : normalizer_(std::move(normalizer)),
      raw_(spelled(tokens, false, normalizer_, file)),
      normalized_(spelled(tokens, true, normalizer_, file)) {}

std::vector<AddedTokens::Set::Spelled> AddedTokens::spelled(const std::vector<AddedToken>& tokens,
                                                            bool normalized,
                                                            const Normalizer& normalizer,
                                                            const std::string& file) {
  size_t bytes = 0;
  std::vector<Set::Spelled> result;
  for (const AddedToken& token : tokens) {
    if (token.normalized != normalized) continue;
    result.push_back(
        {token, normalized && normalizer ? normalizer(token.piece).text() : token.piece});
    check_length(result.back().spelling, file);
    bytes += result.back().spelling.size();
    if (bytes > PieceTrie::kMostBytes)
      refuse<ModelError>("{}: added tokens of more than {} bytes in all", file,
                         PieceTrie::kMostBytes);
  }
  return result;
}

void AddedTokens::split(const AlignedView& text, size_t special_bytes, const Visit& visit) const {
  const auto visit_raw = [&](std::string_view part, const AddedToken* token,
                             std::string_view spelled) {
    const AlignedView given = text.part(part);
    if (token != nullptr) return visit(given, token, spelled);
    const auto begin = static_cast<size_t>(part.data() - text.text.data());
    size_t special = special_bytes - std::min(special_bytes, begin);
    std::optional<AlignedText> made;
    if (normalizer_) {
      made = normalizer_(given);
      special = special >= part.size() ? made->size() : 0;
    }
    const AlignedView whole = made ? AlignedView(*made) : given;
    normalized_.split(whole.text, special,
                      [&](std::string_view inner, const AddedToken* found, std::string_view of_it) {
                        visit(whole.part(inner), found, of_it);
                      });
  };
  raw_.split(text.text, special_bytes, visit_raw);
}

AddedTokens::Set::Set(std::vector<Spelled> tokens)
    : tokens_(std::move(tokens)),
      spellings_([&] {
        std::vector<std::pair<std::string_view, int32_t>> spellings;
        for (size_t i = 0; i < tokens_.size(); ++i)
          spellings.emplace_back(tokens_[i].spelling, static_cast<int32_t>(i));
        return PieceTrie(std::move(spellings));
      }()),
      empty_([&]() -> std::optional<size_t> {
        const auto found = std::ranges::find(tokens_, "", &Spelled::spelling);
        if (found == tokens_.end()) return {};
        return static_cast<size_t>(found - tokens_.begin());
      }()),
      has_plain_(
          std::ranges::any_of(tokens_, [](const Spelled& one) { return !one.token.special; })) {}

const AddedTokens::Set::Spelled* AddedTokens::Set::find(std::string_view text, bool empty) const {
  const PieceTrie::Found found = spellings_.longest(text);
  if (found.size > 0) return &tokens_[found.number];
  const bool between = text.empty() || !is_inside_character(text.front());
  return empty && between && empty_ ? &tokens_[*empty_] : nullptr;
}

void AddedTokens::Set::split(std::string_view text, size_t special_bytes,
                             const Visit& visit) const {
  size_t begin = 0;       // of what is left
  size_t spaces_end = 0;  // of the white space that a token took last: others may begin within it
  const size_t last = has_plain_ ? text.size() : std::min(special_bytes, text.size());
  size_t end = std::string_view::npos;  // of the last one found
  for (size_t at = 0; last > 0 && at < last + (empty_ ? 1 : 0);) {
    const Spelled* const found = find(text.substr(at), at != end);
    if (found == nullptr) {
      ++at;
      continue;
    }
    const size_t start = std::exchange(at, at + found->spelling.size());
    end = at;
    const AddedToken& token = found->token;
    const bool inside_word = token.single_word && (ends_with_word(text.substr(0, start)) ||
                                                   begins_with_word(text.substr(end)));
    if (inside_word || (token.special && end > special_bytes)) continue;
    std::string_view before = text.substr(begin, start - std::min(begin, start));
    if (token.lstrip) before.remove_suffix(spaces_at_end(before));
    if (!before.empty()) visit(before, nullptr, {});
    const size_t first = token.lstrip ? begin + before.size() : start;
    if (token.rstrip && end >= spaces_end) spaces_end = end + spaces_at_start(text.substr(end));
    begin = token.rstrip ? spaces_end : end;
    const size_t spelled = std::max(first, start);
    if (first < begin)
      visit(text.substr(first, begin - first), &token, text.substr(spelled, end - spelled));
  }
  if (begin < text.size()) visit(text.substr(begin), nullptr, {});
}

}  // namespace phasor::internal
