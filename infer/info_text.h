// What infer info prints for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace infer {

/// One line for each fact of what infer info --json prints.
std::string info_text(const nlohmann::ordered_json& info);

}  // namespace infer
