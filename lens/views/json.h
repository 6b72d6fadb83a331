// What was observed, and the table of views, as JSON. docs/reading-in-python.md documents the keys.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "lens/study/observed.h"

namespace phasor::internal {

/// One run; a view's rows are a list of objects.
nlohmann::ordered_json to_json(const Observed& observed);
/// The only run, or {"runs": [first, second]}.
nlohmann::ordered_json to_json(std::span<const Observed> runs);
/// All views as the page reads them.
nlohmann::ordered_json views_json();
}  // namespace phasor::internal
