// The only file that includes SentencePiece's header (which declares a namespace absl).
#include "tokenizer/sentencepiece_library.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

class LibraryCutter : public PieceCutter {
 public:
  LibraryCutter(const CheckedModel& model, const std::string& file)
      : text_(model.rules, model.pieces), file_(file) {
    // SentencePiece's own message names a line of its source code, so it is not shown.
    if (!processor_.LoadFromSerializedProto(model.bytes).ok()) {
      throw ModelError(fmt::format("{}: not a SentencePiece model ({} bytes); get the file again",
                                   file, model.bytes.size()));
    }
    // An unknown character like the others does not end their run.
    const bool known = std::ranges::any_of(model.pieces, [](const ModelPiece& piece) {
      return piece.text == kSpaceMark &&
             (piece.type == ModelPiece::kNormal || piece.type == ModelPiece::kUserDefined);
    });
    spaces_end_words_ = known && model.type != CheckedModel::kWord;
  }

  void cut(std::string_view text, bool joined, const Visit& visit) const override {
    const std::string normalized = text_.normalized(text, joined);
    Pieces pieces;
    for (std::string_view rest = normalized; !rest.empty();) {
      const size_t end = end_of_part(rest), before = pieces.size();
      append(rest.substr(0, end), pieces);
      rest.remove_prefix(end);
      // A run of unknown characters stays one piece.
      if (before == 0 || !is_unknown(pieces[before - 1]) || !is_unknown(pieces[before])) continue;
      pieces[before - 1].first += pieces[before].first;
      pieces.erase(pieces.begin() + static_cast<int64_t>(before));
    }
    for (const auto& [piece, number] : pieces) visit(piece, number);
  }

 private:
  using Pieces = std::vector<std::pair<std::string, int32_t>>;

  /// Where the first word of `text` that is too long is cut; the end, where none is. The library
  /// makes one piece of a run of unknown characters, in a time that grows with the square of its
  /// length. The tokens beside the cut may differ from those of the whole.
  size_t end_of_part(std::string_view text) const {
    constexpr size_t kLongest = size_t{1} << 16;  // bytes
    size_t word = 0;                              // where it begins
    for (size_t i = 0; text.size() - word > kLongest && i < text.size(); ++i) {
      const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
      if (i - word >= kLongest && begins_character) return i;
      if (spaces_end_words_ && text.substr(i).starts_with(kSpaceMark)) word = i;
    }
    return text.size();
  }

  bool is_unknown(const Pieces::value_type& piece) const {
    return piece.second == processor_.unk_id();
  }

  void append(std::string_view text, Pieces& pieces) const {
    sentencepiece::ImmutableSentencePieceText encoded;
    if (!processor_.Encode(text, encoded.mutable_proto()).ok()) {
      throw ModelError(fmt::format(
          "{}: SentencePiece cannot cut a text of {} bytes with this model", file_, text.size()));
    }
    for (const auto& piece : encoded.pieces()) pieces.emplace_back(piece.piece(), piece.id());
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
