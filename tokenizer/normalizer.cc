#include "tokenizer/normalizer.h"

#include <algorithm>
#include <utility>

#include "files/refuse.h"
#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {
namespace {

template <typename Map>
std::string for_each_character(std::string_view text, const Map& map) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) map(take_character(text), result);
  return result;
}

}  // namespace

size_t most_normalized(size_t size) {
  return std::min(16 * (size + 1), 4 * size + (size_t{1} << 20));
}

Normalizer in_order(std::vector<NormalizerStep> steps, std::string file) {
  if (steps.empty()) return {};
  return [steps = std::move(steps), file = std::move(file)](std::string_view text) {
    const size_t most = most_normalized(text.size());
    std::string result(text);
    for (const NormalizerStep& step : steps) {
      result = step(result, most);
      const auto spaces = static_cast<size_t>(std::ranges::count(result, ' '));
      if (result.size() + 2 * spaces <= most) continue;
      refuse<ModelError>("{}: the normalizer makes more than {} bytes of a text of {}", file, most,
                         text.size());
    }
    return result;
  };
}

std::string lower_case(std::string_view text) {
  return for_each_character(text, [](char32_t c, std::string& result) {
    append_character(to_lower(c), result);
    if (c == U'\u0130') append_character(U'\u0307', result);  // the only one that becomes two
  });
}

std::string without_marks(std::string_view text) {
  return for_each_character(text, [](char32_t c, std::string& result) {
    if (!is_mark(c)) append_character(c, result);
  });
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        size_t most) {
  std::string replaced;
  for (size_t at = text.find(from); at != text.npos && replaced.size() <= most;
       at = text.find(from)) {
    replaced.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return replaced.append(text);
}

std::string without_outer_spaces(std::string_view text, bool left, bool right) {
  if (left) text.remove_prefix(spaces_at_start(text));
  if (right) text.remove_suffix(spaces_at_end(text));
  return std::string(text);
}

std::string replace_runs_of_spaces(std::string_view text, std::string_view to, size_t most) {
  std::string result;
  while (!text.empty() && result.size() <= most) {
    const size_t word = std::min(text.find(' '), text.size());
    result.append(text.substr(0, word));
    text.remove_prefix(word);
    const size_t run = std::min(text.find_first_not_of(' '), text.size());
    result.append(run >= 2 ? to : text.substr(0, run));
    text.remove_prefix(run);
  }
  return result;
}

std::string replace_runs_and_breaks(std::string_view text, std::string_view to, size_t most) {
  std::string result;
  while (!text.empty() && result.size() <= most) {
    const std::string_view run = text.substr(0, spaces_at_start(text));
    const size_t end = run.empty() ? character_size(text) : run.size();
    const bool counts =
        run.size() > character_size(text) || run == "\n" || run == "\r" || run == "\t";
    result.append(counts ? to : text.substr(0, end));
    text.remove_prefix(end);
  }
  return result;
}

size_t spaces_at_end(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view last = last_character(rest);
    const size_t size = last.size();
    if (!is_white_space(take_character(last))) break;
    rest.remove_suffix(size);
  }
  return text.size() - rest.size();
}

size_t spaces_at_start(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view after = rest;
    if (!is_white_space(take_character(after))) break;
    rest = after;
  }
  return text.size() - rest.size();
}

}  // namespace phasor::internal
