#include "tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "files/utf8.h"

namespace phasor::internal {
namespace {

std::vector<std::pair<std::string_view, int32_t>> in_texts(const std::vector<ModelPiece>& pieces) {
  std::vector<std::pair<std::string_view, int32_t>> found;
  for (size_t n = 0; n < pieces.size(); ++n) {
    const auto type = pieces[n].type;
    if (type != ModelPiece::kNormal && type != ModelPiece::kUserDefined) continue;
    found.emplace_back(pieces[n].text, static_cast<int32_t>(n));
  }
  return found;
}

/// A user-defined piece has a score above all others', the higher the longer it is.
double score_of(const ModelPiece& piece) {
  if (piece.type != ModelPiece::kUserDefined) return piece.score;
  return static_cast<float>(0.1 * (static_cast<double>(piece.text.size()) - 1));
}

}  // namespace

Unigram::Unigram(const std::vector<ModelPiece>& pieces, double unknown_score,
                 const UnigramOptions& options)
    : options_(options), unknown_score_(unknown_score), trie_(in_texts(pieces)) {
  std::vector<std::pair<std::string_view, int32_t>> bytes;
  for (size_t n = 0; n < pieces.size(); ++n) {
    scores_.push_back(score_of(pieces[n]));
    longest_ = std::max(longest_, pieces[n].text.size());
    if (pieces[n].type == ModelPiece::kUnknown) unknown_ = static_cast<int32_t>(n);
    if (pieces[n].type == ModelPiece::kByte) bytes.emplace_back(pieces[n].text, n);
  }
  std::sort(bytes.begin(), bytes.end());  // "<0x00>" to "<0xFF>"
  for (const auto& [text, number] : bytes) bytes_.push_back(number);
}

void Unigram::find_best(std::string_view text, std::vector<Place>& places) const {
  places.assign(text.size() + 1, {});
  for (size_t begin = 0; begin < text.size();) {
    if (options_.float_sums) rebase(begin, places);
    const double sum_here = places[begin].sum;
    const auto offer = [&](size_t size, double score, int32_t number) {
      double sum = sum_here + score;
      if (options_.float_sums) sum = static_cast<float>(sum);  // as if added in float
      Place& place = places[begin + size];
      if (place.size == 0 || sum > place.sum) place = {sum, static_cast<uint32_t>(size), number};
    };
    const std::string_view rest = text.substr(begin);
    const size_t character = character_size(rest);
    bool known = false;
    trie_.for_each_prefix(rest, [&](size_t size, int32_t number) {
      known |= size == character;
      offer(size, scores_[number], number);
    });
    if (!known) offer(character, unknown_score_, unknown_);
    begin += character;
  }
}

/// Keeps float sums small, where SentencePiece does.
void Unigram::rebase(size_t at, std::vector<Place>& places) const {
  constexpr double kMost = 100000;
  const double sum = places[at].sum;
  if (sum >= -kMost && sum <= kMost) return;
  const size_t end = std::min(places.size(), at + longest_);
  for (size_t i = at; i < end; ++i) {
    if (i == at || places[i].size > 0) places[i].sum = static_cast<float>(places[i].sum - sum);
  }
}

void Unigram::cut(const AlignedView& text, std::vector<Place>& places,
                  const PieceCutter::Visit& visit) const {
  const size_t size = text.text.size();
  find_best(text.text, places);
  // Turns the chain of last pieces round: each place then has the piece that begins there.
  Place last = places[size];
  for (size_t at = size; at > 0;) {
    at -= last.size;
    std::swap(last, places[at]);
  }
  for (size_t at = 0; at < size;) {
    size_t end = at + places[at].size;
    const int32_t number = places[at].number;
    if (number != unknown_) {
      visit(text.substr(at, end - at), number);
    } else {
      while (end < size && places[end].number == unknown_) end += places[end].size;
      visit_unknown(text.substr(at, end - at), visit);
    }
    at = end;
  }
}

/// As in SentencePiece, the last of an unknown character's bytes has all of its span.
void Unigram::visit_unknown(const AlignedView& text, const PieceCutter::Visit& visit) const {
  if (!options_.byte_fallback) return visit(text, unknown_);
  for (size_t at = 0; at < text.text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text.text[at]);
    const AlignedView rest = text.substr(at);
    const bool last = character_size(rest.text) == 1;
    Source source = rest.source_of(rest.text);
    if (!last) source.end = source.begin;
    AlignedText piece = AlignedText::of(text);
    piece.append(fmt::format("<0x{:02X}>", byte), source);
    visit(piece, bytes_[byte]);
  }
}

}  // namespace phasor::internal
