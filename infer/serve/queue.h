// A model's requests: they wait in a queue and run together whenever the engine is free.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "infer/columns.h"
#include "infer/serve/metrics.h"
#include "phasor/encoder.h"
#include "phasor/model.h"

namespace infer {

/// What a request is refused with.
struct Failure {
  int status = 0;  // of HTTP; 0: none
  std::string type, message;
};

extern const Failure kLate, kGone;

/// What an exception means to who sent the request. Throws nothing.
Failure failure_of(const std::exception_ptr& exception);

using Clock = std::chrono::steady_clock;

/// Stops a run when its time is up, or when nobody waits for it any more.
class RunEnd {
 public:
  RunEnd(boost::asio::steady_timer& timer, Clock::time_point time, const std::stop_token& gone);
  ~RunEnd() { timer_.cancel(); }
  std::stop_token token() const { return ends_.get_token(); }

 private:
  std::stop_source ends_;
  boost::asio::steady_timer& timer_;
  std::stop_callback<std::function<void()>> with_client_;
};

class ModelQueue;
struct Work;

/// Texts that run together.
struct Batch {
  std::vector<std::string_view> first = {};  // of pairs; empty: there are none
  std::vector<std::string_view> texts = {};
  phasor::TextOptions options = {};
};

/// A row of kTasks.
struct Task {
  /// Is given the arrays of results, and of how many of the batch's texts, one after the other.
  using Take = std::function<void(const std::vector<phasor::ResultArray>& made, size_t texts)>;
  void (*run)(phasor::Encoder& encoder, const Batch& batch, const Take& take);
  uint32_t uses = 0;  // of options; 0: nothing runs on the engine
  /// The most bytes of a text's results and of their JSON. Of an answer that repeats words of its
  /// texts, or shows few of its results, the bytes are counted as it grows.
  int64_t (*bytes)(const ModelQueue& queue, const Work& work, size_t text);
};

/// All.
struct Tasks {
  Task embed, states, sparse, tokens;
  Task classify;  // of texts or pairs
  Task rank_by_tokens;
  Task label;
  Task tokenize;  // waits its turn, and is done with the answer
};
extern const Tasks kTasks;

/// A request. Those with the same task and options share runs.
struct Work {
  const Task* task = &kTasks.embed;
  phasor::TextOptions options = {};
  std::vector<std::string> texts = {};
  std::vector<std::string> first = {};  // of pairs, whose second are the texts: as many, or one
  size_t prompt_bytes = 0;              // of what is put before each text
  Clock::time_point deadline = {};      // of its first batch
  std::stop_token gone = {};            // nobody waits any more
  /// Called once, on the answers' thread. A failure has a status.
  std::function<void(const Work&, const Columns&, const Failure&)> done = {};

  std::string_view first_of(size_t text) const;
  int64_t bytes(size_t text) const;  // to tokenize for a text
  int64_t bytes() const;             // for all
  bool may_share(const Work& other) const;
};

struct QueueOptions {
  int64_t max_batch_tokens = 4096;            // about
  int64_t max_queue = 512;                    // requests
  std::chrono::milliseconds max_run{60'000};  // of a batch; then it ends with 504
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
  int64_t num_labels() const;  // of its head, for texts or tokens; 0: there is none
  bool labels_tokens() const { return model_->weights().token_classifier.has_value(); }
  bool is_classifier() const { return model_->weights().classifier.has_value(); }
  bool is_reranker() const { return is_classifier() && num_labels() == 1; }
  bool makes_vectors() const { return vector_width_ > 0 && !is_classifier() && !labels_tokens(); }
  bool makes_sparse_vectors() const { return model_->has_sparse(); }
  bool makes_token_vectors() const { return model_->has_token_vectors(); }
  /// Whether queries and documents are compared by token vectors.
  bool ranks_by_tokens() const {
    return makes_token_vectors() && vector_width_ == 0 && !is_classifier() && !labels_tokens();
  }
  bool ranks() const { return is_reranker() || ranks_by_tokens(); }
  /// To which texts are cut, special tokens included.
  int64_t max_tokens() const { return max_tokens_; }
  int64_t vector_width() const { return vector_width_; }  // W of embed(); 0: no vectors
  int64_t waiting() const;                                // requests that are not answered yet

  /// Throws a Refusal with status 429 where the queue is full. Any thread.
  void add(Work work);

 private:
  /// A request, a part of whose texts may have been run.
  struct Pending {
    Work work;
    size_t done = 0;  // texts
    Columns results = {};
    Failure failure = {};
    bool ended() const { return failure.status != 0 || done == work.texts.size(); }
    bool has_gone() const { return work.gone.stop_requested(); }
  };
  using Requests = std::list<Pending>;
  /// Texts of a request that run now.
  struct Part {
    Requests::iterator request;
    size_t first, count = 0;
  };

  void work(const std::stop_token& stop);
  void drop_abandoned();
  std::vector<Part> next_batch();
  void run(const std::vector<Part>& batch);
  void run_parts(std::span<const Part> parts);
  bool try_run(std::span<const Part> parts);
  std::vector<Columns> results_of(std::span<const Part> parts, std::stop_token stop);
  void answer();
  void send_answers();

  std::string name_;
  std::shared_ptr<const phasor::Model> model_;
  phasor::Encoder encoder_;
  QueueOptions limits_;
  Metrics& metrics_;
  int64_t max_tokens_, vector_width_;
  mutable std::mutex mutex_;
  std::condition_variable_any ready_;
  Requests queue_, ended_;               // that wait for the engine, and for their answers
  boost::asio::thread_pool answers_{1};  // writes answers while the engine goes on
  /// Has its descriptors from the start. Is late by as much as an answer takes to write.
  boost::asio::steady_timer run_time_{answers_};
  std::jthread thread_;
};

// In tasks.cc:

/// To how many tokens a text is cut; /predict_tokens runs all of it, in windows of so many.
int64_t longest(const ModelQueue& queue, const Work& work);

/// About how many tokens of a text are run, as batches count them.
int64_t about_tokens(const ModelQueue& queue, const Work& work, size_t text);

/// The most bytes that a request takes: its texts, their results and, as far as they tell it, the
/// answer.
int64_t most_bytes(const ModelQueue& queue, const Work& work);

}  // namespace infer
