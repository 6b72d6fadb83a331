// The language codes of multilingual tokenizers, in the order of the tokens' ids.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phasor::internal {

std::vector<std::string> m2m100_languages();   // "en"
std::vector<std::string> mbart_languages();    // "en_XX"
std::vector<std::string> mbart50_languages();  // mBART's and 27 more
std::vector<std::string> nllb_languages();     // "eng_Latn"

/// For messages: all codes, or the twelve most similar to `like` and the number of all.
std::string list_languages(std::vector<std::string> codes, std::string_view like);

}  // namespace phasor::internal
