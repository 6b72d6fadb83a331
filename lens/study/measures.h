// How the views come about: each function measures every text of a batch, or many texts as one, and
// adds the tables that it names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lens/study/batch.h"
#include "lens/study/masked.h"

namespace phasor::internal {

/// Means, and what was made of each masked token.
struct Measured : Observed {
  MaskedScore masked = {};
};

/// What Measure::of_many reads, and the means that it adds to.
struct Many {
  const lens::Run& subject;
  std::span<const std::vector<int32_t>> sequences;  // the texts' tokens
  const Request& request;
  const Stages& stages;
  Measured& means;
};

/// The means of texts in each run, and what only many texts tell. `take` as observe_means() has it.
std::vector<Measured> means_of(std::span<const lens::Run> runs, std::span<const lens::Text> texts,
                               const lens::ObserveOptions& options, const Stages& stages = {},
                               const lens::TakeText& take = {});

/// Whether masked tokens can be scored; where not, why is noted under the views.
bool can_mask(Many& many, std::initializer_list<const char*> views);

/// The most tokens of a masked text: those of Request::max_tokens and, where a run cuts texts, of
/// the table of positions; 0: any number.
int64_t most_tokens(const lens::Run& subject, const Request& request);

/// Why a text has no views of its orders.
constexpr const char* kOneToken = "the text has no two tokens that could change places";

/// What measures a view and adds its table to each text of a batch, or to the means over many
/// texts. Views that are measured together have the same function, which runs once; "moved",
/// "patched" and "norm" have none.
using Measure = std::variant<std::monostate, void (*)(Batch&), void (*)(Many&)>;
/// Of one of views(): lens/views/views.cc, which declares the functions that it names.
Measure measure_of(const View& view);

/// Those that need more of a batch's run.
void measure_direct(Batch& batch);
void measure_attention(Batch& batch);

/// How far a hidden state is from that of a reference, over all tokens of all texts.
class Deviation {
 public:
  /// got and want [T, C]: the same tokens' states, and those of the reference.
  void add(std::span<const float> got, std::span<const float> want, int64_t d_model);

  /// The largest |got − want|; NaN where one was met.
  double max_diff() const { return max_diff_; }
  /// ‖got − want‖ / ‖want‖, all values as one vector.
  double relative_error() const;
  /// Of a token's state with its reference: the mean, and the least of all tokens; 1 where there
  /// are none.
  double mean_cosine() const;
  /// Of the same, in degrees; 0 where there are none.
  double mean_angle() const { return tokens_ == 0 ? 0 : angles_ / static_cast<double>(tokens_); }
  double least_cosine() const { return least_cosine_; }

 private:
  int64_t tokens_ = 0;
  double max_diff_ = 0;
  double diff_squares_ = 0, want_squares_ = 0;
  double cosines_ = 0, angles_ = 0;
  double least_cosine_ = 1;
};

/// "moved": how far the states of a second run are from those of the first, over all texts that are
/// added. Models of different shapes have none, nor do runs of different tokens.
class Moved {
 public:
  /// Text i of two batches of the same texts.
  void add(const Batch& before, const Batch& after, int64_t i);
  /// There is no table.
  void miss(const std::string& why) { missing_ = why; }
  /// The table of the second run, or why there is none.
  void write(Observed& after) const;

 private:
  std::vector<Deviation> deviations_;  // [L + 1]
  std::string missing_;
};

/// "patched" of the second run, of texts with masks.
void score_patched(const lens::Run& first, Many& second);
/// Adds to the table "masked" of b how much its losses differ from those of a, mask by mask.
void compare_losses(const Measured& a, Measured& b);

}  // namespace phasor::internal
