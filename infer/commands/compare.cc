// infer compare A B [TEXT…]: two models, or two kinds of positions, side by side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "infer/cli/input_options.h"
#include "infer/cli/terminal.h"
#include "infer/cli/view_options.h"
#include "infer/commands.h"
#include "infer/render/observed_text.h"
#include "infer/render/page.h"
#include "infer/render/print.h"
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

struct CompareArguments {
  CommonOptions common;
  ViewOptions views;
  std::vector<std::string> words, positions, masks, ids;
  std::vector<phasor::Precision> precisions;
  std::string file;

  bool no_text() const { return words.empty() && ids.empty(); }
};

/// Two models, or one twice.
using Names = std::array<std::string, 2>;

std::optional<int> parse_arguments(CommandLine& line, CompareArguments& arguments) {
  line.footer(views_help() + kCompareExamples);
  line.words("WORDS",
             "two models (or one, with two --positions, --mask or --precision), then texts; - is "
             "standard input",
             arguments.words);
  line.option("-i,--input", "FILE",
              "one text a line: for masked tokens, and as the texts if none are given",
              arguments.file);
  line.list("--ids", "IDS", "token ids like \"5 17 9\" instead of texts", arguments.ids);
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
  if (const auto done = line.parse()) return done;
  if (arguments.views.csv && arguments.common.json) {
    throw UsageError("--csv and --json exclude each other; give one of them");
  }
  return std::nullopt;
}

/// Of a list option: how it is written.
std::string written(const char* option, std::span<const std::string> values) {
  std::string all;
  for (const std::string& value : values) all += fmt::format(" {} {}", option, value);
  return all;
}

/// Either the models differ, or how one model is run.
void refuse_second_model(const CompareArguments& arguments) {
  const std::string &first = arguments.words[0], &second = arguments.words[1];
  std::string options =
      written("--positions", arguments.positions) + written("--mask", arguments.masks);
  std::vector<std::string_view> precisions;
  for (const phasor::Precision precision : arguments.precisions)
    precisions.push_back(to_string(precision));
  if (!precisions.empty()) options += fmt::format(" --precision {}", fmt::join(precisions, ","));
  throw UsageError(
      fmt::format("compare: the models {0} and {1} cannot be compared together with kinds of "
                  "positions or with two "
                  "precisions; write infer compare {0} {1}, or infer compare {0}{2}",
                  first, second, options));
}

/// Takes the models off the front of the words.
Names take_models(CompareArguments& arguments) {
  const bool two_models = arguments.words.size() > 1 && names_model(arguments.words[1]);
  if (arguments.positions.size() == 1 && two_models) {
    arguments.positions.insert(arguments.positions.begin(), "own");
    refuse_second_model(arguments);
  }
  if (!arguments.masks.empty() && arguments.masks.size() != 2) {
    throw UsageError(
        "compare: give --mask twice to compare two masks in one model, like --mask none --mask "
        "causal");
  }
  if (!arguments.masks.empty() && arguments.positions.empty()) arguments.positions = {"own", "own"};
  const size_t positions = arguments.positions.size(), precisions = arguments.precisions.size();
  if (positions == 1 || positions > 2) {
    throw UsageError(
        "compare: give --positions twice to compare two kinds of positions in one model, or not at "
        "all to compare two models");
  }
  if (precisions > 2) {
    throw UsageError(
        fmt::format("compare: --precision names {}; give one, or two like f32,int8", precisions));
  }
  const size_t count = positions + precisions > 1 ? 1 : 2;
  if (arguments.words.size() < count) {
    throw UsageError(
        "compare: give two models, like infer compare sinusoidal learned, or one with --positions "
        "twice, like infer compare learned --positions learned --positions none, or one with "
        "--precision f32,int8");
  }
  if (count == 1 && two_models) refuse_second_model(arguments);
  const Names models = {arguments.words.front(), arguments.words[count - 1]};
  arguments.words.erase(arguments.words.begin(),
                        arguments.words.begin() + static_cast<std::ptrdiff_t>(count));
  if (!arguments.ids.empty() && !arguments.words.empty()) {
    throw UsageError("--ids and texts exclude each other; give one of them");
  }
  return models;
}

std::shared_ptr<const phasor::Model> load_second(const std::string& name,
                                                 const phasor::LoadOptions& options) {
  try {
    phasor::find_model(name);
  } catch (const phasor::ModelError& error) {
    throw phasor::ModelError(
        fmt::format("{}; two models come before the texts of compare, or one with two "
                    "--positions or --precision f32,int8",
                    error.what()));
  }
  return phasor::Model::load(name, options);
}

/// What the sides of one model differ in: "learned", "own", "int8", "own int8".
std::string label_of(const CompareArguments& arguments, size_t side) {
  std::string label = arguments.positions.empty() ? "" : arguments.positions[side];
  if (!arguments.masks.empty())
    label = (label == "own" ? "" : label + ", ") + "mask " + arguments.masks[side];
  if (arguments.precisions.size() < 2) return label;
  return label + (label.empty() ? "" : " ") + std::string(to_string(arguments.precisions[side]));
}

/// One for each side, or for both where they run one model in one precision.
std::vector<phasor::Encoder> make_encoders(
    const CompareArguments& arguments,
    const std::array<std::shared_ptr<const phasor::Model>, 2>& models) {
  const auto& precisions = arguments.precisions;
  const auto precision = [&](size_t side) {
    return precisions.empty() ? phasor::Precision::kFloat32 : precisions[side % precisions.size()];
  };
  const bool alike = models[0] == models[1] && precision(0) == precision(1);
  std::vector<phasor::Encoder> encoders;
  for (size_t side = 0; side < (alike ? 1 : 2); ++side) {
    encoders.emplace_back(models[side],
                          phasor::EncoderOptions{.threads = arguments.common.threads,
                                                 .precision = precision(side),
                                                 .kernels = arguments.common.kernels});
  }
  return encoders;
}

