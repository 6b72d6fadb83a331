// A batch of texts that was run once as asked. Measures read that run, run the texts again in other
// ways, and add a table to each text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lens/study/observed.h"
#include "lens/study/run.h"
#include "lens/study/run_observer.h"
#include "lens/study/stages.h"
#include "lens/study/text.h"
#include "lens/views/view.h"

namespace phasor::internal {

class Batch;

/// What is wanted of a run.
struct Request {
  std::vector<const View*> views = {};
  std::string without = "mean";
  uint64_t seed = 1;                        // of the first text
  int64_t top_k = 5;                        // fillers of each mask
  bool patterns = false;                    // keep these (4·H·T² bytes a layer),
  bool arrays = false;                      // and the split's means by position
  std::span<const std::string> lines = {};  // whose tokens are masked
  int64_t max_tokens = 0;                   // these lines are cut to so many; 0: they are not

  bool asks(std::string_view view) const;
  /// Whether a view asks for what `measure` finds.
  bool measures(void (*measure)(Batch&)) const;
};

/// What observe() or observe_means() want of such runs. Throws InvalidArgument for views that there
/// are not, and for those that lack something.
Request request_of(std::span<const lens::Run> runs, const lens::ObserveOptions& options,
                   bool means);

/// About the bytes that observing a text takes in so many runs: the stream of all its tokens, of
/// one run after the other; tables and their JSON; and patterns of the tokens of a window (of all
/// tokens where there are none), of all layers where the request keeps them, otherwise of one.
int64_t observed_bytes(const ModelConfig& config, const Request& request, int64_t tokens,
                       int64_t window, int64_t runs = 1);

class Batch {
 public:
  /// Runs the inputs and measures all that is asked. Borrows all. Throws what encoding throws, and
  /// InvalidArgument where observing a text would take more than 400 MB and eight bytes for each of
  /// the model's parameters.
  Batch(const lens::Run& subject, std::span<const Input> inputs, const Request& request,
        const Stages& stages);

  const lens::Run& subject() const { return subject_; }
  const Request& request() const { return request_; }
  const Stages& stages() { return stages_; }
  const RunObserver& observer() const { return observer_; }
  const std::vector<std::vector<int32_t>>& sequences() const { return sequences_; }
  std::vector<Observed>& texts() { return texts_; }

  /// hidden_states[l] of text i, [T, C].
  std::span<const float> state(int64_t l, int64_t i) const;
  /// Whether text i was run in overlapping windows; then the view is noted as missing.
  bool missed_by_windows(int64_t i, std::string_view view);
  /// No text has this view.
  void miss(std::string_view view, const std::string& why);

 private:
  bool in_windows(const Observed& text) const;
  void begin_text(const Input& input, int64_t i);

  const lens::Run& subject_;
  const Request& request_;
  const Stages& stages_;
  std::vector<std::vector<int32_t>> sequences_;
  RunObserver observer_;
  Encoding encoding_;
  std::vector<Observed> texts_;
};

}  // namespace phasor::internal
