// infer compare A B [TEXT…]: two models, or two kinds of positions, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "infer/cli/input_options.h"
#include "infer/commands.h"
#include "infer/render/report.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kCompareExamples =
    R"(All numbers are means over the texts. Texts longer than the models were trained
on are cut.

Examples:
  infer compare sinusoidal learned "Tom bit a dog."
  infer compare sinusoidal learned -i sentences.txt --html page.html
  infer compare learned --positions learned --positions none "Tom bit a dog."
  infer compare learned --precision f32,int8 --only moved "Tom bit a dog."
  infer compare sinusoidal learned --only heads --head 1.2 "Tom bit a dog.")";

constexpr const char* kDefaultText = "The dog ran after the cat, and the cat ran up the tree.";

struct CompareArguments : InputOptions {
  std::vector<std::string> positions, masks;  // of both runs
  std::vector<phasor::Precision> precisions;
};

std::optional<int> parse_arguments(CommandLine& line, CompareArguments& arguments) {
  line.footer(views_help() + kCompareExamples);
  line.words("WORDS",
             "two models (or one, with two --positions, --mask or --precision), then texts; - is "
             "standard input",
             arguments.words);
  line.option("-i,--input", "FILE",
              "one text a line: for masked tokens, and as the texts if none are given",
              arguments.file);
  add_ids(line, arguments);
  line.list("--positions", "KIND",
            "given twice, for each run of one model: own, none, sinusoidal[:LAYOUT], learned, "
            "rotary[:BASE] or alibi",
            arguments.positions);
  line.list("--mask", "MASK",
            "given twice, which tokens a token sees: causal (up to itself), none (all) or own",
            arguments.masks);
  line.list("--precision", "P",
            "f32 (default), bf16, int8 or auto; two with a comma: one for each run of one model",
            arguments.precisions, Values::kCommas);
  add_views(line, arguments.views);
  add_common(line, kLinks | kThreads | kKernels | kPrint, arguments.common);
  return line.parse();
}

/// Takes the models off the front of the words: two, or one twice.
std::array<std::string, 2> take_models(CompareArguments& arguments) {
  std::vector<std::string>& words = arguments.words;
  for (const auto& [option, values] :
       {std::pair("--positions", arguments.positions), {"--mask", arguments.masks}}) {
    if (values.empty() || values.size() == 2) continue;
    throw UsageError(
        fmt::format("compare: give {0} twice to compare two runs of one model, like {0} own {0} "
                    "none, or not at all to compare two models",
                    option));
  }
  if (!arguments.masks.empty() && arguments.positions.empty()) arguments.positions = {"own", "own"};
  const size_t precisions = arguments.precisions.size();
  if (precisions > 2)
    throw UsageError(
        fmt::format("compare: --precision names {}; give one, or two like f32,int8", precisions));
  const size_t count = arguments.positions.empty() && precisions < 2 ? 2 : 1;
  if (words.size() < count) {
    throw UsageError(
        "compare: give two models, like infer compare sinusoidal learned, or one with --positions "
        "twice, like infer compare learned --positions learned --positions none, or one with "
        "--precision f32,int8");
  }
  if (count == 1 && words.size() > 1 && names_model(words[1])) {
    throw UsageError(
        fmt::format("compare: two models, or two ways to run one: write infer compare {0} {1}, or "
                    "leave out {1}",
                    words[0], words[1]));
  }
  std::array<std::string, 2> models = {words.front(), words[count - 1]};
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
  refuse_ids_and_texts(arguments);
  return models;
}

/// What the sides of one model differ in: "learned", "own", "int8", "own int8".
std::string label_of(const CompareArguments& arguments, size_t side) {
  std::string label = arguments.positions.empty() ? "" : arguments.positions[side];
  if (!arguments.masks.empty())
    label = (label == "own" ? "" : label + ", ") + "mask " + arguments.masks[side];
  if (arguments.precisions.size() < 2) return label;
  return label + (label.empty() ? "" : " ") + std::string(to_string(arguments.precisions[side]));
}

/// The two runs, which borrow the encoders: one for both where they run one model in one precision.
std::vector<lens::Run> make_runs(const CompareArguments& arguments,
                                 std::span<const std::string> names,
                                 std::span<const std::shared_ptr<const phasor::Model>> models,
                                 std::vector<phasor::Encoder>& encoders) {
  const auto& precisions = arguments.precisions;
  const bool is_alike =
      models[0] == models[1] && (precisions.size() < 2 || precisions[0] == precisions[1]);
  encoders.reserve(models.size());
  std::vector<lens::Run> runs;
  for (size_t side = 0; side < models.size(); ++side) {
    CommonOptions common = arguments.common;
    if (!precisions.empty()) common.precision = precisions[side % precisions.size()];
    if (side == 0 || !is_alike) encoders.emplace_back(models[side], encoder_options(common));
    lens::Run& run = runs.emplace_back(lens::Run{
        .encoder = &encoders.back(), .label = label_of(arguments, side), .name = names[side]});
    if (arguments.positions.empty()) continue;
    const std::string mask = arguments.masks.empty() ? "" : arguments.masks[side];
    const phasor::PositionConfig& own = models[side]->config().position;
    run.options.positions = parse_positions(arguments.positions[side], own, mask);
  }
  return runs;
}

