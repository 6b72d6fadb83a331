// Reads the protocol buffer field by field, because libsentencepiece installs no header for it. The
// fields are those of sentencepiece_model.proto; unknown ones are left to the library.
#include "tokenizer/sentencepiece_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/crowding.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostPieces = int64_t{1} << 21;
constexpr size_t kMaxPieceBytes = 1024;             // the library recurses once for each byte
constexpr size_t kMaxTotalBytes = size_t{1} << 24;  // the library takes about 35 bytes for each
constexpr size_t kMaxNested = 64;                   // the size of an array of its PrefixMatcher

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

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

  CheckedModel run() {
    for_each_field(model_, [&](const Field& field) {
      if (field.is(1, kBytes)) read_piece(field.bytes);
      if (field.is(2, kBytes)) read_trainer(field.bytes);
      if (field.is(3, kBytes)) read_rules(field.bytes);
      if (field.number < 3 || field.number > 5) kept_.bytes += field.whole;
    });
    // NormalizerSpec: add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces are false.
    kept_.bytes += std::string_view("\x1a\6\x18\0\x20\0\x28\0", 8);
    if (kept_.pieces.empty()) refuse_format();
    if (pieces_.empty() && kept_.type == CheckedModel::kUnigram) fail("it has no pieces for texts");
    check_unknown();
    check_bytes();
    check_nesting();
    check_unused();
    return std::move(kept_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
    refuse<ModelError>("{}: {}; get the file again", file_,
                       fmt::format(what, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse_format() const {
    fail("not a SentencePiece model ({} bytes)", model_.size());
  }
  template <typename Visit>
  void for_each_field(std::string_view message, const Visit& visit) const {
    while (!message.empty()) {
      const std::optional<Field> field = take_field(message);
      if (!field) refuse_format();
      visit(*field);
    }
  }

  void read_piece(std::string_view message) {
    ModelPiece piece;
    uint64_t type = ModelPiece::kNormal;
    float score = 0;
    const size_t number = kept_.pieces.size();
    for_each_field(message, [&](const Field& field) {
      if (field.is(1, kBytes)) piece.text = field.bytes;
      if (field.is(2, kFixed32)) std::memcpy(&score, field.bytes.data(), sizeof(score));
      if (!field.is(3, kVarint)) return;
      type = field.value;
      if (type < ModelPiece::kNormal || type > ModelPiece::kByte) {
        fail("piece {} has the type {}; types run from {} to {}", number, type,
             static_cast<int>(ModelPiece::kNormal), static_cast<int>(ModelPiece::kByte));
      }
    });
    piece.type = static_cast<ModelPiece::Type>(type);
    piece.score = score;
    const auto refuse_piece = [&](const std::string& what) { fail("piece {} {}", number, what); };
    const std::string_view text = piece.text;
    if (text.empty()) refuse_piece("is empty");
    if (text.size() > kMaxPieceBytes)
      refuse_piece(fmt::format("has {} bytes; at most {} are read", text.size(), kMaxPieceBytes));
    if (text.find('\0') != text.npos) refuse_piece("contains the character U+0000");
    if (to_valid_utf8(text).invalid_bytes > 0) refuse_piece("is not valid UTF-8");
    if (!std::isfinite(score)) refuse_piece(fmt::format("has the score {}", score));
    if (number == kMostPieces) fail("it has more than {} pieces", kMostPieces);
    if ((total_bytes_ += text.size()) > kMaxTotalBytes)
      fail("its pieces have more than {} bytes together", kMaxTotalBytes);
    auto& known = piece.is_in_text() ? pieces_ : reserved_;
    insert_uncrowded(known, text, file_);
    if (pieces_.size() + reserved_.size() == number) refuse_piece("repeats an earlier one");
    if (type == ModelPiece::kUserDefined) user_defined_.push_back(text);
    if (type == ModelPiece::kUnused) unused_.push_back(std::hash<std::string_view>()(text));
    kept_.pieces.push_back(piece);
  }

  void read_trainer(std::string_view trainer) {
    constexpr uint64_t kModelType = 3, kSpaceAtEnd = 24, kByteFallback = 35, kUnkPiece = 45;
    for_each_field(trainer, [&](const Field& field) {
      const auto type = static_cast<int32_t>(field.value);
      // Like the library, ignores an unknown type and keeps the previous one.
      const bool known = type >= CheckedModel::kUnigram && type <= CheckedModel::kCharacter;
      if (field.is(kModelType, kVarint) && known)
        kept_.type = static_cast<CheckedModel::Type>(type);
      if (field.is(kSpaceAtEnd, kVarint)) kept_.rules.space_at_end = field.value != 0;
      if (field.is(kByteFallback, kVarint)) kept_.byte_fallback = field.value != 0;
      if (field.is(kUnkPiece, kBytes)) unk_piece_ = field.bytes;
    });
  }

  void read_rules(std::string_view normalizer) {
    SentencePieceRules& rules = kept_.rules;
    for_each_field(normalizer, [&](const Field& field) {
      if (field.is(2, kBytes)) rules.charsmap = field.bytes;
      if (field.is(3, kVarint)) rules.add_space = field.value != 0;
      if (field.is(4, kVarint)) rules.collapse_spaces = field.value != 0;
      if (field.is(5, kVarint)) rules.mark_spaces = field.value != 0;
    });
    if (rules.charsmap.empty()) return;
    const std::string fault = charsmap_fault(rules.charsmap);
    if (!fault.empty()) fail("normalizer_spec.precompiled_charsmap: {}", fault);
  }

  void check_unknown() const {
    int64_t count = 0;
    bool named = false, other = false;  // by trainer_spec.unk_piece
    for (const ModelPiece& piece : kept_.pieces) {
      const bool unknown = piece.type == ModelPiece::kUnknown;
      if (unknown) ++count;
      if (piece.text == unk_piece_) (unknown ? named : other) = true;
    }
    if (count != 1) fail("{} pieces are of the type UNKNOWN, where there must be one", count);
    if (other && !named)
      fail("trainer_spec.unk_piece names a piece that is not of the type UNKNOWN");
  }

  void check_bytes() const {
    size_t count = 0;
    for (const ModelPiece& piece : kept_.pieces) {
      if (piece.type != ModelPiece::kByte) continue;
      unsigned byte = 0;
      const std::string_view text = piece.text;
      if (text.size() == 6) std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
      if (!kept_.byte_fallback || text != fmt::format("<0x{:02X}>", byte))
        fail("the piece '{}' is of the type BYTE", text);
      ++count;
    }
    if (kept_.byte_fallback && count != 256)
      fail("{} pieces are of the type BYTE, where there must be 256", count);
  }

  /// The library writes all user-defined pieces that match at one place of a text into one array.
  void check_nesting() {
    std::ranges::sort(user_defined_);
    std::vector<std::string_view> nested;  // each begins with the previous one
    for (const std::string_view piece : user_defined_) {
      while (!nested.empty() && !piece.starts_with(nested.back())) nested.pop_back();
      nested.push_back(piece);
      if (nested.size() > kMaxNested) {
        fail("more than {} user-defined pieces begin with one another, '{}' the first", kMaxNested,
             nested.front());
      }
    }
  }

  /// In a BPE model, the library hashes a text's unused pieces into a growing table, so they must
  /// not collide at any size.
  void check_unused() const {
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

  std::string_view model_;
  const std::string& file_;
  CheckedModel kept_;
  std::string_view unk_piece_ = "<unk>";
  size_t total_bytes_ = 0;
  std::vector<std::string_view> user_defined_;
  std::vector<size_t> unused_;                              // the hashes of pieces
  std::unordered_set<std::string_view> pieces_, reserved_;  // as in the library's two tables
};

}  // namespace

CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file) {
  return ModelCheck(model, file).run();
}

}  // namespace phasor::internal
