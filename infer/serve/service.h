// What is served: requests in the shapes of OpenAI, text-embeddings-inference, Cohere and Jina.
#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/serve/fields.h"
#include "infer/serve/http.h"
#include "infer/serve/metrics.h"
#include "infer/serve/queue.h"

namespace infer {

struct ServiceOptions {
  std::vector<std::string> keys = {};         // one of them is asked for; empty: none
  std::chrono::milliseconds timeout{60'000};  // from a request's arrival to its batch
  int64_t max_memory = 400'000'000;           // bytes of bodies, texts, results and answers
  int64_t max_texts = 512;                    // of a request in TEI's shapes; OpenAI's: 2048
  MostTexts most_texts() const { return {max_texts, " (--max-texts)"}; }
  std::vector<std::string> hosts = {};  // names beside the machine's own, whose pages may ask
  QueueOptions queue = {};
};

/// What is known of a request when it has been answered.
struct Served {
  std::string id, client, method, path, model;
  int status = 0;
  double seconds = 0;
  int64_t texts = 0, tokens = 0;
};

/// Observes one thing at a time, on a thread of its own, so that no batch waits. What waits when it
/// ends is not answered.
struct Observer {
  static constexpr int kMost = 9;  // clients: of what is observed, and of those that wait
  using Clients = std::list<std::stop_token>;

  /// Throws a Refusal with status 429 where so many have not gone.
  Clients::iterator enter(std::stop_token gone);
  void leave(Clients::iterator client);

  std::mutex mutex;
  Clients clients;
  boost::asio::thread_pool clock{1};
  boost::asio::steady_timer time{clock};
  boost::asio::thread_pool thread{1};  // last: what it runs uses the others
};

/// Answers requests. Its functions run on the server's thread.
class Service {
 public:
  /// `log` is called for every answer, on any thread; empty: nothing is.
  Service(ServiceOptions options, Metrics& metrics, std::function<void(const Served&)> log = {})
      : options_(options), budget_(options.max_memory), metrics_(metrics), log_(std::move(log)) {}

  /// What names no model goes to the first that can answer it. Before ready(); names differ.
  void add_model(std::unique_ptr<ModelQueue> model) { models_.push_back(std::move(model)); }
  /// Before this call every request gets 503. Any thread, once.
  void ready();
  bool is_ready() const { return ready_; }
  Budget& budget() { return budget_; }
  /// From now on it answers with 503, but for what has been accepted. Any thread.
  void drain() { draining_ = true; }

  /// Whether serve() would look at the request's body.
  bool accepts(const HttpRequest& request) const { return refusal(request).status == 0; }
  void serve(HttpRequest request, HttpReply reply, std::stop_token gone);

  /// Of a request that brings no X-Request-Id: the server's start in ms, and the request's number.
  std::string next_id();

 private:
  friend struct Exchange;
  /// Counts an answer at a route, and logs it.
  void record(std::string_view path, const Served& served);
  /// Why a request is refused whatever its body; status 0: it is not.
  Failure refusal(const HttpRequest& request) const;
  bool has_key(std::string_view authorization) const;
  Failure foreign(const HttpRequest& request) const;

  ServiceOptions options_;
  Budget budget_;
  Metrics& metrics_;
  std::atomic<bool> ready_ = false, draining_ = false;
  const std::function<void(const Served&)> log_;
  std::string page_, info_, openapi_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  int64_t requests_ = 0;
  // Last, for their threads use the others.
  std::vector<std::unique_ptr<ModelQueue>> models_;
  Observer observer_;
};

/// Whether they are equal, in a time that does not depend on where they differ.
bool equal_keys(std::string_view given, std::string_view key);

/// Whether they are equal, whatever the letters' case.
bool equal_letters(std::string_view a, std::string_view b);

}  // namespace infer
