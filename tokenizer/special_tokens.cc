#include "tokenizer/special_tokens.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {
namespace {

/// How many bytes the pieces of a text may take. Real tokenizers make at most a token of each byte,
/// of a few characters and 32 bytes of memory, but where they normalize a character to many.
size_t most_piece_bytes(size_t text_bytes) { return 64 * (text_bytes + (size_t{1} << 14)); }

Template around(const std::vector<std::string>& prefix, const std::vector<std::string>& suffix) {
  Template items;
  const auto add = [&](const std::vector<std::string>& pieces) {
    for (const std::string& piece : pieces) {
      if (!piece.empty()) items.push_back({piece});
    }
  };
  add(prefix);
  items.push_back({});
  add(suffix);
  return items;
}

/// The tokens that may be written in a text, each once.
std::vector<AddedToken> all_written(const CommonSpec& spec, const std::vector<std::string>& others,
                                    const Vocabulary& vocabulary) {
  std::vector<AddedToken> all = all_added(spec.added, spec.written, vocabulary);
  for (AddedToken& token : all) token.trims_offset = spec.trim_offsets;
  std::set<std::string, std::less<>> known = {""};
  for (const AddedToken& token : all) known.insert(token.piece);
  const auto add = [&](const std::string& piece) {
    if (!known.insert(piece).second) return;
    all.push_back(
        {.piece = piece, .id = vocabulary.find(piece), .lstrip = true, .trims_offset = true});
  };
  for (const auto* const pieces : {&spec.prefix, &spec.suffix}) {
    for (const std::string& piece : *pieces) add(piece);
  }
  for (const TemplateItem& item : spec.pair) add(item.piece);
  for (const std::string& piece : others) add(piece);
  return all;
}

std::set<std::string, std::less<>> special_pieces(const std::vector<AddedToken>& tokens) {
  std::set<std::string, std::less<>> pieces;
  for (const AddedToken& token : tokens) {
    if (token.special) pieces.insert(token.piece);
  }
  return pieces;
}

/// How many tokens remain of texts with `a` and `b`: the longer one is cut, as "longest_first" of
/// Hugging Face tokenizers does it.
std::pair<int64_t, int64_t> cut_longest_first(int64_t a, int64_t b, int64_t room) {
  if (a + b <= room) return {a, b};
  if (a > b) {
    const auto [shorter, longer] = cut_longest_first(b, a, room);
    return {longer, shorter};
  }
  if (2 * a <= room) return {a, room - a};
  return {room / 2, room - room / 2};
}

/// The bytes of the valid text that belong to the prompt; all if special tokens count everywhere.
size_t bytes_of_prompt(std::string_view text, const AlignedText& valid,
                       const TokenizeOptions& options) {
  if (options.parse_special) return valid.size();
  if (options.prompt_bytes <= 0) return 0;
  const std::string_view prompt = text.substr(0, static_cast<size_t>(options.prompt_bytes));
  return valid.invalid_bytes() == 0 ? prompt.size() : to_valid_utf8(prompt).text.size();
}

}  // namespace

void TokenList::no_room_for(std::string_view piece) const {
  refuse<ModelError>(
      "the pieces of a text of {} bytes take more than {} bytes, up to token {}, '{}', of {} "
      "bytes; ask for its ids alone, or split the text",
      text_bytes, most_piece_bytes(text_bytes), ids.size(), in_one_line(piece), piece.size());
}

Template bert_pair(const std::string& cls, const std::string& sep) {
  return {{cls}, {}, {sep}, {"", 1}, {sep, 1}};
}

Template roberta_pair(const std::string& cls, const std::string& sep) {
  return {{cls}, {}, {sep}, {sep}, {}, {sep}};
}

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary, const CommonSpec& spec,
                             const std::vector<std::string>& others)
    : single_(with_ids(around(spec.prefix, spec.suffix), vocabulary)),
      pair_(with_ids(spec.pair, vocabulary)),
      all_(all_written(spec, others, vocabulary)),
      written_(all_, spec.normalizer, vocabulary.file()),
      specials_(special_pieces(all_)),
      cut_left_(spec.truncate_left) {}

SpecialTokens::Items SpecialTokens::with_ids(const Template& items, const Vocabulary& vocabulary) {
  Items result;
  for (const TemplateItem& item : items) {
    result.push_back({item, item.piece.empty() ? 0 : vocabulary.find(item.piece)});
  }
  return result;
}

Tokens SpecialTokens::encode(std::string_view text, const TokenizeOptions& options,
                             const EncodePart& encode_part) const {
  const int64_t room = room_for_text(single_, options);
  TokenList tokens = encode_text(text, options, encode_part);
  tokens.dropped = cut_to(room, options, tokens);
  return fill(single_, options, std::span(&tokens, 1));
}

