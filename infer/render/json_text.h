// JSON as it is printed and sent.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "files/json_writer.h"

namespace infer {

/// JSON in one line, without its end; U+FFFD for bytes that are no UTF-8.
std::string one_line(const nlohmann::ordered_json& json);
/// The number with the shortest digits that give the same float: JSON's would be those of a double,
/// 0.7400000095367432.
double in_short(float value);
using phasor::internal::json_string;

}  // namespace infer
