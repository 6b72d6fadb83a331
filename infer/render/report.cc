#include "infer/render/report.h"

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

/// Without what was measured for the page, or along with what was asked for.
std::vector<Observed> named(std::span<const Observed> runs, const Shown& shown) {
  std::vector<Observed> asked(runs.begin(), runs.end());
  for (Observed& run : asked) keep_views(run, shown.names);
  return asked;
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
  if (options.csv && common.json)
    throw UsageError("--csv and --json exclude each other; give one of them");
  if (!options.html.empty()) page_.emplace(options.html);
}

lens::ObserveOptions Report::observe_options(int64_t max_tokens) {
  lens::ObserveOptions options = options_.measured;
  for (const View* view : page_ ? shown_.of_page : shown_.views)
    options.views.emplace_back(view->name);
  options.tokenize = tokenize_options(common_, max_tokens);
  options.arrays_of = page_ ? kMostTexts : 0;
  options.progress = progress_.stages();
  return options;
}

void Report::say(std::string_view sentence) {
  if (sentence.empty() || common_.json || options_.csv) return;
  output_.show(paragraph(sentence) + "\n");
}

void Report::print(std::span<const Observed> runs) {
  progress_.clear();
  ++number_;
  if (!common_.json && !options_.csv) {
    return output_.show((number_ > 1 ? "\n" : "") + to_text_(runs, shown_, output_));
  }
  const std::vector<Observed> asked = named(runs, shown_);
  if (common_.json) return output_.write(lens::to_json(asked) + "\n");
  if (number_ == 1) output_.write(csv_head());
  output_.write(to_csv(asked, number_));
}

void Report::add_to_page(std::span<const Observed> runs) {
  if (!page_) return;
  if (!runs[0].means && page_texts_.size() >= kMostTexts) return leave_out(1);
  page_texts_.push_back(lens::to_json(named(runs, shown_), true));
}

void Report::finish() {
  if (!page_) return;
  if (!common_.quiet && left_out_ > 0) {
    report_note(
        fmt::format("the page shows the first {} texts, not the other {}", kMostTexts, left_out_));
  }
  const auto& heads = shown_.heads;
  page_->write(report_json(page_texts_, {}, heads.empty() ? std::nullopt : std::optional(heads[0])),
               common_.quiet);
}

}  // namespace infer
