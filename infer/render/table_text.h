// A view's table as text for a terminal, and how its rows, numbers and paragraphs look everywhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "infer/cli/study.h"
#include "infer/cli/view_options.h"

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

}  // namespace infer
