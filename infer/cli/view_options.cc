#include "infer/cli/view_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/cli/usage.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// "2.1", or "L1H0" as TransformerLens' users write the same head.
HeadNumber parse_head(const std::string& name, const phasor::ModelConfig& config) {
  const bool from_zero = name.starts_with('L');
  const std::string_view text = std::string_view(name).substr(from_zero ? 1 : 0);
  const size_t mark = std::min(text.find(from_zero ? 'H' : '.'), text.size());
  const auto layer = parse_number<int64_t>(text.substr(0, mark));
  const auto head = parse_number<int64_t>(text.substr(std::min(mark + 1, text.size())));
  if (!layer || !head) {
    throw UsageError(fmt::format(
        "--head: '{}' is no head; write LAYER.HEAD, both counted from 1, like 2.1, or L1H0, the "
        "same head counted from 0, or all",
        name));
  }
  const int64_t first = from_zero ? 0 : 1;
  const int64_t last_layer = config.num_layers - 1 + first, last = config.num_heads - 1 + first;
  if (*layer >= first && *layer <= last_layer && *head >= first && *head <= last) {
    return {*layer + 1 - first, *head + 1 - first};
  }
  throw phasor::InvalidArgument(fmt::format("--head: there is no head {}; this model has {}", name,
                                            from_zero
                                                ? fmt::format("L0H0 to L{}H{}", last_layer, last)
                                                : fmt::format("1.1 to {}.{}", last_layer, last)));
}

std::vector<HeadNumber> parse_heads(const std::vector<std::string>& names,
                                    const phasor::ModelConfig& config) {
  std::vector<HeadNumber> heads;
  for (const std::string& name : names) {
    if (name != "all") {
      heads.push_back(parse_head(name, config));
      continue;
    }
    for (int64_t head = 0; head < config.num_layers * config.num_heads; ++head) {
      heads.push_back({head / config.num_heads + 1, head % config.num_heads + 1});
    }
  }
  return heads;
}

}  // namespace

void add_views(CommandLine& line, ViewOptions& options) {
  add_only(line, "view", names_of(lens::views()), options.only);
  line.option("--seed", "N", "seed of the random orders and masks (default: 1)", options.seed);
  line.option("--without", "HOW",
              "what effect and pooled compare with: mean (default), the table's mean row at every "
              "token, or zero, no vector",
              options.without);
  line.option("--baseline", "KIND",
              "random or random:SEEDS: beside each run, the mean and the range of 3 (or SEEDS) "
              "untrained models of the same architecture",
              options.baseline);
  add_html(line, options.html);
  line.flag("--csv", "print every number on a line: text,run,layer,head,measure,value",
            options.csv);
}

void add_head(CommandLine& line, ViewOptions& options) {
  line.list(
      "--head", "LAYER.HEAD",
      "the head whose attention pattern and rows are shown, like 2.1 or, counted from 0, L1H0; "
      "or all (default: the most positional head's pattern, and all rows); repeatable",
      options.heads, Values::kCommas);
}

void add_top_k(CommandLine& line, ViewOptions& options) {
  line.option("--top-k", "N", "the N most probable tokens for each [MASK] (default: 5)",
              options.top_k, Range{1, 1000});
}

Shown parse_views(const ViewOptions& options, bool as_text, const phasor::ModelConfig& config,
                  const std::function<std::string(Needs)>& why_not) {
  const std::vector<std::string_view> names = names_of(lens::views());
  Shown shown{.all_rows = !options.only.empty(), .heads = parse_heads(options.heads, config)};
  const auto lacks = [&](size_t i) { return why_not(lens::views()[i].needs); };
  for (const size_t i : picked(options.only, names, lacks)) {
    const View& view = lens::views()[i];
    const bool named = !options.only.empty();
    if (!named && view.slow) continue;
    shown.of_page.push_back(&view);
    if (named || !as_text || view.brief) shown.views.push_back(&view);
  }
  return shown;
}

int64_t baseline_seeds(const ViewOptions& options) {
  if (options.baseline.empty()) return 0;
  if (options.baseline == "random") return 3;
  const std::string_view text = options.baseline;
  const auto seeds =
      text.starts_with("random:") ? parse_number<int64_t>(text.substr(7)) : std::nullopt;
  if (!seeds || *seeds < 1 || *seeds > 10) {
    throw UsageError(fmt::format(
        "--baseline: '{}' is neither random nor random:SEEDS with 1 to 10 seeds", text));
  }
  return *seeds;
}

lens::ObserveOptions observe_options(const ViewOptions& options, const Shown& shown, bool means) {
  if (options.without != "mean" && options.without != "zero") {
    throw UsageError(fmt::format("--without: '{}' is neither mean nor zero", options.without));
  }
  lens::ObserveOptions observed{.views = {"norm"},
                                .without = options.without,
                                .seed = options.seed,
                                .top_k = options.top_k,
                                .untrained = baseline_seeds(options)};
  for (const View* view : options.html.empty() ? shown.views : shown.of_page) {
    const bool of_texts = view->needs == Needs::kNothing || view->needs == Needs::kTwoRuns ||
                          view->needs == Needs::kOneText;
    if (means ? view->needs != Needs::kOneText : of_texts) observed.views.emplace_back(view->name);
  }
  return observed;
}

std::string views_help() {
  std::string help = "Views (--only picks some of them; --only all shows them all):\n";
  for (const View& view : lens::views()) {
    help +=
        fmt::format("  {:<10} {}{}\n", view.name, view.title,
                    view.needs == Needs::kManyTexts || needs_file(view.needs) ? " (-i FILE)" : "");
  }
  return help;
}

bool Shown::has(const Row& row) const {
  return row.head == 0 || heads.empty() || std::ranges::any_of(heads, [&](HeadNumber head) {
           return head.layer == row.layer && head.head == row.head;
         });
}

}  // namespace infer
