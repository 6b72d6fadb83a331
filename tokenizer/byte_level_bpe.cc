// A word's possible merges are in a heap, so that a word of n bytes takes n log n steps.
#include "tokenizer/byte_level_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/model_tokenizer.h"

namespace phasor::internal {
namespace {

/// The merge of two neighbours into one piece.
struct Merge {
  int32_t left, right;
  int32_t rank;  // the lowest goes first
  int32_t id;
};

/// Finds the merge of two ids.
class Merges {
 public:
  Merges(const ByteLevelBpeSpec& spec, const Vocabulary& vocabulary)
      : begins_(vocabulary.size() + 1) {
    for (const auto& [left, right] : spec.merges) {
      const auto id = [&](const std::string& piece) {
        if (const auto found = vocabulary.model_id(piece)) return *found;
        refuse<ModelError>(
            "{}: merge {}: one of its pieces or their result is not in the vocabulary of {} "
            "pieces; get the tokenizer's files again",
            spec.merges_file, merges_.size() + 1, vocabulary.size());
      };
      const auto rank = static_cast<int32_t>(merges_.size());
      merges_.push_back({id(left), id(right), rank, id(left + right)});
    }
    std::sort(merges_.begin(), merges_.end(), [](const Merge& a, const Merge& b) {
      return std::tie(a.left, a.right, b.rank) < std::tie(b.left, b.right, a.rank);
    });
    const auto same = std::unique(
        merges_.begin(), merges_.end(),
        [](const Merge& a, const Merge& b) { return a.left == b.left && a.right == b.right; });
    merges_.erase(same, merges_.end());
    for (const Merge& merge : merges_) ++begins_[merge.left + 1];
    for (size_t id = 1; id < begins_.size(); ++id) begins_[id] += begins_[id - 1];
  }

  /// Null if there is none.
  const Merge* find(int32_t left, int32_t right) const {
    const auto begin = merges_.begin() + begins_[left], end = merges_.begin() + begins_[left + 1];
    const auto found = std::lower_bound(
        begin, end, right, [](const Merge& merge, int32_t id) { return merge.right < id; });
    return found != end && found->right == right ? &*found : nullptr;
  }

 private:
  std::vector<Merge> merges_;    // by left, then right
  std::vector<int32_t> begins_;  // by left: its first merge
};

/// The pieces of one word; reused for the next.
class WordMerger {
 public:
  explicit WordMerger(const Merges& merges) : merges_(merges) {}

  /// The word has at most `size` symbols.
  void begin(size_t size) {
    symbols_.clear();
    symbols_.reserve(size);
  }
  /// A symbol of `bytes` bytes.
  void add(int32_t id, int32_t bytes) { symbols_.push_back({id, -1, -1, bytes}); }

  /// Merges until no two neighbours can be; of equal merges the leftmost goes first. visit(id,
  /// bytes) for each of what is left.
  template <typename Visit>
  void merge(const Visit& visit) {
    const auto size = static_cast<int32_t>(symbols_.size());
    candidates_.clear();
    candidates_.reserve(2 * symbols_.size());  // each merge takes one and adds two at most
    for (int32_t at = 0; at < size; ++at) {
      symbols_[at].previous = at - 1;
      symbols_[at].next = at + 1 < size ? at + 1 : -1;
      if (at > 0) consider(at - 1);
    }
    std::make_heap(candidates_.begin(), candidates_.end());
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end());
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      apply(best);
    }
    for (int32_t at = size > 0 ? 0 : -1; at >= 0; at = symbols_[at].next) {
      visit(symbols_[at].id, symbols_[at].bytes);
    }
  }

 private:
  struct Symbol {
    int32_t id;  // -1 where it was merged into the one before it
    int32_t previous, next;
    int32_t bytes;
  };
  struct Candidate {
    const Merge* merge;
    int32_t at;  // of the left one
    bool operator<(const Candidate& other) const {
      return std::tie(other.merge->rank, other.at) < std::tie(merge->rank, at);
    }
  };

