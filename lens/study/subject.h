// What is observed: a model and how it is run.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lens/study/deviation.h"
#include "lens/study/observed.h"
#include "lens/study/stages.h"
#include "lens/study/text.h"
#include "phasor/encoder.h"
#include "phasor/trace.h"

namespace phasor::internal {

struct Subject {
  std::string label;  // "before", "learned"; empty: the only one
  std::string name;   // of the model
  Encoder& encoder;   // borrowed
  RunOptions options = {};
  std::vector<std::string> edits = {};  // of options.positions, as the user wrote them

  const Model& model() const { return encoder.model(); }
  /// Runs sequences as `options` say, but with this observer.
  Encoding run(std::span<const std::vector<int32_t>> sequences, Observer& observer) const {
    return run(sequences, observer, options.positions);
  }
  Encoding run(std::span<const std::vector<int32_t>> sequences, Observer& observer,
               const Positions& positions) const;
};

/// Which positions a run adds, for people: "sinusoidal (paper)", "learned", "none", "table".
std::string describe_positions(const PositionConfig& own, const Positions& positions);
/// The layout alone: "paper"; "learned", "none" or "table" where nothing is computed.
std::string layout_name(const PositionConfig& own, const Positions& positions);
/// Whether the positions end with a table, after so many tokens.
bool ends_with_table(const PositionConfig& own, const Positions& positions);

/// Whether a run adds position vectors to the embeddings.
bool adds_vectors(const Subject& subject);

/// All that is known of a run before anything is measured.
Observed described(const Subject& subject);

/// The hooks of all hidden states.
Trace hidden_states();

/// How far each hidden state of `got` is from that of `want`, [L + 1], over all inputs; empty if
/// the two cut an input to different lengths. Both have the same shape. `what` is for the progress.
std::vector<Deviation> deviations(const Subject& got, const Subject& want,
                                  std::span<const Input> inputs, std::string_view what,
                                  const Stages& stages);

/// The longest text seen in training that a run's positions reach, in tokens; empty where neither
/// the files nor a table say.
std::optional<int64_t> trained_length(const Encoder& encoder, const RunOptions& run);

}  // namespace phasor::internal
