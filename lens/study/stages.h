// What long measurements ask and tell between two runs.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string_view>

#include "phasor/errors.h"
#include "phasor/progress.h"

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

}  // namespace phasor::internal
