// Reads the protocol buffer field by field, because libsentencepiece installs no header for it. The
// fields are those of sentencepiece_model.proto; unknown ones are left to the library.
#include "tokenizer/sentencepiece_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "phasor/errors.h"
#include "tokenizer/crowding.h"
#include "tokenizer/utf8.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostPieces = int64_t{1} << 21;
constexpr size_t kMaxPieceBytes = 1024;             // the library recurses once for each byte
constexpr size_t kMaxTotalBytes = size_t{1} << 24;  // the library takes about 35 bytes for each
constexpr size_t kMaxNested = 64;                   // the size of an array of its PrefixMatcher

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;       // spreads a score's bits

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
enum PieceType { kNormal = 1, kUnknown = 2, kUserDefined = 4, kUnused = 5, kLastType = 6 };

struct Field {
  uint64_t number = 0;
  uint64_t wire_type = 0;
  uint64_t value = 0;           // of kVarint and kFixed32
  std::string_view bytes = {};  // of the other types
  std::string_view whole = {};  // including its tag

  bool is(uint64_t wanted, WireType type) const { return number == wanted && wire_type == type; }
};

std::optional<uint64_t> take_varint(std::string_view& message) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !message.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(message.front());
    message.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Removes the first field from `message` and returns it.
std::optional<Field> take_field(std::string_view& message) {
  const char* const begin = message.data();
  const std::optional<uint64_t> tag = take_varint(message);
  if (!tag || *tag > std::numeric_limits<uint32_t>::max() || *tag < 8) return std::nullopt;
  Field field{.number = *tag >> 3, .wire_type = *tag & 7};
  std::optional<uint64_t> size;
  if (field.wire_type == kVarint) {
    const std::optional<uint64_t> value = take_varint(message);
    if (!value) return std::nullopt;
    field.value = *value;
    size = 0;
  } else if (field.wire_type == kBytes) {
    size = take_varint(message);
  } else if (field.wire_type == kFixed32) {
    size = 4;
  } else if (field.wire_type == kFixed64) {
    size = 8;
  }
  if (!size || *size > message.size()) return std::nullopt;
  field.bytes = message.substr(0, *size);
  message.remove_prefix(*size);
  field.whole = std::string_view(begin, message.data() - begin);
  if (field.wire_type == kFixed32) std::memcpy(&field.value, field.bytes.data(), 4);
  return field;
}

class ModelCheck {
 public:
  ModelCheck(std::string_view model, const std::string& file) : model_(model), file_(file) {}

  CheckedModel run();

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ModelError(fmt::format("{}: {}; get the file again", file_, what));
  }
  [[noreturn]] void refuse_format() const {
    refuse(fmt::format("not a SentencePiece model ({} bytes)", model_.size()));
  }
  template <typename Visit>
  void for_each_field(std::string_view message, const Visit& visit) const;
  void check_piece(std::string_view message);
  void check_rules(std::string_view normalizer, const char* name, CharsmapGrowth& growth) const;
  void check_nesting();
  void check_unused() const;

  std::string_view model_;
  const std::string& file_;
  int64_t num_pieces_ = 0;
  uint64_t fingerprint_ = 0;
  int64_t num_unknown_ = 0;
  size_t total_bytes_ = 0;
  std::vector<std::string_view> user_defined_;
  std::vector<size_t> unused_;                              // the hashes of pieces
  std::unordered_set<std::string_view> pieces_, reserved_;  // as in the library's two tables
};

template <typename Visit>
void ModelCheck::for_each_field(std::string_view message, const Visit& visit) const {
  while (!message.empty()) {
    const std::optional<Field> field = take_field(message);
    if (!field) refuse_format();
    visit(*field);
  }
}

CheckedModel ModelCheck::run() {
  CheckedModel kept;
  CharsmapGrowth of_denormalizer;
  bool of_words = false;
  for_each_field(model_, [&](const Field& field) {
    if (field.is(1, kBytes)) check_piece(field.bytes);
    if (field.is(2, kBytes)) {
      for_each_field(field.bytes, [&](const Field& option) {
        constexpr uint64_t kModelType = 3, kUnigram = 1, kBpe = 2, kCharacter = 4;
        // Each that the library may read as words: it keeps the one before an unknown value.
        const bool is_type = option.is(kModelType, kVarint);
        of_words |= is_type && option.value != kUnigram && option.value != kBpe &&
                    option.value != kCharacter;
      });
    }
    if (field.is(3, kBytes)) {
      check_rules(field.bytes, "normalizer_spec", kept.growth);
      for_each_field(field.bytes, [&](const Field& option) {
        constexpr uint64_t kEscapeWhitespaces = 5;
        if (option.is(kEscapeWhitespaces, kVarint)) kept.spaces_are_pieces = option.value != 0;
      });
    }
    if (field.is(5, kBytes)) check_rules(field.bytes, "denormalizer_spec", of_denormalizer);
    if (!field.is(4, kBytes)) kept.bytes += field.whole;
  });
  if (num_pieces_ == 0) refuse_format();
  if (num_unknown_ != 1) {
    refuse(fmt::format("{} pieces are of the type UNKNOWN, where there must be one", num_unknown_));
  }
  check_nesting();
  check_unused();
  kept.spaces_are_pieces = kept.spaces_are_pieces && !of_words;
  kept.pieces = fingerprint_;
  return kept;
}

