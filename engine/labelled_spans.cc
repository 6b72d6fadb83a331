#include "engine/labelled_spans.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "files/utf8.h"

namespace phasor::internal {
namespace {

/// A token or a word with the label that it was given, a number.
struct Unit {
  size_t label = 0;
  float score = 0;
  TextSpan span, tokens;
};

/// A token of the text, without those around it.
struct TextToken {
  int64_t number = 0;
  TextSpan span;
  std::span<const float> probabilities;
  bool continues_word = false;

  Unit as(size_t label) const { return {label, probabilities[label], span, {number, number + 1}}; }
};

size_t largest(std::span<const float> values) {
  return static_cast<size_t>(std::ranges::max_element(values) - values.begin());
}

std::vector<TextToken> tokens_of(const TokenProbabilities& text, size_t num_labels) {
  const Tokens& tokens = text.tokens;
  const auto is_space = [&](int64_t at) {
    return at < std::ssize(text.text) && text.text[static_cast<size_t>(at)] == ' ';
  };
  std::vector<TextToken> result;
  for (size_t t = 0; t < tokens.ids.size(); ++t) {
    if (tokens.special[t]) continue;
    const TextSpan span = tokens.offsets[t];
    bool continues = span.begin > 0 && !is_space(span.begin - 1) && !is_space(span.begin);
    if (!tokens.continues_word.empty()) continues = tokens.continues_word[t];
    if (tokens.ids[t] == text.unknown_id) continues = false;
    result.push_back({static_cast<int64_t>(t), span,
                      text.values.subspan(t * num_labels, num_labels), continues});
  }
  return result;
}

/// What a label says: "B-PER" begins a span of the kind "PER".
struct Tag {
  char place = 'I';  // of B, I, E, S; O: outside
  std::string_view kind;
};

Tag tag_of(std::string_view label, bool is_bioes) {
  if (label == "O") return {'O', label};
  const std::string_view places = is_bioes ? "BIES" : "BI";
  if (label.size() > 1 && label[1] == '-' && places.find(label[0]) != places.npos)
    return {label[0], label.substr(2)};
  return {'I', label};
}

/// The legal sequence of the largest sum of log-probabilities (Viterbi 1967), in a time that is
/// linear in the number of labels; empty if none is legal. B and I of a kind are followed by its I
/// or E; all others by O, B or S; and the text ends like these.
class BestPath {
 public:
  explicit BestPath(const std::vector<Tag>& tags) : tags_(tags), opens_(tags.size()) {
    for (size_t l = 0; l < tags.size(); ++l) {
      // Those of its kind that may stand before an I or E.
      for (size_t m = 0; is_inside(l) && m < tags.size(); ++m) {
        const bool open = tags[m].place == 'B' || tags[m].place == 'I';
        if (open && tags[m].kind == tags[l].kind) opens_[l].push_back(m);
      }
    }
  }

  std::vector<size_t> operator()(std::span<const TextToken> tokens) const {
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const size_t num_labels = tags_.size();
    std::vector<double> sums(num_labels), next(num_labels);
    std::vector<size_t> before(tokens.size() * num_labels);  // the best label before each
    for (size_t t = 0; t < tokens.size(); ++t) {
      const size_t closed = best_closed(sums);
      for (size_t l = 0; l < num_labels; ++l) {
        size_t from = closed;
        double sum = t == 0 ? 0 : is_closed(closed) ? sums[closed] : kNone;
        if (is_inside(l)) {
          sum = kNone;
          for (const size_t m : opens_[l]) {
            if (t > 0 && sums[m] > sum) std::tie(from, sum) = std::pair(m, sums[m]);
          }
        }
        next[l] = sum + std::log(std::max(tokens[t].probabilities[l], kLeast));
        before[t * num_labels + l] = from;
      }
      std::swap(sums, next);
    }
    std::vector<size_t> path(tokens.size());
    size_t label = best_closed(sums);
    if (!is_closed(label) || sums[label] == kNone) return {};
    for (size_t t = tokens.size(); t-- > 0; label = before[t * num_labels + label]) path[t] = label;
    return path;
  }

 private:
  static constexpr float kLeast = std::numeric_limits<float>::min();

  bool is_inside(size_t l) const { return tags_[l].place == 'I' || tags_[l].place == 'E'; }
  bool is_closed(size_t l) const { return tags_[l].place != 'B' && tags_[l].place != 'I'; }
  size_t best_closed(const std::vector<double>& sums) const {
    size_t best = 0;
    for (size_t l = 0; l < sums.size(); ++l) {
      if (is_closed(l) && (!is_closed(best) || sums[l] > sums[best])) best = l;
    }
    return best;
  }

