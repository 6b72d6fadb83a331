// GPT-2's words of a text, before byte-level BPE splits them.
#pragma once

#include <functional>
#include <string_view>

namespace phasor::internal {

/// GPT-2's regular expression for a word.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Calls `visit` with each word of `text`, which is valid UTF-8. The words are the matches of
/// kGpt2Pattern, and make up all of the text.
void for_each_gpt2_word(std::string_view text,
                        const std::function<void(std::string_view word)>& visit);

}  // namespace phasor::internal