  bool consider(int32_t at) {
    const Merge* const merge = merges_.find(symbols_[at].id, symbols_[symbols_[at].next].id);
    if (merge != nullptr) candidates_.push_back({merge, at});
    return merge != nullptr;
  }

  void apply(const Candidate& best) {
    Symbol& left = symbols_[best.at];
    if (left.id != best.merge->left || left.next < 0) return;  // merged meanwhile
    Symbol& right = symbols_[left.next];
    if (right.id != best.merge->right) return;
    left.id = best.merge->id;
    left.bytes += right.bytes;
    left.next = std::exchange(right.next, -1);
    right.id = -1;
    if (left.next >= 0) symbols_[left.next].previous = best.at;
    for (const int32_t at : {left.next >= 0 ? best.at : -1, left.previous}) {
      if (at >= 0 && consider(at)) std::push_heap(candidates_.begin(), candidates_.end());
    }
  }

  const Merges& merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;  // a heap
};

class ByteLevelBpeTokenizer : public ModelTokenizer {
 public:
  explicit ByteLevelBpeTokenizer(const ByteLevelBpeSpec& spec)
      : ModelTokenizer(spec.common, make_vocabulary(spec.common, spec.pieces), {},
                       fmt::format("{} ({})", spec.of_characters ? "BPE" : "Byte-level BPE",
                                   file_name(spec.common))),
        merges_(spec, vocabulary_),
        ignore_merges_(spec.ignore_merges),
        add_prefix_space_(spec.add_prefix_space),
        trim_offsets_(spec.common.trim_offsets),
        of_characters_(spec.of_characters),
        fuses_unk_(spec.fuses_unk),
        splits_(spec.splits),
        metaspace_(spec.metaspace),
        unk_(spec.unk.empty() ? -1 : vocabulary_.find(spec.unk)) {
    int missing = 0;
    for (int byte = 0; byte < 256; ++byte) {
      if (of_characters_)
        spellings_[byte] = fmt::format("<0x{:02X}>", byte);
      else
        append_character(byte_character(static_cast<unsigned char>(byte)), spellings_[byte]);
      const std::optional<int32_t> id = vocabulary_.model_id(spellings_[byte]);
      if (of_characters_) {
        byte_ids_[byte] = spec.byte_fallback ? id.value_or(-1) : -1;
        continue;
      }
      byte_ids_[byte] = id.value_or(unk_);
      const bool in_utf8 = byte < 0xc0 || (byte > 0xc1 && byte < 0xf5);
      if (!id && in_utf8) ++missing;
    }
    if (missing == 0) return;
    notes_.push_back(fmt::format("bytes without a piece in the vocabulary: {}; texts {}", missing,
                                 unk_ >= 0 ? "have an unknown token in their place" : "lose them"));
  }

  std::optional<int32_t> unknown_id() const override {
    return unk_ >= 0 ? std::optional(unk_) : std::nullopt;
  }

 private:
  SpecialTokens::EncodePart part_encoder() const override {
    return [this, merger = WordMerger(merges_)](const AlignedView& part, bool after_special,
                                                TokenList& tokens) mutable {
      if (part.text.empty()) return;
      if (metaspace_) {
        metaspace_->for_each_word(part, after_special, [&](const AlignedView& word) {
          encode_word(word, merger, tokens);
        });
      } else if (add_prefix_space_ && part.text.front() != ' ') {
        encode_split(prepend(part, " "), splits_, merger, tokens);
      } else {
        encode_split(part, splits_, merger, tokens);
      }
    };
  }

  /// `splits`: those that are left to do.
  void encode_split(const AlignedView& part,
                    std::span<const std::shared_ptr<const SplitPattern>> splits, WordMerger& merger,
                    TokenList& tokens) const {
    if (splits.empty()) return encode_word(part, merger, tokens);
    splits.front()->for_each(part.text, [&](std::string_view piece) {
      encode_split(part.part(piece), splits.subspan(1), merger, tokens);
    });
  }

