// infer compare A B [TEXT…]: two models, or two kinds of positions, side by side.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "infer/cli/only.h"
#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/render/comparison_report.h"
#include "infer/render/report.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Shows two models side by side, layer by layer: how far positions and a new order of the "
    "tokens\nmove the states, where attention goes, what is left of the position vector, and how "
    "well masked\ntokens are predicted.";

constexpr const char* kFooter = R"(Tables (--only picks some of them):
  precision  how far the states in the second --precision are from those in the first
  effect     mean 1 - cos between the states with and without positions
  order      how far the states move when two tokens are swapped, pairs (ngrams) are shuffled,
             all are reversed, all are shuffled
  attention  mean distance of what attention reads, and its share by offset
  direct     the position vector's own share of the states, every LayerNorm frozen
  table      the position vectors by themselves: translation invariance, locality, symmetry
  masked     loss and accuracy on masked tokens of FILE, text by text
  longer     loss on masked tokens at 1, 1.5 and 2 times the trained length
Bars are relative to the longest of their table. Texts longer than the models were trained on are cut.

Examples:
  infer compare sinusoidal learned "Tom bit a dog."
  infer compare sinusoidal learned -i sentences.txt
  infer compare sinusoidal learned --html page.html "Tom bit a dog."
  infer compare learned --positions learned --positions none "Tom bit a dog."
  infer compare learned --precision f32,int8 --only precision "Tom bit a dog."
  infer compare sinusoidal none --only order,effect "Tom bit a dog.")";

constexpr const char* kDefaultText = "The dog ran after the cat, and the cat ran up the tree.";

struct CompareArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::vector<std::string> positions;
  std::vector<phasor::Precision> precisions;
  std::vector<std::string> ids;
  std::vector<std::string> only;
  std::string file;
  std::string html;
  uint64_t seed = 1;
};

std::optional<int> parse_arguments(int argc, char** argv, CompareArguments& arguments) {
  CommandLine line("infer compare", kDescription, kFooter);
  line.words(
      "WORDS",
      "two models (one, with two --positions or --precision), then texts; - is standard input",
      arguments.words);
  line.list("--positions", "KIND",
            "twice: what one model A runs with on either side: own, none, sinusoidal[:LAYOUT] or "
            "learned",
            arguments.positions);
  add_precisions(line,
                 "f32 (default), bf16, int8 or auto; two with a comma: what one model A runs in on "
                 "either side",
                 arguments.precisions);
  line.option("-i,--input", "FILE",
              "a file with a text a line, for the masked tokens; also the texts where none are "
              "given",
              arguments.file);
  line.list("--ids", "IDS", "token ids like \"5 17 9\" instead of texts; repeatable",
            arguments.ids);
  add_only(line, "table", arguments.only);
  add_html(line, arguments.html);
  line.option("--seed", "N", "for the orders and masks that are drawn (default: 1)",
              arguments.seed);
  add_threads(line, arguments.common);
  add_json_and_quiet(line, arguments.common);
  return line.parse(argc, argv);
}

/// Two models, or one twice; takes them off the front of `words`.
std::array<std::string, 2> take_models(CompareArguments& arguments) {
  const bool one_model = !arguments.positions.empty() || arguments.precisions.size() > 1;
  const size_t count = one_model ? 1 : 2;
  if (arguments.positions.size() == 1 || arguments.positions.size() > 2) {
    throw UsageError(
        fmt::format("compare: --positions was given {} times; give it twice to compare two kinds "
                    "of positions in one model, or not at all to compare two models",
                    arguments.positions.size()));
  }
  if (arguments.precisions.size() > 2) {
    throw UsageError(fmt::format("compare: --precision names {}; give one, or two like f32,int8",
                                 arguments.precisions.size()));
  }
  if (arguments.words.size() < count) {
    throw UsageError(
        "compare: give two models, like infer compare sinusoidal learned, or one with --positions "
        "twice, like infer compare learned --positions learned --positions none, or one with "
        "--precision f32,int8");
  }
  const std::array<std::string, 2> models = {arguments.words.front(), arguments.words[count - 1]};
  arguments.words.erase(arguments.words.begin(),
                        arguments.words.begin() + static_cast<std::ptrdiff_t>(count));
  return models;
}

