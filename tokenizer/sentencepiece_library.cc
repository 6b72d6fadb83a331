// The only file that includes SentencePiece's header (which declares a namespace absl).

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/seeded_hash.h"
#include "tokenizer/sentencepiece_check.h"

namespace phasor::internal {
namespace {

/// Other characters, chosen at random, for those of pieces and texts: the library's tables have no
/// seed, and whoever writes a file must not choose which of its pieces share a bucket there. Each
/// becomes one with the same bytes but the last (of four: the last two, for any may stand there);
/// U+2581, at which the library cuts words, stays.
class Disguise {
 public:
  Disguise() {
    std::iota(others_.begin(), others_.end(), '\0');
    const auto hash = [](char c) { return SeededHash()(std::string_view(&c, 1)); };
    for (const auto& [first, end] : {std::pair(0x01, 0x80), {0x80, 0xc0}})
      std::sort(&others_[first], &others_[end], [&](char a, char b) { return hash(a) < hash(b); });
  }

  std::string operator()(std::string_view text) const {
    std::string result(text);
    for (size_t i = 0; i < text.size(); ++i) {
      if (i + 1 < text.size() && is_inside_character(text[i + 1])) continue;
      constexpr char kLastOfMark = kSpaceMark.back();
      const bool beside_mark = i >= 2 && text.substr(i - 2, 2) == kSpaceMark.substr(0, 2);
      if (beside_mark && text[i] == kLastOfMark) continue;
      result[i] = other(text[i]);
      if (beside_mark && result[i] == kLastOfMark) result[i] = other(kLastOfMark);
      const bool four_bytes = i >= 3 && static_cast<unsigned char>(text[i - 3]) >= 0xf0;
      if (four_bytes) result[i - 1] = other(text[i - 1]);
    }
    return result;
  }

 private:
  char other(char c) const { return others_[static_cast<unsigned char>(c)]; }

  std::array<char, 256> others_;
};

std::string varint_field(uint64_t number, uint64_t value) {
  std::string bytes;
  for (uint64_t rest : {number << 3, value}) {
    for (; rest >= 0x80; rest >>= 7) bytes += static_cast<char>(0x80 | (rest & 0x7f));
    bytes += static_cast<char>(rest);
  }
  return bytes;
}

std::string bytes_field(uint64_t number, std::string_view bytes) {
  std::string field = varint_field(number, bytes.size());
  field[0] |= 2;
  return field.append(bytes);
}

class LibraryCutter : public PieceCutter {
 public:
  LibraryCutter(const CheckedModel& model, const std::string& file)
      : text_(model.rules, model.pieces), file_(file) {
    // SentencePiece's own message names a line of its source code, so it is not shown.
    if (!processor_.LoadFromSerializedProto(disguised(model)).ok()) {
      refuse<ModelError>("{}: not a SentencePiece model ({} pieces); get the file again", file,
                         model.pieces.size());
    }
    for (size_t n = 0; n < model.pieces.size(); ++n) {
      if (model.pieces[n].type != ModelPiece::kByte) continue;
      // checked_sentencepiece_model() has checked that it is of the form "<0xE2>".
      const int byte = std::stoi(std::string(model.pieces[n].text.substr(3, 2)), nullptr, 16);
      byte_numbers_[static_cast<size_t>(byte)] = static_cast<int32_t>(n);
    }
    // An unknown character like the others does not end their run.
    const bool known = std::ranges::any_of(model.pieces, [](const ModelPiece& piece) {
      return piece.text == kSpaceMark &&
             (piece.type == ModelPiece::kNormal || piece.type == ModelPiece::kUserDefined);
    });
    spaces_end_words_ = known && model.type != CheckedModel::kWord;
  }

  void cut(const AlignedView& text, bool joined, size_t most, const Visit& visit) const override {
    const AlignedText normalized = text_.normalized(text, joined, most);
    const AlignedView whole = normalized;
    AlignedText unknown =
        AlignedText::of(whole);  // ends what was read: a run of unknown characters is one piece
    const auto end_unknown = [&] {
      if (unknown.size() > 0) visit(unknown, processor_.unk_id());
      unknown.clear();
    };
    for (std::string_view rest = whole.text; !rest.empty();) {
      const size_t end = end_of_part(rest);
      const sentencepiece::ImmutableSentencePieceText encoded = encode(rest.substr(0, end));
      for (size_t i = 0; i < encoded.pieces_size(); ++i) {
        const auto piece = encoded.pieces(static_cast<int>(i));
        const auto number = static_cast<int32_t>(piece.id());
        const AlignedView surface =
            whole.part(rest.substr(piece.begin(), piece.end() - piece.begin()));
        if (number == processor_.unk_id()) {
          unknown.append(surface);
          continue;
        }
        end_unknown();
        if (!processor_.IsByte(number)) {
          visit(surface, number);
          continue;
        }
        // The library's bytes are those of the disguise; the last has what they stand for.
        if (!surface.text.empty()) visit_bytes(surface, visit);
      }
      rest.remove_prefix(end);
    }
    end_unknown();
  }

