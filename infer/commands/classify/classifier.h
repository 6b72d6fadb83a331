// What infer classify and infer rank share: their options, their input, and a model with a head.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "phasor/encoder.h"
#include "phasor/fields.h"

namespace infer {

inline constexpr int64_t kMostShown = 10'000'000;

struct ClassifyArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::optional<std::string> input;
  std::optional<int64_t> top;
  phasor::TextOptions how;
};

/// `model` says which models -m takes; with those of TextOptions that have the use.
void add_options(CommandLine& line, ClassifyArguments& arguments, const char* model,
                 phasor::Use use);

/// The texts or the lines. Throws UsageError where there are both or neither, or no model is named:
/// `kind` says of what kind it must be.
LineReader lines_of(const char* command, const char* kind, const ClassifyArguments& arguments);

/// A model with a classification head.
struct Classifier {
  /// Throws ModelError where the model has no head for texts, or `of_tokens`.
  explicit Classifier(const ClassifyArguments& arguments, bool of_tokens = false);

  /// "2 labels".
  std::string labels() const;

  std::shared_ptr<const phasor::Model> model;
  phasor::Encoder encoder;
  const phasor::ClassifierHead& head;
};

/// How a window's texts are run.
phasor::TextOptions window_options(const ClassifyArguments& arguments,
                                   const phasor::Progress& progress, const std::stop_token& stop);
/// How lines are.
StreamOptions stream_options(const ClassifyArguments& arguments);
/// After a run over lines, `complete` or not; `each` is for LineStream::summary(). Returns the exit
/// code.
int end(const LineStream& stream, bool complete, const std::string& each, bool quiet);

}  // namespace infer
