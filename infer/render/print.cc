#include "infer/render/print.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "infer/render/observed_text.h"

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
        phasor::internal::for_each_number(*table, row, [&](const std::string& key, double value) {
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

void print(std::span<const Observed> runs, size_t number, const CommonOptions& common,
           const ViewOptions& options, const Shown& shown, Output& output) {
  if (!common.json && !options.csv) {
    if (number > 1) output.write("\n");
    output.show(to_text(runs, shown, output));
    return;
  }
  std::vector<Observed> asked;
  if (!options.only.empty()) {
    asked.assign(runs.begin(), runs.end());
    // Without what was measured for the page, or along with what was asked for.
    const std::vector<std::string> views = named_views(options, shown);
    for (Observed& run : asked) keep_views(run, views);
    runs = asked;
  }
  if (common.json) return output.write(lens::to_json(runs) + "\n");
  if (number == 1) output.write(csv_head());
  output.write(to_csv(runs, number));
}

}  // namespace infer
