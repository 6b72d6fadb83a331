#include "infer/commands/classify/classifier.h"

#include <fmt/format.h>
#include <unistd.h>

#include "infer/cli/field_options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// The command for what the model has instead of a head.
const char* command_for(const phasor::Model& model) {
  if (model.weights().token_classifier) return "infer label";
  if (model.has_sparse()) return "infer embed --sparse";
  return model.has_token_vectors() ? "infer embed --tokens" : "infer embed";
}

/// Packs the head, or says why there is none and what to do then.
const phasor::ClassifierHead& head_of(phasor::Encoder& encoder, bool of_tokens) {
  if (of_tokens && encoder.model().weights().classifier) {
    throw phasor::ModelError(
        "this model labels whole texts: use infer classify, or choose a model that labels tokens "
        "(…ForTokenClassification)",
        phasor::ErrorCode::kUnsupported);
  }
  try {
    const std::vector<std::string> none;
    if (of_tokens)
      encoder.label(none);  // refuses a model without such a head
    else
      encoder.classify(none);
    encoder.classifier_logits({});
  } catch (const phasor::ModelError& error) {
    if (error.code() != phasor::ErrorCode::kUnsupported) throw;
    throw phasor::ModelError(
        fmt::format("{}; for this one use {}", error.what(), command_for(encoder.model())),
        error.code());
  }
  const phasor::Weights& weights = encoder.model().weights();
  return of_tokens ? *weights.token_classifier : *weights.classifier;
}

}  // namespace

void add_options(CommandLine& line, ClassifyArguments& arguments, const char* model,
                 phasor::Use use) {
  arguments.common.model.clear();  // no bundled model has a head
  line.option("-m,--model", "DIR", model, arguments.common.model);
  line.option("-i,--input", "FILE", "the lines of a file instead (- is standard input)",
              arguments.input);
  add_fields(line, use, arguments.how);
  add_common(line, kLinks | kLanguage | kRun, arguments.common);
}

LineReader lines_of(const char* command, const char* kind, const ClassifyArguments& arguments) {
  if (arguments.input && !arguments.words.empty()) {
    throw UsageError(fmt::format("{}: texts and -i exclude each other; give one of them", command));
  }
  const bool no_input = !arguments.input && arguments.words.empty();
  if (no_input && isatty(STDIN_FILENO) != 0) {
    throw UsageError(fmt::format("{}: no text was given; -i FILE reads lines", command));
  }
  if (arguments.common.model.empty())
    throw UsageError(fmt::format("{}: which model? -m DIR names the folder of {}", command, kind));
  note_file_as_text(arguments.words, "-i", arguments.common);
  const bool reads =
      no_input || arguments.input || arguments.words == std::vector<std::string>{"-"};
  if (!reads) return LineReader(read_texts(arguments.words));
  return LineReader(arguments.input.value_or("-"), arguments.common.quiet);
}

Classifier::Classifier(const ClassifyArguments& arguments, bool of_tokens)
    : model(phasor::Model::load(arguments.common.model, load_options(arguments.common))),
      encoder(model, encoder_options(arguments.common)),
      head(head_of(encoder, of_tokens)) {
  model->tokenizer();  // or the sentence why there is none
  if (arguments.common.quiet) return;
  note_slow(precision_of(arguments.common));
  const bool own_prompt = !of_tokens && !arguments.how.prompt && arguments.how.prompt_name.empty();
  if (own_prompt && !model->text().prompt.empty())
    report_note(fmt::format("before every text: \"{}\"", model->text().prompt));
  for (const std::string& note : model->notes()) report_note(note);
}

std::string Classifier::labels() const {
  return fmt::format("{} label{}", head.labels.size(), head.labels.size() == 1 ? "" : "s");
}

phasor::TextOptions window_options(const ClassifyArguments& arguments,
                                   const phasor::Progress& progress, const std::stop_token& stop) {
  phasor::TextOptions how = arguments.how;
  // The library does not know the line's number: the text is cut, and the stream refuses it.
  if (how.overflow == phasor::Overflow::kError) how.overflow = phasor::Overflow::kTruncate;
  how.progress = progress;
  how.stop = stop;
  return how;
}

StreamOptions stream_options(const ClassifyArguments& arguments) {
  return {.quiet = arguments.common.quiet,
          .waits = false,
          .refuses_long = arguments.how.overflow == phasor::Overflow::kError};
}

int end(const LineStream& stream, bool complete, const std::string& each, bool quiet) {
  if (!complete) return report_error("interrupted", kBadInput);  // the signal ends the program
  if (!quiet) report_note(stream.summary(each));
  return 0;
}

}  // namespace infer
