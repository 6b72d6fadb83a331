#include "infer/render/differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/render/observed_text.h"

namespace infer {

std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  constexpr int kNumber = 14, kLayer = 7;
  const int title = std::clamp(output.width() - 2 - 2 * kNumber - kLayer, 20, 40);
  const auto cell = [](const std::string& text) {
    return pad_left(cut_left(text, kNumber - 2), kNumber);
  };
  std::string out = title_of(runs[0], output) + "\n";
  out += conclusion_lines(runs, shown.views);
  out += "\n" +
         output.heading("Means over the layers of both, and the layer where they differ most") +
         "\n";
  out += trimmed(pad_right("", title + 2) + cell(printable(runs[0].label)) +
                 cell(printable(runs[1].label)) + "  layer");
  for (const auto& each : differences(runs, shown.views)) {
    const Column& column = each.view->columns[each.view->lead];
    const std::string layer =
        each.place.layer < 0 ? "" : name_of(Row{.layer = each.place.layer, .cells = {}});
    const std::string name = wrapped(lead_name(*each.view), 4, title);
    const std::string end = name.substr(name.rfind('\n') + 1);
    out += trimmed("  " + name + std::string(title - display_width(end), ' ') +
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
