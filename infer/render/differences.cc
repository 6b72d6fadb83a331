#include "infer/render/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "infer/render/observed_text.h"

namespace infer {
namespace {

const Column& lead(const View& view) { return view.columns[view.lead]; }

/// What the leading column holds: "Order sensitivity (shuffle)".
std::string lead_name(const View& view) {
  const bool one_of_several = view.series > 1 || view.lead > 0;
  return one_of_several ? fmt::format("{} ({})", view.title, label_of(lead(view))) : view.title;
}

/// The numbers of a view's leading column in two runs, row by row.
struct Difference {
  const View* view = nullptr;
  Row place = {};  // where it is largest
  std::array<double, 2> there = {};
  std::array<double, 2> mean = {};
  double relative = 0;  // |a − b| / max(|a|, |b|)
};

std::optional<Difference> difference(const View& view, std::span<const Observed> runs) {
  const Table* const a = runs[0].table(view.name);
  const Table* const b = runs[1].table(view.name);
  if (a == nullptr || b == nullptr || view.rows == Rows::kHeads || view.columns.empty()) return {};
  Difference found{.view = &view};
  const int64_t column = a->column(lead(view).key), other_column = b->column(lead(view).key);
  if (column < 0 || other_column < 0) return {};
  int64_t rows = 0;
  for (const Row& row : a->rows) {
    const Row* const other = b->find(row);
    if (other == nullptr) continue;
    const double x = row.cells[column], y = other->cells[other_column];
    found.mean[0] += x;
    found.mean[1] += y;
    ++rows;
    if (rows > 1 && std::abs(x - y) <= std::abs(found.there[0] - found.there[1])) continue;
    found.place = {row.layer, row.head, row.label, {}, {}};
    found.there = {x, y};
    if (view.rows == Rows::kNamed) break;  // the first row stands for all
  }
  if (rows == 0) return {};
  for (double& mean : found.mean) mean /= static_cast<double>(rows);
  const double most = std::max(std::abs(found.there[0]), std::abs(found.there[1]));
  if (most > 1e-6) found.relative = std::abs(found.there[0] - found.there[1]) / most;
  return found;
}

std::vector<Difference> differences(std::span<const Observed> runs, const Shown& shown) {
  std::vector<Difference> all;
  for (const View* view : shown.views) {
    if (const auto found = difference(*view, runs)) all.push_back(*found);
  }
  return all;
}

std::string where(const Difference& difference) {
  const Row& place = difference.place;
  if (place.layer < 0) return fmt::format(" ({} {})", difference.view->row_name, place.label);
  return place.layer == 0 ? " in the embedding" : fmt::format(" in layer {}", place.layer);
}

}  // namespace

std::vector<std::string> differences_in_words(std::span<const Observed> runs, const Shown& shown) {
  std::vector<Difference> all = differences(runs, shown);
  const bool comparable = !all.empty();
  std::erase_if(all, [](const Difference& d) { return d.relative < 0.05; });
  std::ranges::stable_sort(all, {}, [](const Difference& d) { return -d.relative; });
  std::vector<std::string> out;
  const bool asked = std::ranges::find(shown.views, &view("moved")) != shown.views.end();
  const Table* const moved = runs[1].table("moved");
  if (asked && moved != nullptr && !moved->rows.empty()) {
    const double last = moved->rows.back().cells[0];
    out.push_back(last < 1e-6
                      ? fmt::format("The last states of {} and {} are the same.", runs[0].label,
                                    runs[1].label)
                      : fmt::format("The last states of {} and {} differ by 1 − cos {} on average.",
                                    runs[0].label, runs[1].label, small_number(last)));
  }
  if (comparable && all.empty() && out.empty())
    return {"In no view does the leading number differ by more than 5 %."};
  for (const Difference& each : all) {
    if (out.size() == 3) break;
    const Column& column = lead(*each.view);
    const std::string unit = *each.view->unit != '\0' ? fmt::format(", {}", each.view->unit) : "";
    out.push_back(fmt::format("{}{}: {} {}, {} {}{}.", lead_name(*each.view), unit, runs[0].label,
                              number_text(each.there[0], column), runs[1].label,
                              number_text(each.there[1], column), where(each)));
  }
  return out;
}

std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  constexpr int kNumber = 14, kLayer = 7;
  const int title = std::clamp(output.width() - 2 - 2 * kNumber - kLayer, 20, 40);
  const auto cell = [](const std::string& text) {
    return pad_left(cut_left(text, kNumber - 2), kNumber);
  };
  std::string out = title_of(runs[0], output) + "\n" + "  Largest differences:\n";
  for (const std::string& sentence : differences_in_words(runs, shown))
    out += paragraph(printable(sentence));
  out += "\n" +
         output.heading("Means over the layers of both, and the layer where they differ most") +
         "\n";
  out += trimmed(pad_right("", title + 2) + cell(printable(runs[0].label)) +
                 cell(printable(runs[1].label)) + "  layer");
  for (const Difference& each : differences(runs, shown)) {
    const Column& column = lead(*each.view);
    const std::string layer =
        each.place.layer < 0 ? "" : name_of(Row{.layer = each.place.layer, .cells = {}});
    out += trimmed("  " + pad_right(cut_right(lead_name(*each.view), title - 1), title) +
                   cell(number_text(each.mean[0], column)) +
                   cell(number_text(each.mean[1], column)) + pad_left(layer, kLayer));
  }
  for (const View* view : shown.views) {
    const std::string missing = missing_lines(*view, runs);
    if (!missing.empty()) out += fmt::format("  {}\n  {}", view->title, missing);
  }
  return out + "\n  --only NAME or --only all prints the tables.\n";
}

}  // namespace infer
