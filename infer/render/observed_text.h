// What was observed, as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "infer/cli/study.h"
#include "infer/cli/terminal.h"
#include "infer/render/table_text.h"

namespace infer {

/// One or two runs of a text, or of many: tokens, sentences, and a table for each view.
std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output);
/// A text in one table: what a plain run shows.
std::string to_short_text(const Observed& text, const Output& output);

/// The text, or how many there are, as a heading; empty for ids.
std::string title_of(const Observed& observed, const Output& output);
/// Why runs do not have the view, as paragraphs; empty where none says why.
std::string missing_lines(const View& view, std::span<const Observed> runs);
/// The ids, positions and pieces of a text's tokens under each other.
std::string token_rows(const Observed& text, int width);
/// What the views tell, as paragraphs; of two runs with the options that show more of it.
std::string conclusion_lines(std::span<const Observed> runs, std::span<const View* const> views);

}  // namespace infer