  void encode_word(const AlignedView& whole, WordMerger& merger, TokenList& tokens) const {
    constexpr size_t kMaxWord = std::numeric_limits<int32_t>::max();
    const std::string_view word = whole.text;
    if (word.size() > kMaxWord) {
      refuse<InvalidArgument>("a word of {} bytes; at most {} are read; split the text",
                              word.size(), kMaxWord);
    }
    if (ignore_merges_) {
      std::string spelling(of_characters_ ? word : "");
      for (const char byte : of_characters_ ? "" : word)
        spelling += spellings_[static_cast<unsigned char>(byte)];
      if (const auto id = vocabulary_.model_id(spelling)) return append_trimmed(*id, whole, tokens);
    }
    merger.begin(word.size());
    if (of_characters_) {
      add_characters(word, merger);
    } else {
      for (const char byte : word) {
        const int32_t id = byte_ids_[static_cast<unsigned char>(byte)];
        if (id >= 0) merger.add(id, 1);
      }
    }
    size_t at = 0;
    merger.merge([&](int32_t id, int32_t bytes) {
      append_trimmed(id, whole.substr(at, static_cast<size_t>(bytes)), tokens);
      at += static_cast<size_t>(bytes);
    });
  }

  void append_trimmed(int32_t id, const AlignedView& from, TokenList& tokens) const {
    append(id, from, tokens);
    if (!trim_offsets_ || from.sources == nullptr) return;
    const size_t spaces = std::min(from.text.find_first_not_of(' '), from.text.size());
    tokens.offsets.back() = from.span_of(from.text.substr(spaces));
  }

  void add_characters(std::string_view word, WordMerger& merger) const {
    int32_t unknown = 0;  // bytes of a token that comes before the next character that is a piece
    const auto add_unknown = [&] {
      if (unknown > 0) merger.add(unk_, std::exchange(unknown, 0));
    };
    for (size_t size = 0; !word.empty(); word.remove_prefix(size)) {
      size = character_size(word);
      const std::string character(word.substr(0, size));
      const auto is_piece = [&](char byte) {
        return byte_ids_[static_cast<unsigned char>(byte)] >= 0;
      };
      const std::optional<int32_t> id = vocabulary_.model_id(character);
      const bool as_bytes = !id && std::ranges::all_of(character, is_piece);
      if (id) {
        add_unknown();
        merger.add(*id, static_cast<int32_t>(size));
      } else if (as_bytes) {  // before an unknown one that comes before them, as in tokenizers
        for (const char byte : character)
          merger.add(byte_ids_[static_cast<unsigned char>(byte)], 1);
      } else if (unk_ >= 0) {
        if (!fuses_unk_) add_unknown();
        unknown += static_cast<int32_t>(size);
      }
    }
    add_unknown();
  }

  const Merges merges_;
  const bool ignore_merges_, add_prefix_space_, trim_offsets_, of_characters_, fuses_unk_;
  const Splits splits_;
  const std::optional<MetaspaceRules> metaspace_;
  const int32_t unk_;  // -1: none
  std::array<std::string, 256> spellings_;
  std::array<int32_t, 256> byte_ids_ = {};  // -1: none
};

}  // namespace

char32_t byte_character(unsigned char byte) {
  if (byte <= 0x20) return 0x100 + byte;
  if (byte >= 0x7f && byte <= 0xa0) return 0x121 + (byte - 0x7f);
  return byte == 0xad ? 0x143 : byte;
}

std::shared_ptr<const Tokenizer> make_byte_level_bpe(const ByteLevelBpeSpec& spec) {
  if (spec.merges.empty()) {
    refuse<ModelError>(
        "{}: no merge of this byte-level BPE tokenizer could be read; get the file again, or "
        "give token ids instead of text (infer --ids \"5 17 9\")",
        spec.merges_file);
  }
  if (std::ssize(spec.merges) > kMaxPieces)
    refuse<ModelError>("{}: more than {} merges", spec.merges_file, kMaxPieces);
  return std::make_shared<ByteLevelBpeTokenizer>(spec);
}

}  // namespace phasor::internal
