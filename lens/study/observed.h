// Building what was observed, and words about it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/lens.h"
#include "phasor/lens/observe.h"

namespace phasor::internal {

using lens::Column;
using lens::Filler;
using lens::Needs;
using lens::Observed;
using lens::Row;
using lens::Table;
using lens::View;

/// Adds a cell to a row whose cells have intervals.
void add_cell(Row& row, double cell, Interval interval = {std::nan(""), std::nan("")});
/// Adds a row to a view's table.
void add_row(Observed& observed, std::string_view view, Row row);

/// Leaves out the tables, and the reasons for missing ones, of views that ObserveOptions::views
/// does not name, where it names some.
void keep_views(Observed& observed, std::span<const std::string> names);

/// Every cell, and the ends of its interval where it has one: "loss", "loss_low", "loss_high".
template <typename Take>
void for_each_number(const Table& table, const Row& row, Take take) {
  for (size_t c = 0; c < row.cells.size(); ++c) {
    take(table.columns[c], row.cells[c]);
    if (row.intervals.empty() || std::isnan(row.intervals[c].low)) continue;
    take(table.columns[c] + "_low", row.intervals[c].low);
    take(table.columns[c] + "_high", row.intervals[c].high);
  }
}

/// The farthest offset j − i of which the report and tables by offset show anything.
constexpr int64_t kFarthestOffset = 32;

/// What an attention, an MLP or a head writes.
struct BlockPart {
  std::string label;      // "attention 1", "MLP 1", "head 1.1"
  ResidualSource source;  // kAttention or kMlp
  int64_t layer;          // from 0
  int64_t head = -1;      // from 0; −1: all of the attention, or an MLP
};
/// Attentions, MLPs and heads, each in the order of their layers.
std::vector<BlockPart> block_parts(int64_t num_layers, int64_t num_heads);

/// A head, both numbers counted from 1.
struct HeadNumber {
  int64_t layer = 0, head = 0;
};
/// "2.1 (L1H0)": as phasor counts, and as TransformerLens does.
std::string name_of(HeadNumber head);
/// The head with the largest mean weight on the token before or after; empty where none is known.
std::optional<HeadNumber> most_positional_head(const Observed& text);

/// Throws std::out_of_range for a name that none has: a mistake of the program.
const lens::View& view(std::string_view name);

/// What to say of views that need a text by itself, a second run, several texts as one, or lines
/// whose tokens are masked; null where there is such a thing.
struct Lacks {
  const char *text = nullptr, *second_run = nullptr, *texts = nullptr, *lines = nullptr;
};
/// Of all that a view of such needs lacks, the first; null where it can be measured.
const char* lacking(lens::Needs needs, const Lacks& lacks);

/// A column's key as people write it: "token_r2" is "token R²", and an offset has a sign.
std::string label_of(const lens::Column& column);

/// 0.157; where nothing but zeros would show, how small it is: "3e-04", and "<1e-5" for what may be
/// rounding.
std::string small_number(double value, int decimals = 3);
/// The angle of a 1 − cosine, in degrees.
double angle_of(double cosine_distance);
/// As people write it: "48°", "0.3°".
std::string degrees_text(double degrees);
/// A number of a column; of many decimals, as small_number() has it.
std::string number_text(double value, const lens::Column& column);

}  // namespace phasor::internal
