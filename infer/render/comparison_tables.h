// The tables of a comparison, one function each; both sides' names already stand above.
#pragma once

#include "infer/render/comparison_report.h"
#include "infer/render/side_by_side.h"

namespace infer {

/// Why a side has no answer, or not all of it; empty where it has.
std::string why_missing(const Comparison& comparison, size_t side, Section section);
/// Whether a side has nothing at all to show.
bool is_missing(const Comparison& comparison, size_t side, Section section);

void precision_table(const Comparison& comparison, SideBySide& page);
void effect_table(const Comparison& comparison, SideBySide& page);
void order_table(const Comparison& comparison, SideBySide& page);
void attention_tables(const Comparison& comparison, SideBySide& page);
void direct_table(const Comparison& comparison, SideBySide& page);
void position_table(const Comparison& comparison, SideBySide& page);
void masked_table(const Comparison& comparison, SideBySide& page);
void longer_table(const Comparison& comparison, SideBySide& page);

}  // namespace infer
