// JSON as it is printed and sent.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace infer {

/// JSON in one line, without its end; U+FFFD for bytes that are no UTF-8.
std::string one_line(const nlohmann::ordered_json& json);
/// The number with the shortest digits that give the same float: JSON's would be those of a double,
/// 0.7400000095367432.
double in_short(float value);
/// A string of JSON. Where there is no memory, throws; the destructor of a larger value would end
/// the process.
std::string json_string(std::string_view text);

}  // namespace infer
