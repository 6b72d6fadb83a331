// A batch of texts that was run once as asked. Measures read that run, run the texts again in other
// ways, and add a table to each text.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lens/study/observed.h"
#include "lens/study/run.h"
#include "lens/study/text.h"
#include "phasor/lens.h"
#include "phasor/trace.h"

namespace phasor::internal {

/// Where a block's attention goes, over all heads and rows; a row of several windows counts once
/// for each.
struct ObservedAttention {
  std::map<int64_t, double> by_offset;  // a(δ) of attention_by_offset()
  double distance = 0;                  // in tokens
  double entropy_share = 0;             // mean over heads and rows, of ln T
  // Empty where the text was run in windows:
  std::vector<HeadProfile> heads = {};  // [H]
};

/// Attention is summed up as it passes, so that the patterns (4·H·T² bytes a layer) are kept only
/// where they are wanted.
class RunObserver : public Observer {
 public:
  struct Wants {
    bool attention = false;  // sums
    bool patterns = false;   // whole, in trace()
  };

  /// `states` wants the hooks to be kept, patterns aside; `special` are the places of each
  /// sequence's special tokens.
  RunObserver(Trace states, Wants wants, std::vector<std::vector<int64_t>> special)
      : trace_(std::move(states)), wants_(wants), special_(std::move(special)) {}
  bool wants(Hook hook, int64_t layer) const override;
  void observe(const HookEvent& event) override;

  const Trace& trace() const { return trace_; }
  ObservedAttention attention(int64_t layer, int64_t sequence) const;

 private:
  /// Of the windows of one text.
  struct Sum {
    /// Of an offset, over the rows that have such a token.
    struct Offset {
      double weight = 0, rows = 0;
    };
    std::map<int64_t, Offset> by_offset;
    double distance = 0, entropy_share = 0, rows = 0;  // the first two times rows
    int windows = 0;
    std::vector<HeadProfile> heads;  // of the last window, as the mean pattern
  };
  Trace trace_;
  Wants wants_;
  std::vector<std::vector<int64_t>> special_;
  std::map<std::pair<int64_t, int64_t>, Sum> sums_;  // layer, sequence
};

class Batch;

/// The first of two texts, with which the other is compared; states are [2, L + 1] of [T, C].
struct FirstText {
  std::vector<int32_t> ids = {};
  std::vector<std::vector<float>> states = {};
};

/// What is wanted of a run.
struct Request {
  std::vector<const View*> views = {};
  std::string without = "mean";
  uint64_t seed = 1;                        // of the first text
  int64_t top_k = 5;                        // fillers of each mask
  bool patterns = false;                    // keep these (4·H·T² bytes a layer),
  bool arrays = false;                      // and the split's means by position
  FirstText* first = nullptr;               // borrowed; null: nothing is compared with it
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
