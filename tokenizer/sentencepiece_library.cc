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

/// A private-use character in place of what a joined text follows; see append_joined().
constexpr std::string_view kHole = "\xee\x80\x80";  // U+E000

/// Cuts texts where SentencePiece would take too long: it makes one piece of a run of unknown
/// characters, in a time that grows with the square of its length after normalization. So a longer
/// word is cut: the tokens beside the cut may differ from those of the whole.
class WordLimit {
 public:
  explicit WordLimit(const CheckedModel& model)
      : most_(model.growth.most), greatest_(1 + *std::ranges::max_element(most_)) {
    // An unknown character like the others does not end their run.
    const bool known = std::ranges::any_of(model.pieces, [](const ModelPiece& piece) {
      return piece.text == "\xe2\x96\x81" &&
             (piece.type == ModelPiece::kNormal || piece.type == ModelPiece::kUserDefined);
    });
    spaces_end_words_ = model.spaces_are_pieces() && !model.growth.maps_space && known;
  }

  /// Where the first word of `text` that is too long is cut: before its last control character,
  /// which the model may take for a space, or else at any character; the end, where no word is too
  /// long.
  size_t end_of_part(std::string_view text) const {
    size_t word = 0, control = 0;  // where the word begins, and the last of these characters
    size_t cost = 0;               // the bytes of the word so far, if every rule applies
    for (size_t i = 0; cost + greatest_ * (text.size() - i) > kLongest && i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      const bool begins_character = (byte & 0xC0) != 0x80;
      if (byte < ' ') control = i;
      if (cost >= kLongest && begins_character) return control > word ? control : i;
      const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
      cost += 1 + (begins_character ? most_[256 * size_t{byte} + next] : 0);
      if (byte != ' ' || !spaces_end_words_) continue;
      word = i + 1;
      cost = 0;
    }
    return text.size();
  }

 private:
  static constexpr size_t kLongest = size_t{1} << 16;  // bytes

  const std::vector<uint8_t> most_;  // CharsmapGrowth's
  const size_t greatest_;            // of a byte
  bool spaces_end_words_ = true;
};

class LibraryCutter : public PieceCutter {
 public:
  LibraryCutter(const CheckedModel& model, const std::string& file) : limit_(model), file_(file) {
    // SentencePiece's own message names a line of its source code, so it is not shown.
    if (!processor_.LoadFromSerializedProto(model.bytes).ok()) {
      throw ModelError(fmt::format("{}: not a SentencePiece model ({} bytes); get the file again",
                                   file, model.bytes.size()));
    }
  }

  void cut(std::string_view text, bool joined, const Visit& visit) const override {
    Pieces pieces;
    while (!text.empty()) {
      const size_t end = limit_.end_of_part(text), before = pieces.size();
      append(text.substr(0, end), joined, pieces);
      text.remove_prefix(end);
      joined = true;
      // A run of unknown characters stays one piece.
      if (before == 0 || before == pieces.size()) continue;
      if (!is_unknown(pieces[before - 1]) || !is_unknown(pieces[before])) continue;
      pieces[before - 1].first += pieces[before].first;
      pieces.erase(pieces.begin() + static_cast<int64_t>(before));
    }
    for (const auto& [piece, number] : pieces) visit(piece, number);
  }

 private:
  using Pieces = std::vector<std::pair<std::string, int32_t>>;

  bool is_unknown(const Pieces::value_type& piece) const {
    return piece.second == processor_.unk_id();
  }
  void append(std::string_view text, bool joined, Pieces& pieces) const;

  sentencepiece::SentencePieceProcessor processor_;
  const WordLimit limit_;
  const std::string file_;
};

/// Of a joined text, SentencePiece's space before every text is left out, so that "[MASK]." does
/// not end with the piece "\u2581.".
void LibraryCutter::append(std::string_view text, bool joined, Pieces& pieces) const {
  sentencepiece::ImmutableSentencePieceText encoded;
  const std::string whole = (joined ? std::string(kHole) : "") + std::string(text);
  if (!processor_.Encode(whole, encoded.mutable_proto()).ok()) {
    throw ModelError(fmt::format("{}: SentencePiece cannot cut a text of {} bytes with this model",
                                 file_, text.size()));
  }
  bool past_hole = !joined;
  for (const auto& piece : encoded.pieces()) {
    // Consecutive unknown characters become one piece, which may begin with the hole.
    std::string_view rest = piece.piece();
    if (const size_t hole = past_hole ? rest.npos : rest.find(kHole); hole != rest.npos) {
      past_hole = true;
      rest.remove_prefix(hole + kHole.size());
      if (rest.empty()) continue;  // the hole, and characters that the model drops
    } else if (!past_hole && piece.end() <= kHole.size()) {
      continue;  // the space before the hole
    }
    pieces.emplace_back(rest, piece.id());
  }
}

}  // namespace

std::unique_ptr<PieceCutter> make_library_cutter(const CheckedModel& model,
                                                 const std::string& file) {
  return std::make_unique<LibraryCutter>(model, file);
}

}  // namespace phasor::internal
