// What infer observe was asked to do.
#include "infer/commands/observe_options.h"

#include <fmt/format.h>

#include <charconv>

#include "infer/cli/only.h"
#include "infer/commands.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Shows what every layer of an encoder does with the positions of each TEXT, and what becomes "
    "of it\nwhen the positions are changed or a residual connection is cut.";

constexpr const char* kFooter = R"(Views (--only picks some of them):
  moved      how far the interventions move the states (0: not at all, 1: to a right angle)
  split      shares of the states' variance: position, token, and both mixed (they sum to 1)
  direct     the position vector's own share of the states, every LayerNorm frozen (0: gone)
  effect     mean 1 - cos between the states with and without positions (0: positions do nothing)
  order      how far the states move when two tokens are swapped, pairs are shuffled, all are
             reversed, all are shuffled (0: order does not matter)
  attention  how far it reaches, its entropy (0: to one token, 1: to all alike), its share by
             offset, and the positional heads
  pattern    one head's attention as a picture (--head)
  scores     the first layer's scores by what query and key come from (1: decides, 0: no say)
  corpus     with -i: shares of the states' variance over texts: position, text, and the rest
  probe      with -i: how well a linear map reads positions off the states of unseen texts
             (R² 1: exactly, 0: not at all)
Layers and heads count from 1, tokens from 0. With --csv, text,run,layer,head,measure,value.

Examples:
  infer observe "Tom bit a dog."
  infer observe --cut-residual 1.attn --only direct "Tom bit a dog."
  infer observe --edit reverse --edit scale=0.5 "Tom bit a dog."
  infer observe --only pattern --head 2.1 "Tom bit a dog."
  infer observe -m learned --csv "Tom bit a dog." > observed.csv
  infer observe --html page.html --edit reverse "Tom bit a dog."
  infer observe --svg figures --only split,pattern "Tom bit a dog."
  infer observe -i sentences.txt --only probe)";

/// As it stands on the command line.
struct Words {
  std::vector<std::string> only;
  std::string head;
};

/// "2.1".
HeadNumber parse_head(const std::string& name) {
  HeadNumber head;
  const char* const end = name.data() + name.size();
  const auto layer = std::from_chars(name.data(), end, head.layer);
  if (layer.ec == std::errc() && layer.ptr != end && *layer.ptr == '.') {
    const auto rest = std::from_chars(layer.ptr + 1, end, head.head);
    if (rest.ec == std::errc() && rest.ptr == end) return head;
  }
  throw UsageError(fmt::format("--head: '{}' is no head; write LAYER.HEAD from 1, like 2.1", name));
}

/// What is not given that a view needs; empty where all is.
std::string why_impossible(View view, const ObserveOptions& options) {
  if (view == View::kMoved && !options.interventions.any()) {
    return "give an --edit or --cut-residual that moves something";
  }
  const bool of_many = view == View::kCorpus || view == View::kProbe;
  if (of_many && options.file.empty()) return "give a file of texts with -i FILE";
  return "";
}

std::vector<View> parse_views(const std::vector<std::string>& names,
                              const ObserveOptions& options) {
  const auto why_not = [&](size_t i) { return why_impossible(static_cast<View>(i), options); };
  std::vector<View> views;
  for (const size_t i : picked(names, kViewNames, why_not)) views.push_back(static_cast<View>(i));
  return views;
}

void add_options(CommandLine& line, ObserveOptions& options, Words& words) {
  line.option("-i,--input", "FILE", "a file whose lines are observed as one, by means",
              options.file);
  line.option("--max-tokens", "N", "cut every text to so many tokens", options.texts.max_tokens,
              Range{1, int64_t{1} << 31});
  add_interventions(line, options.interventions);
  add_only(line, "view", words.only);
  line.option("--head", "LAYER.HEAD",
              "whose attention pattern is shown (default: the most positional head)", words.head);
  line.option("--seed", "N", "for the orders that are drawn (default: 1)", options.seed);
  add_save(line, options.texts);
  add_html(line, options.html);
  line.option("--svg", "DIR", "write the views' figures to a folder", options.svg);
  add_threads(line, options.texts.common);
  add_precision(line, options.texts.common);
  line.flag("--csv", "print every number in a line of its own", options.csv);
  add_json_and_quiet(line, options.texts.common);
}

}  // namespace

std::optional<int> parse_observe(int argc, char** argv, ObserveOptions& options) {
  CommandLine line("infer observe", kDescription, kFooter);
  add_texts(line, options.texts);
  Words words;
  add_options(line, options, words);
  if (const auto done = line.parse(argc, argv)) return done;
  take_texts(options.texts);
  if (!options.texts.has_input() && options.file.empty()) {
    throw UsageError("observe: give a text, like infer observe \"Tom bit a dog.\"");
  }
  if (options.csv && options.texts.common.json) {
    throw UsageError("--csv and --json exclude each other; give one of them");
  }
  if (!options.texts.save.empty() && !options.texts.has_input()) {
    throw UsageError("--save is for texts, not for the lines of -i; give a text");
  }
  options.shown.views = parse_views(words.only, options);
  if (!words.head.empty()) options.shown.head = parse_head(words.head);
  return std::nullopt;
}

void check_head(const Shown& shown, const phasor::ModelConfig& config) {
  if (!shown.head) return;
  const HeadNumber& head = *shown.head;
  const bool there = head.layer >= 1 && head.layer <= config.num_layers && head.head >= 1 &&
                     head.head <= config.num_heads;
  if (there) return;
  throw phasor::InvalidArgument(
      fmt::format("--head: there is no head {}.{}; this model has 1.1 to {}.{}", head.layer,
                  head.head, config.num_layers, config.num_heads));
}

Request request_for(const ObserveOptions& options) {
  constexpr std::array<std::pair<View, Measure>, 9> kMeasures = {
      {{View::kSplit, Measure::kSplit},
       {View::kDirect, Measure::kDirect},
       {View::kEffect, Measure::kEffect},
       {View::kOrder, Measure::kOrder},
       {View::kAttention, Measure::kAttention},
       {View::kPattern, Measure::kAttention},
       {View::kScores, Measure::kScores},
       {View::kCorpus, Measure::kCorpusSplit},
       {View::kProbe, Measure::kProbe}}};
  Request request{.seed = options.seed,
                  .states = options.interventions.any(),
                  .arrays = !options.texts.save.empty()};
  for (const View view : options.shown.views) {
    for (const auto& [of, measure] : kMeasures) {
      if (of == view && !request.asks(measure)) request.measures.push_back(measure);
    }
    if (view == View::kPattern) request.patterns = options.prints_tables() || !options.svg.empty();
  }
  return request;
}

}  // namespace infer
