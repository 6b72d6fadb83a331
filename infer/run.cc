// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <span>

#include "infer/activations.h"
#include "infer/commands.h"
#include "infer/observation.h"
#include "infer/options.h"
#include "infer/report.h"
#include "infer/save.h"
#include "infer/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/version.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Runs a Transformer encoder on each TEXT and shows what every layer does with its positions.";

constexpr const char* kFooter =
    R"(Subcommands (the first word only; infer COMMAND --help says more):
  embed [TEXT...]             one vector for each text or line of a file
  tokenize TEXT...            text to pieces and ids
  info                        what a model is
  compare A B [TEXT...]       two models, or two kinds of positions, side by side
  verify DIR...               compare with reference activations
  bench                       latency and tokens a second for shapes, threads and precisions

Examples:
  infer "Tom bit a dog." "A dog bit Tom."
  infer "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer compare sinusoidal learned "Tom bit a dog."
  infer -m learned --save states.safetensors "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- -a text that begins with a dash-

Exit codes: 0 good, 1 a check failed, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

constexpr const char* kShortHelp = R"(usage: infer [OPTIONS] TEXT...
       infer embed|tokenize|info|compare|verify|bench ...
try:   infer "Tom bit a dog."       or "infer -" for texts from standard input
       infer --help
)";

struct RunArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::vector<std::string> ids;
  std::string positions;
  std::string overflow = "error";
  std::string save;
};

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, RunArguments& arguments) {
  CLI::App app(kDescription, "infer");
  app.footer(kFooter);
  const CLI::Option* texts =
      add_words(app, "TEXT", "texts; - stands for the lines of standard input");
  add_model(app, arguments.common);
  add_language(app, arguments.common);
  add_prefix(app, arguments.common);
  app.add_option("--positions", arguments.positions,
                 "none, sinusoidal[:LAYOUT] or learned instead of the model's own; LAYOUT is "
                 "paper, marian, t2t, fairseq or opennmt")
      ->type_name("KIND");
  app.add_option("--ids", arguments.ids, "token ids like \"5 17 9\" instead of texts; repeatable")
      ->type_name("IDS")
      ->allow_extra_args(false);
  app.add_option("--overflow", arguments.overflow,
                 "a text longer than the table of positions: error (default), truncate, clamp, "
                 "interpolate or window")
      ->type_name("POLICY");
  app.add_option("--save", arguments.save, "write all activations to .safetensors or .npz")
      ->type_name("FILE");
  add_threads(app, arguments.common);
  add_precision(app, arguments.common);
  add_json_and_quiet(app, arguments.common);
  if (const auto done = parse(app, argc, argv)) return done;

  arguments.words = words(*texts);
  if (arguments.words.empty() && arguments.ids.empty()) {
    fmt::print(stderr, "{}", kShortHelp);
    return kUsage;
  }
  if (!arguments.words.empty() && !arguments.ids.empty()) {
    throw UsageError("--ids and texts exclude each other; give one of them");
  }
  const bool for_texts = !arguments.common.language.empty() || !arguments.common.prefix.empty();
  if (for_texts && !arguments.ids.empty()) {
    throw UsageError("--lang and --prefix are for texts, not for --ids; leave them out");
  }
  if (!arguments.save.empty()) check_save_path(arguments.save);
  return std::nullopt;
}

phasor::Overflow parse_overflow_option(const std::string& name) {
  try {
    return phasor::parse_overflow(name);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("--overflow: {}", error.what()));
  }
}

std::vector<Input> read_inputs(const phasor::Encoder& encoder, const RunArguments& arguments,
                               const phasor::RunOptions& options) {
  const phasor::Model& model = encoder.model();
  std::vector<Input> inputs;
  for (const std::string& list : arguments.ids) {
    inputs.push_back(input_from_ids(model, parse_ids(list)));
  }
  int64_t max_tokens = 0;
  if (options.overflow == phasor::Overflow::kTruncate) {
    max_tokens = encoder.max_tokens(options).value_or(0);
  }
  for (const std::string& text : read_texts(arguments.words, arguments.common.prefix)) {
    inputs.push_back(input_from_text(model, text, max_tokens));
  }
  return inputs;
}

