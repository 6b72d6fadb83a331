// What infer classify, label and rank share: their options, and a model with a head.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "infer/cli/line_stream.h"
#include "phasor/encoder.h"
#include "phasor/fields.h"

namespace infer {

inline constexpr int64_t kMostShown = 10'000'000;

/// `model` says which models -m takes; with those of TextOptions that have the use.
void add_options(CommandLine& line, TextArguments& arguments, const char* model, phasor::Use use);

/// After parse(): the texts or the lines. Throws UsageError where there are both, no model is named
/// (`kind` says of what kind it must be), or an option is wrong.
LineReader lines_of(const char* command, const char* kind, phasor::Use use,
                    const TextArguments& given);

/// A model with a classification head.
struct Classifier {
  /// Throws ModelError where the model has no head for texts, or `of_tokens`.
  explicit Classifier(const TextArguments& given, bool of_tokens = false);

  /// "2 labels".
  std::string summary() const;

  std::shared_ptr<const phasor::Model> model;
  phasor::Encoder encoder;
  const phasor::ClassifierHead& head;
};

}  // namespace infer
