#include "infer/render/print.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

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

Report::Report(const CommonOptions& common, const ViewOptions& options, const Shown& shown,
               ToText* to_text)
    : common_(common),
      options_(options),
      shown_(shown),
      to_text_(to_text),
      progress_(common.quiet) {
  if (!options.html.empty()) page_.emplace(options.html, named_views(options, shown), shown.heads);
}

lens::ObserveOptions Report::observe_options(int64_t max_tokens) {
  lens::ObserveOptions options = infer::observe_options(options_, shown_);
  options.tokenize = tokenize_options(common_, max_tokens);
  options.arrays_of = page_ ? HtmlReport::kMostTexts : 0;
  options.progress = progress_.stages();
  return options;
}

void Report::print(std::span<const Observed> runs) {
  progress_.clear();
  ++number_;
  if (!common_.json && !options_.csv) {
    return output_.show((number_ > 1 ? "\n" : "") + to_text_(runs, shown_, output_));
  }
  std::vector<Observed> asked;
  if (!options_.only.empty()) {
    asked.assign(runs.begin(), runs.end());
    // Without what was measured for the page, or along with what was asked for.
    const std::vector<std::string> views = named_views(options_, shown_);
    for (Observed& run : asked) keep_views(run, views);
    runs = asked;
  }
  if (common_.json) return output_.write(lens::to_json(runs) + "\n");
  if (number_ == 1) output_.write(csv_head());
  output_.write(to_csv(runs, number_));
}

void Report::add_to_page(std::span<const Observed> runs, size_t left_out) {
  if (!page_) return;
  page_->leave_out(left_out);
  page_->add(runs);
}

void Report::finish() {
  if (page_) page_->write(common_.quiet);
}

}  // namespace infer
