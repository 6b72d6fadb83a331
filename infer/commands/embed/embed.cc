// infer embed: one line in, one vector out, in order, for as many lines as there are.
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>

#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embed_format.h"
#include "infer/commands/embed/embed_lines.h"
#include "infer/commands/embed/embed_similarity.h"
#include "infer/commands/embed/embed_stream.h"
#include "infer/render/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kDescription =
    "Makes one vector of each TEXT, or of each line of a file, in order.";

constexpr const char* kFooter =
    R"(How vectors are made is read from sentence-transformers' files beside the model; without
them it is the mean over tokens, not normalised. Texts are cut to the length that those
files give, or else to the model's own. Lines that were cut or are not all UTF-8 are
counted, and the first of them reported by number. --prefix "" leaves out a prompt that
the model's files ask for.

OUT has its name only when it is complete. Until then there are OUT.partial and
OUT.partial.json; after an interruption the same command with --resume goes on from
them, and the result has the same bytes as without the interruption.

Examples:
  infer embed "Tom bit a dog."
  infer embed -i sentences.txt -o vectors.npy
  infer embed --similarity "Tom bit a dog." "A dog bit Tom." "It rains.")";

struct EmbedArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::string input;
  std::string output;
  std::string pooling;
  std::string overflow = "truncate";
  std::optional<std::string> prefix;  // in place of the model's prompt
  bool normalize = false;
  bool no_normalize = false;
  bool resume = false;
  bool strict = false;
  bool similarity = false;
};

void check(const EmbedArguments& arguments, bool has_input) {
  if (has_input && !arguments.words.empty()) {
    throw UsageError("embed: texts and -i exclude each other; give one of them");
  }
  if (arguments.normalize && arguments.no_normalize) {
    throw UsageError("--normalize and --no-normalize exclude each other; give one of them");
  }
  if (arguments.resume && arguments.output.empty()) {
    throw UsageError("--resume goes on with a file; name it with -o");
  }
  if (arguments.similarity && (arguments.words.empty() || !arguments.output.empty())) {
    throw UsageError("--similarity prints a table of the given texts: give texts, and no -o");
  }
  if (arguments.resume && !arguments.words.empty()) {
    throw UsageError("--resume is for files; give one with -i");
  }
}

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, EmbedArguments& arguments) {
  CommandLine line("infer embed", kDescription, kFooter);
  std::optional<std::string> input;
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  add_model(line, arguments.common);
  line.option("-i,--input", "FILE",
              "the file whose lines are embedded (default: -, standard input)", input);
  line.option("-o,--output", "OUT",
              "write to .npy, .safetensors or .jsonl (default: JSON lines on standard output)",
              arguments.output);
  line.flag("--resume", "go on from OUT.partial, where it is there", arguments.resume);
  line.option("--pooling", "MODES",
              "cls, max, mean, mean_sqrt_len, weightedmean, lasttoken, or several with commas, "
              "instead of the model's own",
              arguments.pooling);
  line.flag("--normalize", "vectors of length 1, whatever the model's files say",
            arguments.normalize);
  line.flag("--no-normalize", "vectors as they come, whatever the model's files say",
            arguments.no_normalize);
  add_language(line, arguments.common);
  line.option("--prefix", "TEXT",
              "put before every text, like \"query: \", instead of the model's own prompt",
              arguments.prefix);
  line.option("--overflow", "POLICY",
              "a text that is too long: truncate (default), error, clamp, interpolate or window",
              arguments.overflow);
  line.flag("--strict", "stop at a line that is cut or not all UTF-8", arguments.strict);
  line.flag("--similarity", "print the cosines between the texts instead", arguments.similarity);
  add_threads(line, arguments.common);
  add_precision(line, arguments.common);
  add_json_and_quiet(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return done;
  check(arguments, input.has_value());
  arguments.input = input.value_or("-");
  note_file_as_text(arguments.words, "-i", arguments.common);
  return std::nullopt;
}

std::vector<phasor::PoolingMode> parse_pooling(const std::string& modes) {
  try {
    return phasor::parse_pooling_modes(modes);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("--pooling: {}", error.what()));
  }
}

/// What the arguments say, and where they say nothing the model's files. The model is asked only
/// for what it must say.
phasor::EmbedOptions embed_options(const EmbedArguments& arguments, const phasor::Model& model) {
  phasor::EmbedOptions options;
  options.overflow = parse_name<phasor::Overflow>("--overflow", arguments.overflow);
  phasor::Pooling& pooling = options.pooling.emplace();
  if (!arguments.pooling.empty()) {
    pooling.modes = parse_pooling(arguments.pooling);
    if (model.has_sentence()) pooling.normalize = model.sentence().pooling.normalize;
  } else {
    pooling = model.sentence().pooling;
  }
  if (arguments.normalize) pooling.normalize = true;
  if (arguments.no_normalize) pooling.normalize = false;
  options.prompt = arguments.prefix;
  if (!options.prompt) options.prompt = model.has_sentence() ? model.sentence().prompt : "";
  return options;
}