Tokens SpecialTokens::encode_pair(std::string_view first, std::string_view second,
                                  const TokenizeOptions& options,
                                  const EncodePart& encode_part) const {
  if (pair_.empty()) {
    throw InvalidArgument(
        "this tokenizer's files do not say what a pair of texts becomes; give one text, or "
        "choose a model whose tokenizer makes pairs, like BERT's or RoBERTa's",
        ErrorCode::kUnsupported);
  }
  const int64_t room = room_for_text(pair_, options);
  TokenizeOptions without_prompt = options;
  without_prompt.prompt_bytes = 0;
  std::array<TokenList, 2> texts = {encode_text(first, options, encode_part),
                                    encode_text(second, without_prompt, encode_part)};
  const auto [a, b] = cut_longest_first(std::ssize(texts[0].ids), std::ssize(texts[1].ids), room);
  texts[0].dropped = cut_to(a, options, texts[0]);
  texts[1].dropped = cut_to(b, options, texts[1]);
  return fill(pair_, options, texts);
}

/// How many tokens the texts may have.
int64_t SpecialTokens::room_for_text(const Items& items, const TokenizeOptions& options) {
  const int64_t max_tokens = options.max_tokens;
  const int64_t special = std::count_if(items.begin(), items.end(), [&](const Item& item) {
    return !item.item.piece.empty() && !options.no_special_tokens;
  });
  if (max_tokens < 0 || (max_tokens > 0 && max_tokens < special)) {
    refuse<InvalidArgument>(
        "max_tokens is {}; it must be 0 (the default) or at least {}, the number of special tokens "
        "that every text gets",
        max_tokens, std::max<int64_t>(special, 1));
  }
  return max_tokens > 0 ? max_tokens - special : std::numeric_limits<int64_t>::max();
}

int64_t SpecialTokens::cut_to(int64_t size, const TokenizeOptions& options,
                              TokenList& tokens) const {
  const int64_t dropped = std::ssize(tokens.ids) - size;
  if (dropped <= 0) return 0;
  const bool left = options.truncation_side == TruncationSide::kTokenizer
                        ? cut_left_
                        : options.truncation_side == TruncationSide::kLeft;
  if (left) {
    tokens.drop_front(dropped);
  } else {
    tokens.resize(size);
  }
  return dropped;
}

TokenList SpecialTokens::encode_text(std::string_view text, const TokenizeOptions& options,
                                     const EncodePart& encode_part) const {
  const AlignedText valid(text, options.offset_unit);
  TokenList tokens;
  tokens.ids_only = options.ids_only;
  tokens.aligned = options.offset_unit != OffsetUnit::kNone;
  tokens.text_bytes = valid.size();
  tokens.room = most_piece_bytes(valid.size());
  tokens.invalid_bytes = valid.invalid_bytes();
  bool after_special = false;
  written_.split(valid, bytes_of_prompt(text, valid, options),
                 [&](const AlignedView& part, const AddedToken* token, std::string_view spelled) {
                   if (token == nullptr) return encode_part(part, after_special, tokens);
                   tokens.append(static_cast<int32_t>(token->id), token->piece, part);
                   if (tokens.aligned && token->trims_offset)
                     tokens.offsets.back() = part.span_of(without_outer_spaces(spelled));
                   after_special = true;
                 });
  return tokens;
}

Tokens SpecialTokens::fill(const Items& items, const TokenizeOptions& options,
                           std::span<TokenList> texts) {
  TokenList tokens;
  tokens.ids_only = texts.front().ids_only;
  tokens.aligned = texts.front().aligned;
  const bool typed =
      std::any_of(items.begin(), items.end(), [](const Item& item) { return item.item.type != 0; });
  for (const auto& [item, id] : items) {
    if (item.piece.empty()) {
      TokenList& text = texts.front();
      texts = texts.subspan(1);
      tokens.ids.insert(tokens.ids.end(), text.ids.begin(), text.ids.end());
      tokens.offsets.insert(tokens.offsets.end(), text.offsets.begin(), text.offsets.end());
      if (!text.continues_word.empty()) {
        tokens.continues_word.resize(tokens.ids.size() - text.ids.size());
        tokens.continues_word.insert(tokens.continues_word.end(), text.continues_word.begin(),
                                     text.continues_word.end());
      }
      tokens.pieces.insert(tokens.pieces.end(), std::make_move_iterator(text.pieces.begin()),
                           std::make_move_iterator(text.pieces.end()));
      tokens.invalid_bytes += text.invalid_bytes;
      tokens.dropped += text.dropped;
    } else if (!options.no_special_tokens) {
      tokens.append(id, item.piece, {});
    }
    if (tokens.aligned) tokens.special.resize(tokens.ids.size(), !item.piece.empty());
    if (typed) tokens.token_types.resize(tokens.ids.size(), item.type);
  }
  if (!tokens.continues_word.empty()) tokens.continues_word.resize(tokens.ids.size());
  if (tokens.ids.empty()) {
    throw InvalidArgument(
        "the text is empty and this tokenizer adds no special tokens; give at least one word",
        ErrorCode::kEmptyText);
  }
  return tokens;
}

bool SpecialTokens::contains(std::string_view piece) const { return specials_.contains(piece); }

int64_t SpecialTokens::text_size(const Vocabulary& vocabulary) const {
  std::set<std::string_view> listed;
  for (const AddedToken& token : all_) listed.insert(token.piece);
  int64_t size = vocabulary.size();
  while (size > 0 && listed.contains(vocabulary.piece(static_cast<int32_t>(size - 1)))) --size;
  return size;
}

}  // namespace phasor::internal
