#include "infer/render/json_text.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "infer/cli/terminal.h"

namespace infer {

std::string one_line(const nlohmann::ordered_json& json) {
  return escaped(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

double in_short(float value) {
  double number = value;  // NaN and infinity stay
  const std::string digits = fmt::format("{}", value);
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace infer