/// "mean, normalised (1_Pooling/config.json)".
std::string describe(const EmbedArguments& arguments, const phasor::EmbedOptions& options,
                     const phasor::Model& model) {
  std::string source = "--pooling";
  if (arguments.pooling.empty()) {
    source = model.sentence().source.empty() ? "the default: no sentence-transformers files"
                                             : model.sentence().source;
  }
  return fmt::format("{} ({})", to_string(*options.pooling), source);
}

/// A model that is ready to run, and how its vectors are made, which it tells the user.
struct Setup {
  explicit Setup(const EmbedArguments& arguments)
      : model(phasor::Model::load(arguments.common.model, {.language = arguments.common.language})),
        options(embed_options(arguments, *model)),
        pooling(describe(arguments, options, *model)),
        language(arguments.common.language),
        encoder(model,
                {.threads = arguments.common.threads, .precision = arguments.common.precision}),
        precision(phasor::to_string(encoder.precision())) {
    model->tokenizer();  // or the sentence why there is none
    if (arguments.common.quiet) return;
    report_note(fmt::format("sentence vectors: {}, {}", pooling, precision));
    note_slow(arguments.common.precision);
    if (!options.prompt->empty() && !arguments.prefix) {
      report_note(fmt::format("before every text: \"{}\" (config_sentence_transformers.json)",
                              *options.prompt));
    }
    for (const std::string& note : model->notes()) report_note(note);
  }

  std::shared_ptr<const phasor::Model> model;
  phasor::EmbedOptions options;
  std::string pooling;  // in words
  std::string language;
  phasor::Encoder encoder;
  std::string precision;  // that "auto" stands for here
};

/// Whatever must be the same for a run to go on with the file of another.
std::map<std::string, std::string> made_with(const Setup& setup) {
  return {{"model", model_fingerprint(setup.model->folder())},
          {"pooling", to_string(*setup.options.pooling)},
          {"prefix", fmt::format("\"{}\"", *setup.options.prompt)},
          {"lang", fmt::format("\"{}\"", setup.language)},
          {"overflow", std::string(to_string(setup.options.overflow))},
          {"precision", setup.precision},
          {"infer", versions()}};
}

std::string resume_note(const PartialFile& file) {
  return file.state().lines == 0 ? "there is nothing to go on from; beginning with line 1"
                                 : fmt::format("going on after line {} with {}", file.state().lines,
                                               file.partial().string());
}

/// Every line of `lines` to a vector in the output.
int stream(const EmbedArguments& arguments, LineReader& lines, const Interrupts& interrupts) {
  const bool quiet = arguments.common.quiet;
  VectorFormat format;
  if (!arguments.output.empty()) format.kind = VectorFormat::kind_of(arguments.output);
  Setup setup(arguments);
  const bool refuses_long = setup.options.overflow == phasor::Overflow::kError;
  phasor::EmbedOptions how = setup.options;
  // The library does not know the line's number: the text is cut, and its report refuses it.
  if (refuses_long) how.overflow = phasor::Overflow::kTruncate;
  format.width = setup.encoder.embedding_width(how);
  format.metadata = {{"model", arguments.common.model},
                     {"pooling", setup.pooling},
                     {"precision", setup.precision},
                     {"infer", versions()}};
  std::optional<PartialFile> file;
  if (!arguments.output.empty()) {
    file.emplace(arguments.output, made_with(setup), arguments.resume);
    if (arguments.resume && !quiet) report_note(resume_note(*file));
  }
  EmbedStream stream(setup.encoder, how, lines, interrupts, std::move(format),
                     file ? &*file : nullptr,
                     {.quiet = quiet, .strict = arguments.strict, .refuses_long = refuses_long});
  if (stream.run()) {
    if (!quiet) report_note(stream.summary());
    return 0;
  }
  report_error(file && stream.lines_done() > 0
                   ? fmt::format("interrupted after line {}; --resume goes on from {}",
                                 stream.lines_done(), file->partial().string())
                   : "interrupted");
  return kBadInput;  // not reached: the signal that came ends the program
}

}  // namespace

int embed(int argc, char** argv) {
  EmbedArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  if (arguments.similarity) {
    Setup setup(arguments);
    return print_similarities(setup.encoder, setup.options, read_texts(arguments.words),
                              arguments.common);
  }
  if (arguments.words == std::vector<std::string>{"-"}) arguments.words.clear();
  if (!arguments.words.empty()) {
    const std::vector<std::string> texts = read_texts(arguments.words);
    const Interrupts interrupts;
    LineReader lines(texts, interrupts);
    return stream(arguments, lines, interrupts);
  }
  if (arguments.input == "-" && isatty(STDIN_FILENO) != 0 && !arguments.common.quiet) {
    report_note("reading lines from the terminal; Ctrl-D ends them");
  }
  const Interrupts interrupts;  // before any thread begins: threads inherit what is held back
  LineReader lines(arguments.input, interrupts);
  return stream(arguments, lines, interrupts);
}

}  // namespace infer
