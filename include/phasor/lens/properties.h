// All measures of lens/table.h that are one number, of a table of position vectors or of two,
// beside those of random tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "phasor/positions.h"
#include "phasor/progress.h"

namespace [[gnu::visibility("default")]] phasor {

/// A number about a table, or about two.
struct TableProperty {
  std::string_view key;      // "toeplitz_r2"
  std::string_view label;    // for people
  std::string_view meaning;  // what is large and what is small
  int decimals = 4;
  std::optional<double> value = {};   // empty where the table has too few rows, or no such number
  std::optional<double> random = {};  // of uniform_table(), its mean length that of the table
  // Mean and standard deviation over eight stationary_tables(); empty where there are more than
  // 1024 rows, or T²·d is above 2^30: they would take minutes.
  std::optional<double> smooth = {}, smooth_sd = {};
};

/// Of a table [T, d_model]: the wavelengths of those of its pairs whose frequency is known, then
/// every other number.
std::vector<TableProperty> table_properties(std::span<const double> table, int64_t d_model,
                                            std::span<const ColumnPair> pairs = {},
                                            const Progress& progress = {});

/// How like each other two tables of as many rows are: b, and random tables like it, beside a.
std::vector<TableProperty> table_likeness(std::span<const double> a, int64_t a_width,
                                          std::span<const double> b, int64_t b_width,
                                          const Progress& progress = {});

}  // namespace phasor
