#include "infer/render/csv.h"

#include <fmt/format.h>

#include <cmath>

#include "infer/cli/terminal.h"

namespace infer {
namespace {

/// A field of CSV, quoted where it must be (RFC 4180).
std::string csv_field(const std::string& text) {
  const std::string field = printable(text);  // in one line
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string csv_head() { return "text,run,layer,head,measure,value\n"; }

std::string to_csv(std::span<const Observed> runs, size_t number) {
  std::string text;
  for (const Observed& run : runs) {
    for (const View& view : lens::views()) {
      const Table* const table = run.table(view.name);
      if (table == nullptr) continue;
      for (const Row& row : table->rows) {
        for_each_number(*table, row, [&](const std::string& key, double value) {
          if (std::isnan(value)) return;
          text += fmt::format("{},{},{},{},{}.{}{}{},{}\n", number, csv_field(run.label),
                              row.layer < 0 ? "" : std::to_string(row.layer),
                              row.head == 0 ? "" : std::to_string(row.head), view.name, row.label,
                              row.label.empty() ? "" : ".", key, value);
        });
      }
    }
  }
  return text;
}

}  // namespace infer
