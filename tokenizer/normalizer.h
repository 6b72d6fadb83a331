// What is done to a text before it is split: the normalizers of Hugging Face's tokenizers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace phasor::internal {

/// Takes and returns valid UTF-8.
using Normalizer = std::function<std::string(std::string_view text)>;

/// All of `steps`, one after the other; null if there are none. Throws ModelError for a text that
/// they make more than 16 times as long. `file` names them in that message.
Normalizer in_order(std::vector<Normalizer> steps, std::string file);

std::string lower_case(std::string_view text);
std::string without_marks(std::string_view text);
/// `from` is not empty.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
std::string without_outer_spaces(std::string_view text, bool left, bool right);
/// `to` in place of two or more spaces (U+0020) in a row.
std::string replace_runs_of_spaces(std::string_view text, std::string_view to);
/// `to` in place of white space: two or more such characters in a row, or a tab or the end of a
/// line.
std::string replace_runs_and_breaks(std::string_view text, std::string_view to);

/// How many bytes of white space `text` ends with, and begins with.
size_t spaces_at_end(std::string_view text);
size_t spaces_at_start(std::string_view text);

}  // namespace phasor::internal
