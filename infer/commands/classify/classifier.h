// What infer classify and infer rank share: their options, their input, and a model with a head.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "phasor/encoder.h"

namespace infer {

inline constexpr int64_t kMostShown = 10'000'000;

struct ClassifyArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::optional<std::string> input;
  std::optional<int64_t> top;
};

/// `model` says which models -m takes.
void add_options(CommandLine& line, ClassifyArguments& arguments, const char* model);

/// The texts or the lines. Throws UsageError where there are both or neither, or no model is named:
/// `kind` says of what kind it must be.
LineReader lines_of(const char* command, const char* kind, const ClassifyArguments& arguments);

/// A model with a classification head.
struct Classifier {
  using Run = std::function<phasor::Classification(std::span<const std::string_view> texts,
                                                   const phasor::ClassifyOptions& options)>;
  using Sink = LineStream::Sink<phasor::Classification>;

  /// Throws ModelError where the model has no head for texts, or `of_tokens`.
  explicit Classifier(const ClassifyArguments& arguments, bool of_tokens = false);

  /// Runs all lines, then `finish`. Returns the exit code.
  int run(LineReader& lines, StreamOptions options, const Run& run_texts, const Sink& sink,
          const std::function<void()>& finish = {});
  /// What there is to say after a run over lines, `complete` or not. Returns the exit code.
  int end(const LineStream& stream, bool complete, bool quiet) const;

  std::shared_ptr<const phasor::Model> model;
  phasor::Encoder encoder;
  const phasor::ClassifierHead& head;
  bool parse_special;  // --special
};

}  // namespace infer
