// Running a lens::Run, describing it, and what long measurements ask and tell between two runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lens/study/observed.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/progress.h"
#include "phasor/trace.h"

namespace phasor::internal {

struct Stages {
  StageProgress progress = {};  // empty: nobody listens
  std::stop_token stop = {};

  /// Throws kCancelled where a stop was requested.
  void check() const {
    if (stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the observation was cancelled");
  }
  /// `stage` has come to `done` of `total`. Throws what check() and the progress function throw.
  void show(std::string_view stage, int64_t done, int64_t total) const {
    check();
    if (progress) progress(stage, done, total);
  }
  /// For what knows no stages. Borrows this.
  Progress of(std::string_view stage) const {
    return [this, stage](int64_t done, int64_t total) { show(stage, done, total); };
  }
};

/// Runs sequences with the run's options and this observer.
Encoding encode(const lens::Run& run, std::span<const std::vector<int32_t>> sequences,
                Observer& observer);

/// What a model's name or folder ends with; of a folder `model`, its parent's name; in a hub's
/// cache the MODEL of models--OWNER--MODEL/snapshots/COMMIT.
std::string short_name(const std::string& model);

/// Which positions a run adds, for people: "sinusoidal (paper)", "learned", "none", "table".
std::string describe_positions(const PositionConfig& own, const Positions& positions);
/// The layout alone: "paper"; "learned", "none" or "table" where nothing is computed.
std::string layout_name(const PositionConfig& own, const Positions& positions);
/// Whether the positions end with a table, after so many tokens.
bool ends_with_table(const PositionConfig& own, const Positions& positions);

/// Whether a run adds position vectors to the embeddings.
bool adds_vectors(const lens::Run& run);

/// Whether positions may do something within attention.
bool acts_in_attention(const lens::Run& run);

/// All that is known of a run before anything is measured.
Observed described(const lens::Run& run);

/// The hooks of all hidden states.
Trace hidden_states();

/// The longest text seen in training that a run's positions reach, in tokens; empty where neither
/// the files nor a table say.
std::optional<int64_t> trained_length(const Encoder& encoder, const RunOptions& run);
/// The shortest of several runs; 0: nothing limits any.
int64_t trained_length(std::span<const lens::Run> runs);

}  // namespace phasor::internal
