// What was observed, as text for a terminal.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "infer/experiment/observed.h"
#include "infer/render/terminal.h"
#include "infer/views/view.h"

namespace infer {

/// What is printed of the tables.
struct Shown {
  std::vector<const View*> views = {};
  std::vector<const View*> possible = {};  // all that lack nothing: what the page shows
  bool all_rows = false;                   // else of views with many rows the first
  /// Whose patterns and rows; empty: the pattern of the most positional one, and all rows.
  std::vector<HeadNumber> heads = {};

  bool has(const Row& row) const;
};

/// One or two runs of a text, or of many: tokens, sentences, and a table for each view.
std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// Two runs in few lines: sentences, and a row for each view.
std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// A text in one table: what a plain run shows.
std::string to_short_text(const Observed& text, const Output& output);

/// The ids, positions and pieces of a text's tokens under each other.
std::string token_rows(const Observed& text, int width);
/// Two or three sentences that say what the tables show; of two runs, where they differ most.
std::vector<std::string> sentences(std::span<const Observed> runs, const Shown& shown);

}  // namespace infer
