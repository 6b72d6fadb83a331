// What infer positions finds out about one table or two, and how it is shown.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/progress.h"
#include "infer/experiment/position_table.h"
#include "infer/render/terminal.h"

namespace infer {

/// The parts of a page about tables, in their order.
enum class TableSection {
  kValues,
  kImage,
  kCurves,
  kDistances,
  kClock,
  kMap,
  kProperties,
  kAgainst
};
inline constexpr std::array<std::string_view, 8> kTableSectionNames = {
    "values", "image", "curves", "distances", "clock", "map", "properties", "against"};

/// A number about a table, or about two.
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
/// The pairs' columns side by side: sine, cosine, sine, cosine, …, [T, 2·pairs].
Matrix clock_pairs(const NamedTable& table);
/// The angle of a pair, clockwise from twelve, in 0 … 2π.
double clock_angle(double sine, double cosine);

struct PositionsPage {
  std::vector<TableSection> sections;
  std::vector<NamedTable> tables;                      // one, or two with as many rows
  std::vector<std::vector<Property>> properties = {};  // of each table, where asked for
  std::vector<Property> against = {};                  // likewise

  bool asks(TableSection section) const;
};

/// Measures what is asked for.
PositionsPage make_page(std::vector<TableSection> sections, std::vector<NamedTable> tables,
                        Progress& progress);

/// A section about one table, without its title.
std::string section_text(TableSection section, const NamedTable& table, const Output& output);
std::string to_text(const PositionsPage& page, const Output& output);
/// One line, without its end: all the numbers of the sections asked for.
std::string to_json(const PositionsPage& page);
/// "position,0,1,2,…" and a line for each row, with all digits.
std::string to_csv(const NamedTable& table);
/// A figure of each section asked for, in a folder that is made where there is none. Says on stderr
/// what was written unless `quiet`. Throws InvalidArgument where it cannot be.
void write_figures(const PositionsPage& page, const std::filesystem::path& folder, bool quiet);

}  // namespace infer
