#include "infer/commands/classify/classifier.h"

#include <fmt/format.h>

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
const phasor::ClassifierHead& head_of(const phasor::Encoder& encoder, bool of_tokens) {
  const phasor::Weights& weights = encoder.model().weights();
  if (of_tokens && weights.classifier && !weights.token_classifier) {
    throw phasor::ModelError(
        "this model labels whole texts; infer classify is for it, and infer label for one that "
        "labels tokens (…ForTokenClassification)",
        phasor::ErrorCode::kUnsupported);
  }
  try {
    const std::vector<std::string> none;
    of_tokens ? void(encoder.label(none)) : void(encoder.classify(none));
    encoder.classifier_logits({});
  } catch (const phasor::ModelError& error) {
    if (error.code() != phasor::ErrorCode::kUnsupported) throw;
    throw phasor::ModelError(
        fmt::format("{}; for this one use {}", error.what(), command_for(encoder.model())),
        error.code());
  }
  return of_tokens ? *weights.token_classifier : *weights.classifier;
}

}  // namespace

void add_options(CommandLine& line, TextArguments& arguments, const char* model, phasor::Use use) {
  arguments.common.model.clear();  // no bundled model has a head
  line.option("-m,--model", "DIR", model, arguments.common.model);
  line.option("-i,--input", "FILE", "the lines of a file instead (- is standard input)",
              arguments.input);
  add_fields(line, use, arguments.how);
  add_common(line, kLinks | kLanguage | kRun, arguments.common);
}

LineReader lines_of(const char* command, const char* kind, phasor::Use use,
                    const TextArguments& given) {
  check_options(given.how, use, fmt::format("infer {}", command));
  if (given.input && !given.words.empty())
    throw UsageError(fmt::format("{}: texts and -i exclude each other; give one of them", command));
  if (given.common.model.empty())
    throw UsageError(fmt::format("{}: which model? -m DIR names the folder of {}", command, kind));
  note_file_as_text(given.words, "-i", given.common);
  return lines_of(given);
}

Classifier::Classifier(const TextArguments& given, bool of_tokens)
    : model(phasor::Model::load(given.common.model, load_options(given.common))),
      encoder(model, encoder_options(given.common)),
      head(head_of(encoder, of_tokens)) {
  model->tokenizer();  // or the sentence why there is none
  tell(given, *model, !of_tokens);
}

std::string Classifier::summary() const {
  return fmt::format("{} label{}", head.labels.size(), head.labels.size() == 1 ? "" : "s");
}

}  // namespace infer