std::vector<lens::Run> make_runs(const CompareArguments& arguments, const Names& names,
                                 std::span<phasor::Encoder> encoders) {
  std::vector<lens::Run> runs;
  for (size_t side = 0; side < 2; ++side) {
    phasor::Encoder& encoder = encoders[side % encoders.size()];
    runs.push_back({.encoder = &encoder, .label = label_of(arguments, side), .name = names[side]});
    if (arguments.positions.empty()) continue;
    const phasor::PositionConfig& own = encoder.model().config().position;
    const std::string mask = arguments.masks.empty() ? "" : arguments.masks[side];
    runs[side].options.positions = parse_positions(arguments.positions[side], own, mask);
  }
  return runs;
}

std::vector<std::string> texts_of(const CompareArguments& arguments,
                                  const std::vector<std::string>& lines) {
  if (!arguments.ids.empty()) return {};
  std::vector<std::string> texts = infer::read_texts(arguments.words);
  if (!texts.empty()) return texts;
  if (!arguments.words.empty()) {
    throw phasor::InvalidArgument("standard input holds no text; write one text a line");
  }
  return lines.empty() ? std::vector<std::string>{kDefaultText} : lines;
}

void print_notes(const CompareArguments& arguments, std::span<const Observed> runs,
                 int64_t max_tokens) {
  for (const phasor::Precision precision : arguments.precisions) note_slow(precision);
  note_models_as_texts(arguments.words, arguments.common);
  if (arguments.no_text() && arguments.file.empty()) {
    report_note(fmt::format("no text was given; this is about \"{}\"", kDefaultText));
  }
  for (const Observed& run : runs.first(2)) note_texts(run.label, run, max_tokens);
  if (runs[1].other_tokens) {
    report_note("the two tokenizers make different tokens of the same texts: compare with care");
  }
}

/// What is compared, one line for each property.
std::string header(std::span<const Observed> runs, int width) {
  std::string out;
  const auto row = [&](const char* label, const auto& cell) {
    const int most = std::min((width - 16) / 2, 32);
    out +=
        trimmed("  " + pad_right(label, 12) + pad_right(cut_left(cell(runs[0]), most), most + 2) +
                cut_left(cell(runs[1]), most));
  };
  row("", [](const Observed& side) { return printable(side.label); });
  row("model", [](const Observed& side) { return printable(side.model); });
  row("positions", [](const Observed& side) { return side.positions; });
  row("precision", [](const Observed& side) { return side.precision; });
  return out + "\n";
}

}  // namespace

int compare(CommandLine& line) {
  CompareArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  const Names names = take_models(arguments);
  const auto first = phasor::Model::load(names[0], load_options(common));
  const auto second = names[1] == names[0] ? first : load_second(names[1], load_options(common));
  const bool as_text = !common.json && !arguments.views.csv;
  const Shown shown = parse_views(
      arguments.views, as_text, first->config(),
      {.text = "compare shows means; infer observe shows the pattern of a text",
       .lines = arguments.file.empty() ? "give a file of sentences with -i FILE" : nullptr});
  std::vector<phasor::Encoder> encoders = make_encoders(arguments, {first, second});
  const std::vector<lens::Run> compared = make_runs(arguments, names, encoders);
  const int64_t max_tokens = trained_length(compared);
  const std::vector<std::string> lines =
      arguments.file.empty() ? std::vector<std::string>() : read_lines(arguments.file);
  const std::vector<lens::Text> texts = make_texts(arguments.ids, texts_of(arguments, lines));
  std::optional<HtmlReport> page;
  if (!arguments.views.html.empty())
    page.emplace(arguments.views.html, named_views(arguments.views, shown), shown.heads);
  lens::ObserveOptions options = observe_options(arguments.views, shown);
  options.tokenize = tokenize_options(common, max_tokens);
  options.masked = lines;
  options.arrays_of = page ? HtmlReport::kMostTexts : 0;
  const bool concludes = as_text && arguments.views.only.empty();
  // One text has no interval: one untrained model says what the architectures alone would give.
  if (concludes && !page && texts.size() == 1 && lines.empty() && options.untrained == 0)
    options.untrained = 1;
  std::vector<Observed> runs, only;  // means, and the only text
  {
    ProgressLine progress(common.quiet);
    options.progress = progress.stages();
    runs = lens::observe_means(compared, texts, options, [&](std::vector<Observed>&& text) {
      if (texts.size() == 1)
        only = std::move(text);
      else
        page->add(text);
      return true;
    });
  }
  for (Observed& run : runs) run.file = arguments.no_text() ? arguments.file : "";
  if (!common.quiet) print_notes(arguments, runs, max_tokens);
  if (page && texts.size() > HtmlReport::kMostTexts)
    page->leave_out(texts.size() - HtmlReport::kMostTexts);
  // Of the only text, the page has the trained models' runs.
  if (!only.empty()) only.insert(only.end(), runs.begin() + 2, runs.end());
  if (page) page->add(only.empty() ? runs : only);
  if (page) page->write(common.quiet);
  Output output;
  if (as_text) output.show(header(runs, output.width()));
  if (concludes) {
    output.show(to_overview(runs, shown, output));
  } else {
    print(runs, 1, common, arguments.views, shown, output);
  }
  return 0;
}

}  // namespace infer
