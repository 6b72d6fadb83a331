// The rules are those of AddedVocabulary in Hugging Face tokenizers.
#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "files/utf8.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

std::vector<std::pair<std::string, int32_t>> spellings_of(
    const std::vector<AddedTokens::Spelled>& tokens) {
  std::vector<std::pair<std::string, int32_t>> spellings;
  for (size_t i = 0; i < tokens.size(); ++i) {
    spellings.emplace_back(tokens[i].spelling, static_cast<int32_t>(i));
  }
  return spellings;
}

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  std::string_view last = last_character(text);
  return is_word_character(take_character(last));
}

bool begins_with_word(std::string_view text) {
  return !text.empty() && is_word_character(take_character(text));
}

}  // namespace

AddedTokens::AddedTokens(std::vector<Spelled> tokens)
    : tokens_(std::move(tokens)),
      spellings_(spellings_of(tokens_)),
      has_plain_(std::any_of(tokens_.begin(), tokens_.end(),
                             [](const Spelled& spelled) { return !spelled.token.special; })) {}

void AddedTokens::split(std::string_view text, size_t special_bytes, const Visit& visit) const {
  if (special_bytes == 0 && !has_plain_) return visit(text, nullptr);
  size_t begin = 0;
  const size_t last = has_plain_ ? text.size() : std::min(special_bytes, text.size());
  for (size_t at = 0; at < last;) {
    const LongestPrefix::Piece* const found = spellings_.find(text.substr(at));
    if (found == nullptr) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[found->id].token;
    const size_t end = at + found->text.size();
    const bool inside_word = token.single_word && (ends_with_word(text.substr(0, at)) ||
                                                   begins_with_word(text.substr(end)));
    if (inside_word || (token.special && end > special_bytes)) {
      at = end;
      continue;
    }
    std::string_view before = text.substr(begin, at - begin);
    if (token.lstrip) before.remove_suffix(spaces_at_end(before));
    visit(before, nullptr);
    const size_t taken = token.trims_offset ? at : begin + before.size();
    begin = at = end + (token.rstrip ? spaces_at_start(text.substr(end)) : 0);
    visit(text.substr(taken, (token.trims_offset ? end : at) - taken), &token);
  }
  visit(text.substr(begin), nullptr);
}

}  // namespace phasor::internal
