// infer TEXT…: what each layer of an encoder does with the positions of a text's tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

constexpr const char* kFooter = R"(
Subcommands (the first word only; infer COMMAND --help says more):
  tokenize TEXT...            text to pieces and ids
  info                        what a model is
  verify DIR...               compare with reference activations

Examples:
  infer "Tom bit a dog." "A dog bit Tom."
  infer "Tom [MASK] a dog."
  infer --positions none "Tom bit a dog."
  infer -m learned --save states.safetensors "Tom bit a dog."
  cat sentences.txt | infer --json -
  infer -- -a text that begins with a dash-

Exit codes: 0 good, 1 a check failed, 2 usage, 3 bad input, 4 bad model, 5 backend.)";

constexpr const char* kShortHelp = R"(usage: infer [OPTIONS] TEXT...
       infer tokenize|info|verify ...
try:   infer "Tom bit a dog."       or "infer -" for texts from standard input
       infer --help
)";

constexpr size_t kBatchSize = 32;  // texts that are run at once

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
  app.add_option("--positions", arguments.positions,
                 "none, sinusoidal[:LAYOUT] or learned instead of the model's own; LAYOUT is "
                 "paper, marian, t2t, fairseq or opennmt")
      ->type_name("KIND");
  app.add_option("--ids", arguments.ids, "token ids like \"5 17 9\" instead of texts; repeatable")
      ->type_name("IDS")
      ->allow_extra_args(false);
  app.add_option("--overflow", arguments.overflow,
                 "a text longer than the table of positions: error, truncate, clamp, interpolate "
                 "or window")
      ->type_name("POLICY");
  app.add_option("--save", arguments.save, "write all activations to .safetensors or .npz")
      ->type_name("FILE");
  add_threads(app, arguments.common);
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

std::vector<Input> read_inputs(const phasor::Encoder& encoder,
                               const std::vector<std::string>& texts,
                               const std::vector<std::vector<int32_t>>& ids,
                               const phasor::RunOptions& options) {
  const phasor::Model& model = encoder.model();
  std::vector<Input> inputs;
  for (const std::vector<int32_t>& list : ids) inputs.push_back(input_from_ids(model, list));
  int64_t max_tokens = 0;
  if (options.overflow == phasor::Overflow::kTruncate) {
    max_tokens = encoder.max_tokens(options).value_or(0);
  }
  for (const std::string& text : texts) {
    inputs.push_back(input_from_text(model, text, max_tokens));
  }
  return inputs;
}

/// As many as one run can have: a token has a byte or more.
int64_t tokens_at_most(const std::vector<std::string>& texts,
                       const std::vector<std::vector<int32_t>>& ids) {
  int64_t tokens = 0;
  for (const std::string& text : texts) tokens += std::ssize(text);
  for (const std::vector<int32_t>& list : ids) tokens += std::ssize(list);
  return tokens;
}

/// The row of the first token, which --positions may have changed.
int64_t first_position(const phasor::PositionConfig& own, const phasor::Positions& positions,
                       const std::vector<Batch>& batches) {
  const bool replaced = layout_name(own, positions) != layout_name(own, {});
  if (!replaced || batches.empty()) return own.first_position;
  return std::lround(batches.front().encoding.positions(0).front());
}

/// Prints batches one after the other.
class Printer {
 public:
  Printer(phasor::Encoder& encoder, const CommonOptions& common, const phasor::RunOptions& options,
          int64_t num_inputs)
      : encoder_(encoder), common_(common), options_(options), num_inputs_(num_inputs) {}

  void print(std::span<const Input> inputs, const Batch& batch) {
    for (const SequenceReport& sequence : report(encoder_, inputs, batch)) {
      if (!common_.quiet) print_notes(sequence);
      const phasor::Model& model = encoder_.model();
      const bool first = number_++ == 0;
      output_.write(common_.json ? to_json(sequence, model, common_.model) + "\n"
                                 : (first ? "" : "\n") + to_text(sequence, model, output_));
    }
  }
  bool closed() const { return output_.closed(); }

 private:
  void print_notes(const SequenceReport& sequence) const {
    if (number_ == 0) {
      report_note(describe_model(common_.model, encoder_.model().config(), options_.positions));
    }
    for (const std::string& note : notes(sequence, encoder_.model(), options_)) {
      report_note(num_inputs_ > 1 ? fmt::format("text {}: {}", number_ + 1, note) : note);
    }
  }

  phasor::Encoder& encoder_;
  const CommonOptions& common_;
  const phasor::RunOptions& options_;
  int64_t num_inputs_;
  int64_t number_ = 0;
  Output output_;
};

}  // namespace

int run(int argc, char** argv) {
  RunArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const CommonOptions& common = arguments.common;
  phasor::RunOptions options;
  options.overflow = parse_overflow_option(arguments.overflow);

  const auto model = phasor::Model::load(common.model);
  const phasor::PositionConfig& own = model->config().position;
  options.positions = parse_positions(arguments.positions, own);
  std::vector<std::vector<int32_t>> ids;
  for (const std::string& list : arguments.ids) ids.push_back(parse_ids(list));
  const std::vector<std::string> texts = read_texts(arguments.words);
  phasor::Encoder encoder(
      model, {.threads = threads_for(common, model->config(), tokens_at_most(texts, ids))});
  const std::vector<Input> inputs = read_inputs(encoder, texts, ids, options);
  const auto inputs_of_batch = [&](size_t b) {
    const size_t begin = b * kBatchSize;
    return std::span(inputs).subspan(begin, std::min(kBatchSize, inputs.size() - begin));
  };

  const bool saves = !arguments.save.empty();
  const size_t num_batches = (inputs.size() + kBatchSize - 1) / kBatchSize;
  Printer printer(encoder, common, options, std::ssize(inputs));
  std::vector<Batch> kept;
  for (size_t b = 0; b < num_batches && !printer.closed(); ++b) {
    Batch batch = observe(encoder, inputs_of_batch(b), options, saves);
    if (saves) {
      kept.push_back(std::move(batch));
    } else {
      printer.print(inputs_of_batch(b), batch);
    }
  }
  if (!saves) return 0;
  // First the file: where it cannot be written, the error stands alone.
  save_activations(
      arguments.save, kept,
      {{"model", common.model},
       {"layout", layout_name(own, options.positions)},
       {"first_position", fmt::format("{}", first_position(own, options.positions, kept))},
       {"precision", "float32"},
       {"version", PHASOR_VERSION}});
  for (size_t b = 0; b < num_batches && !printer.closed(); ++b) {
    printer.print(inputs_of_batch(b), kept[b]);
  }
  return 0;
}

}  // namespace infer
