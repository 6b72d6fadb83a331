// Reads the protocol buffer field by field, because libsentencepiece installs no header for it. The
// fields are those of sentencepiece_model.proto; unknown ones are left out.
#include "tokenizer/sentencepiece_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/seeded_hash.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostPieces = int64_t{1} << 21;
constexpr size_t kMaxPieceBytes = 1024;  // the library recurses once for each byte
constexpr size_t kMaxNested = 64;        // the size of an array of its PrefixMatcher

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t number = 0;
  uint64_t wire_type = 0;
  uint64_t value = 0;           // of kVarint and kFixed32
  std::string_view bytes = {};  // of the other types

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
    });
    if (kept_.pieces.empty()) refuse_format();
    if (pieces_.empty() && kept_.type == CheckedModel::kUnigram) fail("it has no pieces for texts");
    check_unknown();
    check_bytes();
    check_nesting();
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
    if ((total_bytes_ += text.size()) > PieceTrie::kMostBytes)
      fail("its pieces have more than {} bytes together", PieceTrie::kMostBytes);
    if (!(piece.is_in_text() ? pieces_ : reserved_).insert(text).second)
      refuse_piece("repeats an earlier one");
    if (type == ModelPiece::kUserDefined) user_defined_.push_back(text);
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
    std::string_view charsmap;
    for_each_field(normalizer, [&](const Field& field) {
      if (field.is(2, kBytes)) charsmap = field.bytes;
      if (field.is(3, kVarint)) rules.add_space = field.value != 0;
      if (field.is(4, kVarint)) rules.collapse_spaces = field.value != 0;
      if (field.is(5, kVarint)) rules.mark_spaces = field.value != 0;
    });
    if (charsmap.empty()) return;
    try {
      rules.charsmap = std::make_shared<const Charsmap>(charsmap);
    } catch (const Charsmap::Fault& fault) {
      fail("normalizer_spec.precompiled_charsmap: {}", fault.what());
    }
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

  std::string_view model_;
  const std::string& file_;
  CheckedModel kept_;
  std::string_view unk_piece_ = "<unk>";
  size_t total_bytes_ = 0;
  std::vector<std::string_view> user_defined_;
  std::unordered_set<std::string_view, SeededHash> pieces_, reserved_;
};

}  // namespace

CheckedModel checked_sentencepiece_model(std::string_view model, const std::string& file) {
  return ModelCheck(model, file).run();
}

}  // namespace phasor::internal
