// Keys of a folder's JSON files that change no number that phasor computes, each with the reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/model_folder.h"

namespace phasor::internal {

/// Why `key` of `file` ("config.json", "1_Pooling/config.json") changes nothing; empty if that is
/// not known. A key inside an object is written "rope_parameters.beta_fast".
std::string_view why_unused(std::string_view file, std::string_view key);

/// Sorts what nobody asked for: keys that change nothing go to `unused`, as "file: key"; the others
/// become a note for each file.
void report_others(const ModelFolder& folder, std::vector<std::string>& unused,
                   std::vector<std::string>& notes);

}  // namespace phasor::internal
