// The numbers about a table of position vectors, or about two, beside those of random rows.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "infer/cli/progress.h"
#include "infer/experiment/position_table.h"

namespace infer {

struct Property {
  std::string_view key;      // in JSON
  std::string_view label;    // for people
  std::string_view meaning;  // what is large and what is small
  int decimals = 4;
  std::optional<double> value = {};   // empty where the table has too few rows, or no such number
  std::optional<double> random = {};  // of a table of random rows; empty where that says nothing
};

/// Every measure of phasor/lens/table.h, beside that of random_like(table).
std::vector<Property> properties(const NamedTable& table, Progress& progress);
/// How like each other two tables of as many rows are, beside the first and a random one.
std::vector<Property> likeness(const NamedTable& a, const NamedTable& b);

/// 1 − cos between all rows, [T, T]; exactly 0 between a row and itself.
Matrix cosine_distances(const NamedTable& table);
/// The angle of each pair that has both columns, clockwise from twelve, in 0 … 2π. [T, pairs]
Matrix clock_angles(const NamedTable& table);

}  // namespace infer
