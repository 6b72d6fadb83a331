// What was observed, and what is different in two runs, as text for a terminal: tables, and how
// their rows, numbers and paragraphs look everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "infer/cli/input_options.h"
#include "infer/cli/terminal.h"

namespace infer {

constexpr std::string_view kNoNumber = "—";
constexpr int kTextWidth = 80, kBarWidth = 20;  // in columns

/// "embed", "3", "head 1.2": what stands before a row.
std::string name_of(const Row& row);
/// Indented lines of up to `width` columns.
std::string paragraph(std::string_view text, int width = kTextWidth);
/// The table of one or more runs, side by side where there is room, and columns that have none
/// below the others; empty where none has rows.
std::string table_text(const View& view, std::span<const Observed> runs, const Shown& shown,
                       int width = kTextWidth);

/// One or two runs of a text, or of many: tokens, sentences, and a table for each view.
std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// A run of a text in one table: what infer without a command shows.
std::string to_short_text(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// Two runs in few lines: sentences, and a row for each view.
std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output);

}  // namespace infer