/// What to call a model given as a path.
std::string label_of(const std::string& model) {
  const std::filesystem::path path = std::filesystem::path(model).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::shared_ptr<const phasor::Model> load_second(const std::string& name) {
  try {
    phasor::find_model(name);
  } catch (const phasor::ModelError& error) {
    throw phasor::ModelError(
        fmt::format("{}; two models come before the texts of compare", error.what()));
  }
  return phasor::Model::load(name);
}

/// Whether the sides differ in precision alone.
bool asks_about_precision(const CompareArguments& arguments) {
  return arguments.precisions.size() == 2 && arguments.positions.empty();
}

/// "learned", or what the sides differ in: "own", "int8", "own int8".
std::string side_label(const CompareArguments& arguments, const std::string& model, size_t i) {
  std::string label = arguments.positions.empty() ? "" : arguments.positions[i];
  if (arguments.precisions.size() == 2) {
    label += (label.empty() ? "" : " ") + std::string(to_string(arguments.precisions[i]));
  }
  return label.empty() ? label_of(model) : label;
}

std::array<Side, 2> make_sides(const CompareArguments& arguments,
                               const std::array<std::string, 2>& names) {
  const auto make = [&](size_t i, std::shared_ptr<const phasor::Model> model) {
    phasor::EncoderOptions encoder_options{.threads = arguments.common.threads};
    if (!arguments.precisions.empty()) {
      encoder_options.precision = arguments.precisions[i % arguments.precisions.size()];
    }
    phasor::RunOptions options;
    if (!arguments.positions.empty()) {
      options.positions = parse_positions(arguments.positions[i], model->config().position);
    }
    Side side{.label = side_label(arguments, names[i], i),
              .model_name = names[i],
              .encoder = phasor::Encoder(std::move(model), encoder_options),
              .options = options};
    side.trained_length();  // throws where the model has no such positions
    return side;
  };
  const auto first = phasor::Model::load(names[0]);
  const auto second = names[1] == names[0] ? first : load_second(names[1]);
  return {make(0, first), make(1, second)};
}

std::vector<Section> parse_sections(const CompareArguments& arguments) {
  const auto why_not = [&](size_t i) -> std::string {
    const bool possible = static_cast<Section>(i) != Section::kPrecision;
    if (possible || asks_about_precision(arguments)) return "";
    return "give one model and two precisions, like --precision f32,int8, and no --positions";
  };
  std::vector<Section> sections;
  for (const size_t i : picked(arguments.only, kSectionNames, why_not)) {
    sections.push_back(static_cast<Section>(i));
  }
  return sections;
}

Question make_question(const CompareArguments& arguments, const std::array<Side, 2>& sides) {
  Question question{.sections = parse_sections(arguments), .seed = arguments.seed};
  for (const Side& side : sides) {
    const int64_t trained = side.trained_length().value_or(0);
    if (trained == 0) continue;
    question.max_tokens =
        question.max_tokens == 0 ? trained : std::min(question.max_tokens, trained);
  }
  if (!arguments.file.empty()) question.corpus = read_lines(arguments.file);
  if (!arguments.ids.empty() && !arguments.words.empty()) {
    throw UsageError("--ids and texts exclude each other; give one of them");
  }
  for (const std::string& list : arguments.ids) question.ids.push_back(parse_ids(list));
  if (!arguments.ids.empty()) return question;
  question.texts = read_texts(arguments.words);
  if (!question.texts.empty()) return question;
  if (!arguments.words.empty()) {
    throw phasor::InvalidArgument("standard input holds no text; write one text a line");
  }
  question.texts = question.corpus.value_or(std::vector<std::string>{kDefaultText});
  return question;
}

void print_notes(const Comparison& comparison, bool own_text) {
  if (own_text && comparison.reports[0].tokens > 0) {
    report_note(fmt::format("no text was given; this is about \"{}\"", kDefaultText));
  }
  for (size_t i = 0; i < 2; ++i) {
    int64_t texts = 0, tokens = 0, invalid_bytes = 0;
    for (const Input& input : comparison.reports[i].inputs) {
      texts += input.dropped > 0 ? 1 : 0;
      tokens += input.dropped;
      invalid_bytes += input.invalid_bytes;
    }
    const std::string& label = comparison.sides[i]->label;
    if (texts > 0) {
      report_note(fmt::format("{}: {} texts were cut to {} tokens, without their last {} in all",
                              label, texts, comparison.question.max_tokens, tokens));
    }
    if (invalid_bytes > 0) report_note(label + ": " + invalid_bytes_note(invalid_bytes));
  }
  if (!same_tokens(comparison.reports[0], comparison.reports[1])) {
    report_note("the two tokenizers make different tokens of the same texts: compare with care");
  }
}

}  // namespace

int compare(int argc, char** argv) {
  CompareArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const std::array<std::string, 2> names = take_models(arguments);
  parse_sections(arguments);
  std::array<Side, 2> sides = make_sides(arguments, names);
  Question question = make_question(arguments, sides);
  std::optional<HtmlReport> page;
  if (!arguments.html.empty()) question.page = &page.emplace(arguments.html);
  Comparison comparison{question, {&sides[0], &sides[1]}, {}};
  {
    Progress progress(arguments.common.quiet);
    for (size_t i = 0; i < 2; ++i) {
      comparison.reports[i] = measure(sides[i], question, progress);
    }
    if (question.asks(Section::kPrecision)) {
      comparison.moved =
          deviations(sides[1].subject(), sides[0].subject(), comparison.reports[0].inputs,
                     sides[1].label + ": texts", progress);
      for (SideReport& report : comparison.reports) report.tokens = comparison.moved[0].tokens();
    }
  }
  if (!arguments.common.quiet) {
    for (const phasor::Precision precision : arguments.precisions) note_slow(precision);
  }
  const bool own_text = arguments.words.empty() && arguments.ids.empty() && arguments.file.empty();
  if (!arguments.common.quiet) print_notes(comparison, own_text);
  if (page) page->write(arguments.common.quiet);
  Output output;
  output.write(arguments.common.json ? to_json(comparison) + "\n" : to_text(comparison, output));
  return 0;
}

}  // namespace infer