 private:
  /// What the library gets of a model: no rules, for its texts are normalized, and no
  /// self_test_data, which it would tokenize during loading, for any length of time.
  std::string disguised(const CheckedModel& model) const {
    std::string bytes, unknown;
    for (const ModelPiece& piece : model.pieces) {
      const bool is_byte = piece.type == ModelPiece::kByte;
      const std::string text = is_byte ? std::string(piece.text) : disguise_(piece.text);
      if (piece.type == ModelPiece::kUnknown) unknown = text;
      std::string score =
          "\x15"
          "1234";  // field 2, of four bytes
      const auto value = static_cast<float>(piece.score);
      std::memcpy(&score[1], &value, sizeof(value));
      bytes += bytes_field(1, bytes_field(1, text) + score + varint_field(3, piece.type));
    }
    // TrainerSpec: model_type, treat_whitespace_as_suffix, byte_fallback, unk_piece.
    // NormalizerSpec: add_dummy_prefix, remove_extra_whitespaces and escape_whitespaces are false.
    return bytes +
           bytes_field(2, varint_field(3, model.type) + varint_field(24, model.rules.space_at_end) +
                              varint_field(35, model.byte_fallback) + bytes_field(45, unknown)) +
           bytes_field(3, varint_field(3, 0) + varint_field(4, 0) + varint_field(5, 0));
  }

  /// Something unknown, byte by byte; the last has all of its span, as in SentencePiece.
  void visit_bytes(const AlignedView& text, const Visit& visit) const {
    const TextSpan span = text.span();
    const auto begin = static_cast<uint32_t>(span.begin), end = static_cast<uint32_t>(span.end);
    for (size_t i = 0; i < text.text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text.text[i]);
      const bool last = i + 1 == text.text.size();
      AlignedText spelled = AlignedText::of(text);
      spelled.append(fmt::format("<0x{:02X}>", byte), {begin, last ? end : begin});
      visit(spelled, byte_numbers_[byte]);
    }
  }

  /// The end of the part of `text` that the library takes at once: all, or a cut in a text or a
  /// word that is too long. The library needs some hundred bytes for each byte, and makes one piece
  /// of a run of unknown characters in a time that grows with the square of its length. The tokens
  /// beside the cut may differ from the whole text's.
  size_t end_of_part(std::string_view text) const {
    constexpr size_t kLongestWord = size_t{1} << 16, kLongest = size_t{1} << 18;  // bytes
    size_t word = 0;                                                              // where it begins
    for (size_t i = 0; text.size() - word > kLongestWord && i < text.size(); ++i) {
      if (i - word >= kLongestWord && !is_inside_character(text[i])) return i;
      if (!spaces_end_words_ || !text.substr(i).starts_with(kSpaceMark)) continue;
      word = i;
      if (i >= kLongest) return i;
    }
    return text.size();
  }

  sentencepiece::ImmutableSentencePieceText encode(std::string_view text) const {
    sentencepiece::ImmutableSentencePieceText encoded;
    if (processor_.Encode(disguise_(text), encoded.mutable_proto()).ok()) return encoded;
    refuse<ModelError>("{}: SentencePiece cannot cut a text of {} bytes with this model", file_,
                       text.size());
  }

  const Disguise disguise_;
  sentencepiece::SentencePieceProcessor processor_;
  const SentencePieceText text_;
  const std::string file_;
  std::array<int32_t, 256> byte_numbers_{};  // the pieces of bytes, where the model has them
  bool spaces_end_words_ = false;
};

}  // namespace

std::unique_ptr<PieceCutter> make_library_cutter(const CheckedModel& model,
                                                 const std::string& file) {
  return std::make_unique<LibraryCutter>(model, file);
}

}  // namespace phasor::internal
