// What runs without word positions lose, and which share of it other runs do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lens/study/masked_run.h"

namespace phasor::internal {

/// The texts of a file, run with positions and without word positions: positions do nothing within
/// attention, and every word gets the mean of the vectors of the text's words, or zeros where
/// Request::without says so. Special tokens keep theirs. What a run loses is the loss on masked
/// tokens; by states, and where there is no masked-language-model head, how far the words' last
/// states are from those of the run with positions, both less the mean of these: 1 − cosine, or
/// the angle in degrees.
class Rise {
 public:
  enum class By { kLossOrStates, kStates };

  /// Borrows `many`. Why nothing can be run is noted under `view`. Of each text so many draws of
  /// masks are run, where there are masks.
  Rise(Many& many, const char* view, By by = By::kLossOrStates, int64_t draws = 1);

  const RunOptions& with() const { return many_.subject.options; }
  const RunOptions& without() const { return without_.options; }

  std::span<const MaskedText> texts() const { return texts_; }
  bool by_loss() const { return by_loss_; }
  /// What follows is measured by angles in place of 1 − cosine.
  void use_angles(const char* view);

  /// Runs all texts in both ways, a batch at a time, and shows how many are done. `vectors` are
  /// what one run adds to its texts' tokens and the other does not, [T, E] each; empty: none are.
  using Visit = std::function<void(MaskedRun& with, MaskedRun& without, const TextRows& vectors)>;
  void run(const Visit& visit);
  /// Whether a run without word positions loses anything; where not, that is noted.
  bool is_there() const;

  /// Of each block of texts: a part of what a run without word positions loses, and all
  /// of it.
  struct Share {
    std::vector<double> part, whole;
  };
  Share all() const { return left(without_score_); }
  Share left(const MaskedScore& run) const;    // what it loses, too
  Share undone(const MaskedScore& run) const;  // what it does not lose
  /// Adds a cell with an interval over texts.
  void add(const Share& share, Row& row);
  Interval interval(const Share& share) { return intervals_.of(share.part, share.whole); }
  /// "3.488 nats on masked tokens" and the like.
  std::string lost() const;

 private:
  std::vector<MaskedText> texts_without_masks() const;
  void measure_mean();
  void add_distances(const Encoding& encoding, std::span<const MaskedText> texts,
                     MaskedScore& score);

  Many& many_;
  const char* view_;
  lens::Run without_;
  bool by_loss_;
  std::vector<MaskedText> texts_;
  MaskedScore with_score_, without_score_;
  Intervals intervals_;
  std::vector<double> MaskedScore::*values_ = &MaskedScore::losses;
  std::vector<double> mean_;           // of the words' last states, [C]
  const MaskedText* batch_ = nullptr;  // whose words' last states are kept:
  std::vector<float> clean_ = {};
};

/// "3.355 [3.014, 3.670]"; without an interval the number alone.
std::string with_bounds(double value, Interval interval, int decimals);

}  // namespace phasor::internal
