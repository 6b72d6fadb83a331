#include "infer/render/print.h"

#include <vector>

#include "infer/render/csv.h"
#include "infer/render/observed_text.h"

namespace infer {

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
