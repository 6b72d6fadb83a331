// What was observed, as JSON and as CSV. docs/reading-in-python.md documents the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "infer/experiment/observed.h"

namespace infer {

/// One run; a view's rows are a list of objects.
nlohmann::ordered_json to_json(const Observed& observed);
/// The only run, or {"runs": [first, second]}.
nlohmann::ordered_json to_json(std::span<const Observed> runs);
/// All views as the page reads them.
nlohmann::ordered_json views_json();
/// JSON in one line, without its end; U+FFFD for bytes that are no UTF-8.
std::string one_line(const nlohmann::ordered_json& json);
/// The number with the shortest digits that give the same float: JSON's would be those of a double,
/// 0.7400000095367432.
double in_short(float value);
/// A string of JSON. Where there is no memory, throws; the destructor of a larger value would end
/// the process.
std::string json_string(std::string_view text);

/// Every number in a line of its own: text,run,layer,head,measure,value. Texts and heads count from
/// 1, layer 0 is the embedding; a measure is VIEW.COLUMN, in named rows VIEW.ROW.COLUMN.
std::string csv_head();
std::string to_csv(std::span<const Observed> runs, size_t number);

}  // namespace infer