/// The row of the first token, which --positions may have changed.
int64_t first_position(const phasor::PositionConfig& own, const phasor::Positions& positions,
                       const std::vector<Batch>& batches) {
  const bool replaced = layout_name(own, positions) != layout_name(own, {});
  if (!replaced || batches.empty()) return own.first_position;
  return std::lround(batches.front().encoding.positions(0).front());
}

std::map<std::string, std::string> metadata(const RunArguments& arguments,
                                            const phasor::PositionConfig& own,
                                            const phasor::Positions& positions,
                                            phasor::Precision precision,
                                            const std::vector<Batch>& batches) {
  return {{"model", arguments.common.model},
          {"layout", layout_name(own, positions)},
          {"first_position", fmt::format("{}", first_position(own, positions, batches))},
          {"precision", std::string(phasor::precision_name(precision))},
          {"version", PHASOR_VERSION}};
}

/// Prints batches one after the other.
class Printer {
 public:
  Printer(phasor::Encoder& encoder, const CommonOptions& common, const phasor::RunOptions& options,
          size_t num_inputs)
      : encoder_(encoder), common_(common), options_(options), num_inputs_(num_inputs) {}

  void print(std::span<const Input> inputs, const Batch& batch) {
    const phasor::Model& model = encoder_.model();
    for (const SequenceReport& sequence : report(encoder_, inputs, batch)) {
      if (!common_.quiet) print_notes(sequence);
      if (common_.json) {
        output_.write(to_json(sequence, model, common_.model) + "\n");
      } else {
        output_.write((number_ == 0 ? "" : "\n") + to_text(sequence, model, output_));
      }
      ++number_;
    }
  }
  bool closed() const { return output_.closed(); }

 private:
  void print_notes(const SequenceReport& sequence) const {
    const phasor::Model& model = encoder_.model();
    if (number_ == 0) {
      report_note(
          describe_model(common_.model, model.config(), options_.positions, encoder_.precision()));
      note_slow(common_.precision);
      for (const std::string& note : model.notes()) report_note(note);
    }
    for (const std::string& note : notes(sequence, model, options_)) {
      report_note(num_inputs_ > 1 ? fmt::format("text {}: {}", number_ + 1, note) : note);
    }
  }

  phasor::Encoder& encoder_;
  const CommonOptions& common_;
  const phasor::RunOptions& options_;
  size_t num_inputs_;
  size_t number_ = 0;
  Output output_;
};

}  // namespace

int run(int argc, char** argv) {
  RunArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  phasor::RunOptions options;
  options.overflow = parse_overflow_option(arguments.overflow);

  const auto model =
      phasor::Model::load(arguments.common.model, {.language = arguments.common.language});
  const phasor::PositionConfig& own = model->config().position;
  options.positions = parse_positions(arguments.positions, own);
  phasor::Encoder encoder(
      model, {.threads = arguments.common.threads, .precision = arguments.common.precision});
  const std::vector<Input> inputs = read_inputs(encoder, arguments, options);
  const std::vector<std::span<const Input>> parts = batches_of(inputs);
  Printer printer(encoder, arguments.common, options, inputs.size());
  if (arguments.save.empty()) {
    for (size_t i = 0; i < parts.size() && !printer.closed(); ++i) {
      printer.print(parts[i], observe(encoder, parts[i], options));
    }
    return 0;
  }

  // First the file: where it cannot be written, the error stands alone.
  std::vector<Batch> batches;
  for (const auto& part : parts) {
    batches.push_back(
        observe(encoder, part, options, phasor::Trace::hidden_states_and_attentions()));
  }
  save_activations(arguments.save, batches,
                   metadata(arguments, own, options.positions, encoder.precision(), batches));
  for (size_t i = 0; i < parts.size() && !printer.closed(); ++i) {
    printer.print(parts[i], batches[i]);
  }
  return 0;
}

}  // namespace infer