void print_notes(const CompareArguments& arguments, std::span<const Observed> runs,
                 int64_t max_tokens) {
  for (const phasor::Precision precision : arguments.precisions) note_slow(precision);
  note_models_as_texts(arguments.words, arguments.common);
  if (!arguments.has_input() && arguments.file.empty())
    report_note(fmt::format("no text was given; this is about \"{}\"", kDefaultText));
  for (const Observed& run : runs.first(2)) note_texts(run.label, run, max_tokens);
  if (runs[1].other_tokens)
    report_note("the two tokenizers make different tokens of the same texts: compare with care");
}

/// What is compared, one line for each property.
std::string header(std::span<const Observed> runs, int width) {
  const int most = std::min((width - 16) / 2, 32);
  std::string out;
  for (const auto& [name, member] : {std::pair("", &Observed::label),
                                     {"model", &Observed::model},
                                     {"positions", &Observed::positions},
                                     {"precision", &Observed::precision}}) {
    const std::string first = cut_left(printable(runs[0].*member), most);
    out += trimmed("  " + pad_right(name, 12) + pad_right(first, most + 2) +
                   cut_left(printable(runs[1].*member), most));
  }
  return out + "\n";
}

}  // namespace

int compare(CommandLine& line) {
  CompareArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  const std::array<std::string, 2> names = take_models(arguments);
  std::vector models = {phasor::Model::load(names[0], load_options(common))};
  try {
    if (names[1] != names[0]) phasor::find_model(names[1]);
  } catch (const phasor::ModelError& error) {
    throw phasor::ModelError(
        fmt::format("{}; two models come before the texts of compare, or one with two "
                    "--positions or --precision f32,int8",
                    error.what()));
  }
  models.push_back(names[1] == names[0] ? models[0]
                                        : phasor::Model::load(names[1], load_options(common)));
  const Shown shown = parse_views(
      arguments.views, arguments.as_text(), models[0]->config(),
      {.text = "compare shows means; infer observe shows the pattern of a text",
       .lines = arguments.file.empty() ? "give a file of sentences with -i FILE" : nullptr});
  const bool concludes = arguments.as_text() && arguments.views.only.empty();
  Report report(common, arguments.views, shown, concludes ? to_overview : to_text);
  std::vector<phasor::Encoder> encoders;
  const std::vector<lens::Run> compared = make_runs(arguments, names, models, encoders);
  const std::vector<std::string> lines =
      arguments.file.empty() ? std::vector<std::string>() : read_lines(arguments.file);
  std::vector<std::string> words = read_texts(arguments.words);
  if (!arguments.has_input()) words = lines;
  if (!arguments.has_input() && lines.empty()) words.emplace_back(kDefaultText);
  const std::vector<lens::Text> texts = make_texts(arguments.ids, words);
  lens::ObserveOptions options = report.observe_options(trained_length(compared));
  options.masked = lines;
  // One text has no interval: one untrained model says what the architectures alone would give.
  if (concludes && !report.has_page() && texts.size() == 1 && lines.empty() &&
      options.baseline.models == 0)
    options.baseline.models = 1;
  std::vector<Observed> only;  // text
  std::vector<Observed> runs =
      lens::observe_means(compared, texts, options, [&](std::vector<Observed>&& text) {
        texts.size() == 1 ? void(only = std::move(text)) : report.add_to_page(text);
        return true;
      });
  for (Observed& run : runs) run.file = arguments.has_input() ? "" : arguments.file;
  report.clear_progress();
  if (!common.quiet) print_notes(arguments, runs, options.tokenize.max_tokens);
  // Of the only text, the page has the trained models' runs.
  if (!only.empty()) only.insert(only.end(), runs.begin() + 2, runs.end());
  report.leave_out(texts.size() - std::min(texts.size(), Report::kMostTexts));
  report.add_to_page(only.empty() ? runs : only);
  report.finish();
  if (arguments.as_text()) report.output().show(header(runs, report.output().width()));
  report.print(runs);
  return 0;
}

}  // namespace infer
