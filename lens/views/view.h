// A view: something that is measured of a run and shown. Everything about it that is not measuring
// stands in one row of the table in views.cc; terminal, JSON, CSV, --only and the page read that
// row.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace phasor::internal {

class Batch;
struct Many;
struct Observed;
struct Row;
struct Table;

/// A column of a view's table.
struct Column {
  const char* key;  // its name everywhere
  int decimals = 3;
  bool printed = true;  // on the terminal and the page; JSON and CSV have them all
};

enum class Rows { kLayers, kHeads, kNamed };
/// Lines and stacked bars over the rows; curves over the columns, whose keys are numbers, of the
/// rows of one head; a dot plot with a line for each row.
enum class Chart { kNone, kLines, kStacked, kCurves, kDots };
/// What a view cannot do without: a text by itself, two runs, several texts seen as one, a file of
/// such texts, or two runs of such a file.
enum class Needs { kNothing, kOneText, kTwoRuns, kManyTexts, kFile, kTwoRunsOfFile };

inline bool needs_file(Needs needs) {
  return needs == Needs::kFile || needs == Needs::kTwoRunsOfFile;
}

struct View {
  const char* name;   // in --only, JSON, CSV
  const char* title;  // a noun phrase
  const char* hint;   // what is measured, and what small and large numbers mean
  const char* unit = "";
  Needs needs = Needs::kNothing;
  Rows rows = Rows::kLayers;
  const char* row_name = "layer";  // what rows with a label are: its key in JSON
  Chart chart = Chart::kNone;
  int series = 1;  // so many columns, the first, are drawn: they share the unit
  int lead = 0;    // the column that stands for the view where there is room for one
  double (*weight)(const Row&) = nullptr;  // of kHeads: the head with the largest row comes first
  bool brief = true;  // on a terminal without being asked for; JSON and CSV have all
  bool slow = false;  // nowhere without being asked for
  std::span<const Column> columns = {};
  /// Add the view's table to each text of a batch, or to the means over many texts. Views that come
  /// about together name the same function, which runs once.
  void (*of_texts)(Batch&) = nullptr;
  void (*of_many)(Many&) = nullptr;
  /// The table in a sentence; empty where there is nothing to say.
  std::string (*sentence)(const Table&) = nullptr;
};

/// All views, in the order in which they are shown.
std::span<const View> views();
/// Throws std::out_of_range for a name that none has: a mistake of the program.
const View& view(std::string_view name);

/// A column's key as people write it: "token_r2" is "token R²", and an offset has a sign.
std::string label_of(const Column& column);

/// What `infer COMMAND --help` says about --only: a line for each view.
std::string views_help();

}  // namespace phasor::internal
