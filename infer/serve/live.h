// The page at /: a report that is drawn anew as its reader types.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "infer/cli/input_options.h"
#include "infer/serve/metrics.h"
#include "infer/serve/queue.h"

namespace infer {

/// A model and its positions.
struct ObservedModel {
  const ModelQueue* queue = nullptr;
  std::string positions = "own";  // as --positions has them

  bool operator==(const ObservedModel&) const = default;
};

/// What is observed: texts in one run of a model, in runs before and after interventions, or in
/// runs of two models.
struct Observation {
  ObservedModel model;
  std::optional<ObservedModel> beside = {};  // then there are no interventions
  std::vector<std::string> texts;  // are cut to kMostTokens, and to what the models were trained on
  bool parse_special = false;      // as TokenizeOptions has it
  Interventions interventions = {};
  Clock::time_point deadline;                    // of the whole
  std::stop_token gone;                          // nobody waits any more
  std::function<void(int64_t bytes)> take = {};  // counts what it will take; throws a Refusal
  /// Called once, on the observer's thread: with the page's JSON and the number of tokens, or with
  /// a failure that has a status.
  std::function<void(std::string json, int64_t tokens, const Failure&)> done = {};

  static constexpr int64_t kMostTokens = 128;  // a text's pattern has the square of its length
};

/// Observes one thing at a time, on a thread of its own, so that no batch waits.
/// What waits when it ends is not answered.
class ObserveQueue {
 public:
  explicit ObserveQueue(Metrics& metrics) : metrics_(metrics) {}

  /// False where too many wait. One thread; the model must outlive this.
  bool add(Observation observation);

 private:
  static constexpr int kMost = 9;  // that is observed, and those that wait

  void answer(const Observation& observation);

  Metrics& metrics_;
  std::atomic<int> size_ = 0;
  boost::asio::thread_pool clock_{1}, observer_{1};
};

/// The page; where `asks_key`, its reader is asked for one.
std::string live_page(std::span<const std::unique_ptr<ModelQueue>> models, bool asks_key);

}  // namespace infer
