// Two sides of a comparison as tables for a terminal.
#include <fmt/format.h>

#include "infer/render/comparison_tables.h"
#include "infer/render/report.h"

namespace infer {
namespace {

/// A table's title and what prints its rows, in the order of Section.
struct Table {
  const char* title;
  const char* first_column;  // null: the table has columns of its own
  void (*print)(const Comparison&, SideBySide&);
};
constexpr std::array<Table, kSectionNames.size()> kTables = {{
    {"Moved by precision: the second side's states beside the first's", nullptr, precision_table},
    {"Moved by positions: mean 1 − cos to the same states without positions", "layer",
     effect_table},
    {"Moved by a new order: mean ‖h(πx)_π(t) − h(x)_t‖ / ‖h(x)_t‖", "layer", order_table},
    {"Attention reaches: mean |i − j|, in tokens", "layer", attention_tables},
    {"The position vector's own part D of h: mean ‖D‖/‖h‖ and mean ⟨D, h⟩/‖h‖²", "layer",
     direct_table},
    {"The position vectors P by themselves, M = P·Pᵀ", "", position_table},
    {"Masked tokens: 15 % hidden, text by text", "", masked_table},
    {"Longer than trained: loss on masked tokens, the file in pieces, end to end", "tokens",
     longer_table},
}};

void models(const Comparison& comparison, SideBySide& page) {
  const auto side_of = [&](size_t i) -> const Side& { return *comparison.sides[i]; };
  const auto config = [&](size_t i) { return side_of(i).model().config(); };
  page.heading("Compared");
  page.both("", [&](size_t i) { return printable(side_of(i).label); });
  page.both("model", [&](size_t i) { return printable(side_of(i).model_name); });
  page.both("positions", [&](size_t i) {
    return describe_positions(config(i).position, side_of(i).options.positions);
  });
  const auto precision = [&](size_t i) { return side_of(i).encoder.precision(); };
  if (precision(0) != phasor::Precision::kFloat32 || precision(1) != phasor::Precision::kFloat32) {
    page.both("precision", [&](size_t i) { return std::string(to_string(precision(i))); });
  }
  page.both("size", [&](size_t i) {
    return fmt::format("{} layers, d_model {}, {} heads", config(i).num_layers, config(i).d_model,
                       config(i).num_heads);
  });
  page.both("trained on", [&](size_t i) -> std::string {
    const auto trained = side_of(i).trained_length();
    return trained ? fmt::format("at most {} tokens", *trained) : "not said";
  });
  const auto& reports = comparison.reports;
  if (reports[0].tokens + reports[1].tokens == 0) return;
  page.both("texts", [&](size_t i) {
    return fmt::format("{}, {} tokens", reports[i].inputs.size(), reports[i].tokens);
  });
}

/// A table, and below it why a side is missing in it.
void print_section(const Comparison& comparison, Section section, SideBySide& page) {
  const Table& table = kTables[static_cast<size_t>(section)];
  page.heading(table.title);
  if (!is_missing(comparison, 0, section) || !is_missing(comparison, 1, section)) {
    if (table.first_column != nullptr) {
      page.row(table.first_column, comparison.sides[0]->label, comparison.sides[1]->label);
    }
    table.print(comparison, page);
  }
  const std::string a = why_missing(comparison, 0, section);
  const std::string b = why_missing(comparison, 1, section);
  if (a == b) {
    if (!a.empty()) page.line(fmt::format("  {} {}", kNoAnswer, a));
    return;
  }
  for (const size_t i : {0, 1}) {
    const std::string& why = i == 0 ? a : b;
    if (why.empty()) continue;
    page.line(fmt::format("  {} {}: {}", kNoAnswer, comparison.sides[i]->label, why));
  }
}

}  // namespace

std::string why_missing(const Comparison& comparison, size_t side, Section section) {
  const std::map<Section, std::string>& missing = comparison.reports[side].missing;
  const auto found = missing.find(section);
  return found == missing.end() ? "" : found->second;
}

bool is_missing(const Comparison& comparison, size_t side, Section section) {
  if (why_missing(comparison, side, section).empty()) return false;
  return section != Section::kLonger || comparison.reports[side].lengths.empty();
}

std::string to_text(const Comparison& comparison, const Output& output) {
  SideBySide page(output);
  models(comparison, page);
  for (const Section section : comparison.question.sections) {
    print_section(comparison, section, page);
  }
  return page.text();
}

}  // namespace infer
