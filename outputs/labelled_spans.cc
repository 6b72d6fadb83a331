#include "outputs/labelled_spans.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "files/utf8.h"

namespace phasor::internal {
namespace {

/// A token or a word with the label that it was given, a number.
struct LabelledUnit {
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

  LabelledUnit as(size_t label) const {
    return {label, probabilities[label], span, {number, number + 1}};
  }
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

/// The legal sequence of the largest sum of log-probabilities (Viterbi 1967), in a time that is
/// linear in the number of labels; empty if none is legal. B and I of a kind are followed by its I
/// or E; all others by O, B or S; and the text ends like these.
std::vector<size_t> best_path(std::span<const TextToken> tokens, std::span<const LabelTag> tags,
                              size_t num_kinds) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  constexpr float kLeast = std::numeric_limits<float>::min();
  struct Way {
    double sum = kNone;
    size_t label = 0;  // its last
  };
  Way closed = {.sum = 0};           // the best after which a span may begin
  std::vector<Way> open(num_kinds);  // and of each kind that within one of its spans
  std::vector<size_t> before(tokens.size() * tags.size());  // the best label before each
  for (size_t t = 0; t < tokens.size(); ++t) {
    Way next_closed;
    std::vector<Way> next_open(num_kinds);
    for (size_t l = 0; l < tags.size(); ++l) {
      const auto& [place, kind, number] = tags[l];
      const Way& from = place == 'I' || place == 'E' ? open[number] : closed;
      const double sum = from.sum + std::log(std::max(tokens[t].probabilities[l], kLeast));
      before[t * tags.size() + l] = from.label;
      Way& best = place == 'B' || place == 'I' ? next_open[number] : next_closed;
      if (sum > best.sum) best = {sum, l};
    }
    closed = next_closed;
    open = std::move(next_open);
  }
  if (closed.sum == kNone) return {};
  std::vector<size_t> path(tokens.size());
  size_t label = closed.label;
  for (size_t t = tokens.size(); t-- > 0; label = before[t * tags.size() + label]) path[t] = label;
  return path;
}

LabelTag tag_of(std::string_view label, bool is_bioes) {
  if (label == "O") return {'O', label};
  const std::string_view places = is_bioes ? "BIES" : "BI";
  if (label.size() > 1 && label[1] == '-' && places.find(label[0]) != places.npos)
    return {label[0], label.substr(2)};
  return {'I', label};
}

TextSpan hull(const TextSpan& first, const TextSpan& last) {
  return {first.begin, std::max(first.end, last.end)};
}

/// One label for the tokens of a word.
LabelledUnit as_word(std::span<const TextToken> word, Aggregation aggregation) {
  std::vector<double> scores(word.front().probabilities.begin(), word.front().probabilities.end());
  if (aggregation == Aggregation::kMax) {
    const auto top = std::ranges::max_element(
        word, {}, [](const TextToken& token) { return std::ranges::max(token.probabilities); });
    scores.assign(top->probabilities.begin(), top->probabilities.end());
  } else if (aggregation == Aggregation::kAverage) {
    for (const TextToken& token : word.subspan(1)) {
      for (size_t l = 0; l < scores.size(); ++l) scores[l] += token.probabilities[l];
    }
    for (double& score : scores) score /= static_cast<double>(word.size());
  }
  const auto label = static_cast<size_t>(std::ranges::max_element(scores) - scores.begin());
  return {label,
          static_cast<float>(scores[label]),
          hull(word.front().span, word.back().span),
          {word.front().number, word.back().number + 1}};
}

std::vector<LabelledUnit> as_words(std::span<const TextToken> tokens, Aggregation aggregation) {
  std::vector<LabelledUnit> words;
  for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    for (end = begin + 1; end < tokens.size() && tokens[end].continues_word;) ++end;
    words.push_back(as_word(tokens.subspan(begin, end - begin), aggregation));
  }
  return words;
}

std::vector<LabelledUnit> as_tokens(std::span<const TextToken> tokens,
                                    const std::vector<size_t>& path) {
  std::vector<LabelledUnit> units;
  for (size_t t = 0; t < tokens.size(); ++t)
    units.push_back(tokens[t].as(path.empty() ? largest(tokens[t].probabilities) : path[t]));
  return units;
}

LabelledSpan joined(std::span<const LabelledUnit> units, std::string_view label) {
  double sum = 0;
  for (const LabelledUnit& unit : units) sum += unit.score;
  return {label,
          static_cast<float>(sum / static_cast<double>(units.size())),
          hull(units.front().span, units.back().span),
          {units.front().tokens.begin, units.back().tokens.end}};
}

}  // namespace

SpanLabels::SpanLabels(std::span<const std::string> labels) : labels_(labels) {
  // BIOES: an E-X or S-X beside a B-X.
  const std::set<std::string_view> all(labels.begin(), labels.end());
  is_bioes_ = std::ranges::any_of(labels, [&](const std::string& label) {
    return (label.starts_with("E-") || label.starts_with("S-")) && label.size() > 2 &&
           all.contains(fmt::format("B{}", label.substr(1)));
  });
  std::unordered_map<std::string_view, size_t> kinds;
  for (const std::string& label : labels) {
    LabelTag& tag = tags_.emplace_back(tag_of(label, is_bioes_));
    tag.kind_number = kinds.try_emplace(tag.kind, kinds.size()).first->second;
  }
  num_kinds_ = kinds.size();
}

std::vector<LabelledSpan> SpanLabels::operator()(const TokenProbabilities& text,
                                                 Aggregation aggregation) const {
  const std::vector<TextToken> tokens = tokens_of(text, labels_.size());
  const bool per_token = aggregation == Aggregation::kNone;
  std::vector<LabelledUnit> units;
  if (per_token || (aggregation == Aggregation::kSimple && !is_bioes_)) {
    units = as_tokens(tokens, {});
  } else if (is_bioes_) {
    units = as_tokens(tokens, best_path(tokens, tags_, num_kinds_));
  } else {
    units = as_words(tokens, aggregation);
  }
  std::vector<LabelledSpan> spans;
  for (size_t begin = 0, end = 0; begin < units.size(); begin = end) {
    const std::string_view label = labels_[units[begin].label];
    const LabelTag& tag = tags_[units[begin].label];
    const auto continues = [&](const LabelledUnit& unit) {
      const LabelTag& next = tags_[unit.label];
      return !per_token && next.kind == tag.kind && next.place != 'B' && next.place != 'S';
    };
    for (end = begin + 1; end < units.size() && continues(units[end]);) ++end;
    // As in the pipeline, the kind of any label is what stands behind its first "-".
    const std::string_view name = per_token ? label : label.substr(label.find('-') + 1);
    if (name != "O") spans.push_back(joined(std::span(units).subspan(begin, end - begin), name));
  }
  return spans;
}

}  // namespace phasor::internal
