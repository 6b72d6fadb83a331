// The only file that includes SentencePiece's header (which declares a namespace absl).
#include "tokenizer/sentencepiece_library.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "files/refuse.h"
#include "files/utf8.h"

namespace phasor::internal {
namespace {

class LibraryCutter : public PieceCutter {
 public:
  LibraryCutter(const CheckedModel& model, const std::string& file)
      : text_(model.rules, model.pieces), file_(file) {
    // SentencePiece's own message names a line of its source code, so it is not shown.
    if (!processor_.LoadFromSerializedProto(model.bytes).ok()) {
      refuse<ModelError>("{}: not a SentencePiece model ({} bytes); get the file again", file,
                         model.bytes.size());
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
        if (surface.text == piece.piece()) {
          visit(surface, number);
          continue;
        }
        // A byte: the last of a character's has all of its span.
        Source source = whole.source_of(rest.substr(piece.begin()));
        source.end =
            surface.text.empty() ? source.begin : static_cast<uint32_t>(surface.span().end);
        AlignedText spelled = AlignedText::of(whole);
        spelled.append(piece.piece(), source);
        visit(spelled, number);
      }
      rest.remove_prefix(end);
    }
    end_unknown();
  }

 private:
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
    if (processor_.Encode(text, encoded.mutable_proto()).ok()) return encoded;
    refuse<ModelError>("{}: SentencePiece cannot cut a text of {} bytes with this model", file_,
                       text.size());
  }

  sentencepiece::SentencePieceProcessor processor_;
  const SentencePieceText text_;
  const std::string file_;
  bool spaces_end_words_ = false;
};

}  // namespace

std::unique_ptr<PieceCutter> make_library_cutter(const CheckedModel& model,
                                                 const std::string& file) {
  return std::make_unique<LibraryCutter>(model, file);
}

}  // namespace phasor::internal
