// The numbers about a table of position vectors, or about two, beside those of random tables.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "infer/positions/table.h"
#include "lens/study/stages.h"

namespace infer {

struct Property {
  std::string_view key;      // in JSON
  std::string_view label;    // for people
  std::string_view meaning;  // what is large and what is small
  int decimals = 4;
  std::optional<double> value = {};   // empty where the table has too few rows, or no such number
  std::optional<double> random = {};  // of a table of random rows; empty where that says nothing
  // Mean and standard deviation over eight random tables that are as smooth.
  std::optional<double> smooth = {}, smooth_sd = {};
};

/// Every measure of phasor/lens/table.h, beside that of random_like() and of stationary_tables(),
/// these for up to 1024 rows, and rows² × columns up to 2^30.
std::vector<Property> properties(const NamedTable& table, const phasor::internal::Stages& stages);
/// How like each other two tables of as many rows are, beside the first and such random tables like
/// the second.
std::vector<Property> likeness(const NamedTable& a, const NamedTable& b,
                               const phasor::internal::Stages& stages);

/// 1 − cos between all rows, [T, T]; exactly 0 between a row and itself.
Matrix cosine_distances(const NamedTable& table);
/// The angle of each pair that has both columns, clockwise from twelve, in 0 … 2π. [T, pairs]
Matrix clock_angles(const NamedTable& table);

}  // namespace infer
