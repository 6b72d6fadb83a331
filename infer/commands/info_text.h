// What infer info prints for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace infer {

/// Each fact of what infer info --json prints, in lines of up to `width` columns.
std::string info_text(const nlohmann::ordered_json& info, int width);

}  // namespace infer