void ModelCheck::check_piece(std::string_view message) {
  std::string_view text;
  float score = 0;
  uint64_t type = kNormal;
  for_each_field(message, [&](const Field& field) {
    if (field.is(1, kBytes)) text = field.bytes;
    if (field.is(2, kFixed32)) std::memcpy(&score, field.bytes.data(), sizeof(score));
    if (!field.is(3, kVarint)) return;
    type = field.value;
    if (type < kNormal || type > kLastType) {
      refuse(fmt::format("piece {} has the type {}; types run from {} to {}", num_pieces_, type,
                         static_cast<int>(kNormal), static_cast<int>(kLastType)));
    }
  });
  const auto refuse_piece = [&](const std::string& what) {
    refuse(fmt::format("piece {} {}", num_pieces_, what));
  };
  if (text.empty()) refuse_piece("is empty");
  if (text.size() > kMaxPieceBytes) {
    refuse_piece(fmt::format("has {} bytes; at most {} are read", text.size(), kMaxPieceBytes));
  }
  if (text.find('\0') != text.npos) refuse_piece("contains the character U+0000");
  if (to_valid_utf8(text).invalid_bytes > 0) refuse_piece("is not valid UTF-8");
  if (!std::isfinite(score)) refuse_piece(fmt::format("has the score {}", score));
  if (++num_pieces_ > kMostPieces) {
    refuse(fmt::format("it has more than {} pieces", kMostPieces));
  }
  if ((total_bytes_ += text.size()) > kMaxTotalBytes) {
    refuse(fmt::format("its pieces have more than {} bytes together", kMaxTotalBytes));
  }
  const bool in_text = type == kNormal || type == kUserDefined || type == kUnused;
  if (in_text) {
    fingerprint_ += std::hash<std::string_view>()(text) ^ std::bit_cast<uint32_t>(score) * kOdd;
  }
  insert_uncrowded(in_text ? pieces_ : reserved_, text, file_);
  if (type == kUnknown) ++num_unknown_;
  if (type == kUserDefined) user_defined_.push_back(text);
  if (type == kUnused) unused_.push_back(std::hash<std::string_view>()(text));
}

void ModelCheck::check_rules(std::string_view normalizer, const char* name,
                             CharsmapGrowth& growth) const {
  for_each_field(normalizer, [&](const Field& field) {
    if (!field.is(2, kBytes) || field.bytes.empty()) return;
    const std::string fault = charsmap_fault(field.bytes, growth);
    if (!fault.empty()) refuse(fmt::format("{}.precompiled_charsmap: {}", name, fault));
  });
}

/// The library writes all user-defined pieces that match at one place of a text into one array.
void ModelCheck::check_nesting() {
  std::sort(user_defined_.begin(), user_defined_.end());
  std::vector<std::string_view> nested;  // each begins with the previous one
  for (const std::string_view piece : user_defined_) {
    while (!nested.empty() && !piece.starts_with(nested.back())) nested.pop_back();
    nested.push_back(piece);
    if (nested.size() > kMaxNested) {
      refuse(fmt::format("more than {} user-defined pieces begin with one another, '{}' the first",
                         kMaxNested, nested.front()));
    }
  }
}

/// Of a BPE model, the library puts the unused pieces that a text makes into a table that grows
/// with them. So they must not collide in a table of any size that it may have.
void ModelCheck::check_unused() const {
  std::unordered_set<size_t> sizes;  // grows as that table does
  std::vector<size_t> pieces;        // of each bucket
  for (size_t i = 0, buckets = sizes.bucket_count(); i < unused_.size(); ++i) {
    sizes.insert(i);
    if (sizes.bucket_count() == std::exchange(buckets, sizes.bucket_count())) continue;
    pieces.assign(buckets, 0);
    const size_t most = kMostInOneBucket + 2 * unused_.size() / buckets;
    for (const size_t hash : unused_) {
      if (++pieces[hash % buckets] > most) refuse_crowded(file_, most);
    }
  }
}

}  // namespace

CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file) {
  return ModelCheck(model, file).run();
}

}  // namespace phasor::internal
