#include "infer/cli/view_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/cli/terminal.h"
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
  add_only(line, "views", options.only);
  line.list("--head", "HEAD", "whose pattern and rows are shown: 2.1, L1H0 (from 0) or all",
            options.heads, Values::kCommas);
  line.option("--baseline", "KIND",
              "random[:N]: beside each run, 3 (or N) models of its architecture with weights as "
              "before training; own[:N]: with random weights of the trained ones' sizes",
              [&](const std::string& name) {
                options.baseline = of_option("--baseline", [&] { return lens::baseline_of(name); });
              });
  add_html(line, options.html);
  line.flag("--csv", "print every number on a line: text,run,layer,head,measure,value",
            options.csv);
  line.option("--seed", "N", "", options.seed);
  line.option("--without", "HOW", "", options.without);
}

void add_top_k(CommandLine& line, ViewOptions& options) {
  line.option("--top-k", "N", "the N most probable tokens for each [MASK] (default: 5)",
              options.top_k, Range{1, 1000});
}

Shown parse_views(const ViewOptions& options, bool as_text, const phasor::ModelConfig& config,
                  const Lacks& lacks) {
  const std::vector<std::string_view> names = names_of(lens::views());
  Shown shown{.all_rows = !options.only.empty(), .heads = parse_heads(options.heads, config)};
  const auto why_not = [&](size_t i) {
    const char* const lack = phasor::internal::lacking(lens::views()[i].needs, lacks);
    return std::string(lack == nullptr ? "" : lack);
  };
  for (const size_t i : picked(options.only, names, why_not)) {
    const View& view = lens::views()[i];
    const bool named = !options.only.empty();
    if (!named && view.slow) continue;
    shown.of_page.push_back(&view);
    if (named || !as_text || view.brief) shown.views.push_back(&view);
  }
  return shown;
}

std::vector<std::string> named_views(const ViewOptions& options, const Shown& shown) {
  std::vector<std::string> names;
  if (options.only.empty()) return names;
  for (const View* const view : shown.views) names.emplace_back(view->name);
  return names;
}

lens::ObserveOptions observe_options(const ViewOptions& options, const Shown& shown) {
  if (options.without != "mean" && options.without != "zero") {
    throw UsageError(fmt::format("--without: '{}' is neither mean nor zero", options.without));
  }
  lens::ObserveOptions observed{.views = {"norm"},
                                .without = options.without,
                                .seed = options.seed,
                                .top_k = options.top_k,
                                .baseline = options.baseline,
                                .allowed_only = true};
  for (const View* view : options.html.empty() ? shown.views : shown.of_page)
    observed.views.emplace_back(view->name);
  return observed;
}

std::string views_help() {
  return wrapped(fmt::format("Views (docs/reading-in-python.md#views says what each holds): {}.",
                             fmt::join(names_of(lens::views()), ", ")),
                 2, 80) +
         "\n";
}

bool Shown::has(const Row& row) const {
  return row.head == 0 || heads.empty() || std::ranges::any_of(heads, [&](HeadNumber head) {
           return head.layer == row.layer && head.head == row.head;
         });
}

}  // namespace infer