  const std::vector<Tag>& tags_;
  std::vector<std::vector<size_t>> opens_;
};

/// One label for the tokens of a word.
Unit as_word(std::span<const TextToken> word, Aggregation aggregation) {
  std::vector<float> scores(word.front().probabilities.begin(), word.front().probabilities.end());
  if (aggregation == Aggregation::kMax) {
    const auto top = std::ranges::max_element(
        word, {}, [](const TextToken& token) { return std::ranges::max(token.probabilities); });
    scores.assign(top->probabilities.begin(), top->probabilities.end());
  } else if (aggregation == Aggregation::kAverage) {
    for (const TextToken& token : word.subspan(1)) {
      for (size_t l = 0; l < scores.size(); ++l) scores[l] += token.probabilities[l];
    }
    for (float& score : scores) score /= static_cast<float>(word.size());
  }
  const size_t label = largest(scores);
  return {label,
          scores[label],
          {word.front().span.begin, word.back().span.end},
          {word.front().number, word.back().number + 1}};
}

std::vector<Unit> as_words(std::span<const TextToken> tokens, Aggregation aggregation) {
  std::vector<Unit> words;
  for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    for (end = begin + 1; end < tokens.size() && tokens[end].continues_word;) ++end;
    words.push_back(as_word(tokens.subspan(begin, end - begin), aggregation));
  }
  return words;
}

std::vector<Unit> as_tokens(std::span<const TextToken> tokens, const std::vector<size_t>& path) {
  std::vector<Unit> units;
  for (size_t t = 0; t < tokens.size(); ++t)
    units.push_back(tokens[t].as(path.empty() ? largest(tokens[t].probabilities) : path[t]));
  return units;
}

LabelledSpan joined(std::span<const Unit> units, std::string_view label) {
  float sum = 0;
  for (const Unit& unit : units) sum += unit.score;
  return {std::string(label),
          sum / static_cast<float>(units.size()),
          {units.front().span.begin, units.back().span.end},
          {units.front().tokens.begin, units.back().tokens.end}};
}

}  // namespace

std::vector<LabelledSpan> labelled_spans(const std::vector<std::string>& labels,
                                         const TokenProbabilities& text, Aggregation aggregation) {
  const std::vector<TextToken> tokens = tokens_of(text, labels.size());
  const bool is_bioes = std::ranges::any_of(labels, [](std::string_view label) {
    return label.starts_with("E-") || label.starts_with("S-");
  });
  std::vector<Tag> tags;
  for (const std::string& label : labels) tags.push_back(tag_of(label, is_bioes));
  std::vector<Unit> units;
  if (aggregation == Aggregation::kNone || (aggregation == Aggregation::kSimple && !is_bioes)) {
    units = as_tokens(tokens, {});
  } else if (is_bioes) {
    units = as_tokens(tokens, BestPath(tags)(tokens));
  } else {
    units = as_words(tokens, aggregation);
  }
  std::vector<LabelledSpan> spans;
  for (size_t begin = 0, end = 0; begin < units.size(); begin = end) {
    const std::string& label = labels[units[begin].label];
    const Tag& tag = tags[units[begin].label];
    const auto continues = [&](const Unit& unit) {
      const Tag& next = tags[unit.label];
      return aggregation != Aggregation::kNone && next.kind == tag.kind && next.place != 'B' &&
             next.place != 'S';
    };
    for (end = begin + 1; end < units.size() && continues(units[end]);) ++end;
    if (tag.place == 'O') continue;
    const bool whole = aggregation == Aggregation::kNone;
    const std::string_view kind =
        whole ? std::string_view(label) : std::string_view(label).substr(label.find('-') + 1);
    spans.push_back(joined(std::span(units).subspan(begin, end - begin), kind));
  }
  return spans;
}

void count_characters(std::string_view text, std::vector<LabelledSpan>& spans) {
  std::vector<int64_t> characters(text.size() + 1);  // before each byte
  int64_t count = 0;
  for (std::string_view rest = text; !rest.empty(); ++count) {
    const size_t begin = text.size() - rest.size();
    take_character(rest);
    std::fill(characters.begin() + static_cast<std::ptrdiff_t>(begin),
              characters.end() - static_cast<std::ptrdiff_t>(rest.size()) - 1, count);
  }
  characters.back() = count;
  for (LabelledSpan& each : spans) {
    each.span = {characters[static_cast<size_t>(each.span.begin)],
                 characters[static_cast<size_t>(each.span.end)]};
  }
}

}  // namespace phasor::internal
