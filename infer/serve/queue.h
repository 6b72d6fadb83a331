// A model's requests: they wait in a queue and run together whenever the engine is free.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "infer/serve/metrics.h"
#include "phasor/encoder.h"
#include "phasor/model.h"

namespace infer {

/// What a request is refused with.
struct Failure {
  int status = 0;  // of HTTP; 0: none
  std::string type, message;
};

/// What an exception means to who sent the request.
Failure failure_of(const std::exception_ptr& exception);

/// How texts are run; requests that agree in it share runs.
struct RunKind {
  enum class Task { kEmbed, kStates, kClassify, kClassifyPairs };
  Task task = Task::kEmbed;
  bool truncate = true;     // a text that is too long is refused otherwise
  bool normalize = true;    // of kEmbed
  std::string prompt = {};  // put before each text of kEmbed

  bool operator==(const RunKind&) const = default;
};

/// What came of a text or a pair.
struct TextResult {
  std::vector<float> values;         // the vector [W], the states [T, C], or the logits
  std::vector<float> probabilities;  // of kClassify
  int64_t num_tokens = 0;
};

using Clock = std::chrono::steady_clock;

struct Work {
  RunKind kind;
  std::vector<std::string> texts;
  std::vector<std::string> second = {};  // of pairs
  Clock::time_point deadline;
  std::stop_token gone;  // nobody waits any more
  /// Called once, on the engine's thread. A failure has a status.
  std::function<void(std::vector<TextResult>, const Failure&)> done;
};

struct QueueOptions {
  int64_t max_batch_tokens = 16384;
  int64_t max_queue = 512;  // requests
};

/// One model, one engine, one thread that runs it.
class ModelQueue {
 public:
  ModelQueue(std::string name, std::shared_ptr<const phasor::Model> model,
             phasor::EncoderOptions options, QueueOptions limits, Metrics& metrics);
  /// Answers what waits.
  ~ModelQueue();

  const std::string& name() const { return name_; }
  const phasor::Model& model() const { return *model_; }
  const phasor::Encoder& encoder() const { return encoder_; }
  bool is_classifier() const { return model_->weights().classifier.has_value(); }
  /// To which texts are cut, special tokens included.
  int64_t max_tokens() const;
  int64_t waiting() const;  // requests

  /// False where the queue is full. Any thread.
  bool add(Work work);

 private:
  /// A request, a part of whose texts may have been run.
  struct Pending {
    Work work;
    std::vector<TextResult> results = {};
    size_t next() const { return results.size(); }
    bool ended() const { return next() == work.texts.size(); }
  };
  /// Texts of a request that run now.
  struct Part {
    Pending* pending;
    size_t first, count;
  };

  void work(const std::stop_token& stop);
  void drop_abandoned();
  std::vector<Part> next_batch();
  int64_t about_tokens(const Work& work, size_t text) const;
  void run(const std::vector<Part>& batch);
  std::vector<TextResult> run_texts(const RunKind& kind, const std::vector<std::string_view>& texts,
                                    const std::vector<std::string_view>& second);

  std::string name_;
  std::shared_ptr<const phasor::Model> model_;
  phasor::Encoder encoder_;
  QueueOptions limits_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable_any ready_;
  std::deque<std::unique_ptr<Pending>> queue_;
  std::jthread thread_;
};

}  // namespace infer
