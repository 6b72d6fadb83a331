// An HTTP/1.1 server: connections, limits and deadlines, by Boost.Beast. It knows no routes: a
// handler answers each request.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace infer {

/// Counts what requests take before they take it: their bodies, texts, results and answers, until
/// these have been sent. Any thread.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit) {}

  int64_t limit() const { return limit_; }
  int64_t used() const { return used_; }

  /// What one request has of the budget, which outlives it. Gives it back when it ends.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (bytes_ > 0) budget_->used_ -= bytes_;
    }

    int64_t bytes() const { return bytes_; }

   private:
    friend class Budget;
    Budget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  /// Whether the share now has so many bytes. False, with the share as it was, where others have
  /// taken too much. Less than it had is always granted.
  bool resize(Share& share, int64_t bytes) {
    const int64_t more = bytes - share.bytes_;
    int64_t used = used_;
    do {
      if (more > 0 && more > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + more));
    share.budget_ = this;
    share.bytes_ = bytes;
    return true;
  }

 private:
  const int64_t limit_;
  std::atomic<int64_t> used_ = 0;
};

struct HttpRequest {
  std::string method;                           // "POST"
  std::string path;                             // "/embed", decoded; what follows "?" is left out
  std::string host, origin, authorization, id;  // those headers' values; X-Request-Id
  std::string fetch_site, fetch_mode;           // Sec-Fetch-Site and -Mode, which browsers set
  std::string content_type, encoding;           // of the body
  bool has_length = false;                      // of the body, or it comes in chunks
  std::string body;
  Budget::Share share = {};  // of the body
  std::string client;        // its address
  /// HttpOptions::host, where the server listens at an address of this machine alone; else empty.
  std::string local_host;
  /// Where the request could not be read: the status that refuses it, and why. Then the fields
  /// above hold what had been read.
  int status = 0;
  std::string problem;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  Budget::Share share = {};  // of the body: held until it has been sent
  /// True when all of it has been sent; let go then, or when it cannot be sent any more.
  std::shared_ptr<bool> is_sent = {};
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;  // 0: any that is free
  size_t max_body = size_t{8} << 20;
  size_t max_header = size_t{16} << 10;
  int64_t max_connections = 16384;  // at the limit, the next wait in the system's backlog
  /// Limits for reading the head, reading the body, and writing the answer.
  std::chrono::milliseconds head_time{10'000}, body_time{30'000}, write_time{60'000};
  std::chrono::milliseconds idle_time{75'000};  // between requests
};

/// Answers a request. Any thread. Later calls, and calls after the client or the server has gone,
/// do nothing.
using HttpReply = std::function<void(HttpResponse)>;

/// Serves on the thread of run().
class HttpServer {
 public:
  /// Handles a request on the thread of run(), soon; the reply may come later. `gone` is stopped
  /// when the client closes its connection before, or its own side of it.
  using Handler = std::function<void(HttpRequest, HttpReply, std::stop_token gone)>;

  /// Whether the body of a request is worth reading; where not, the handler gets the request
  /// without, and must refuse it.
  using Accepts = std::function<bool(const HttpRequest&)>;

  /// Opens the port at the first address of the host's name that this machine has. Throws
  /// InvalidArgument. Bodies that are being read are counted in the budget, which outlives this and
  /// the replies, and answers until they are sent; past a part of it for each, a body is refused
  /// and the slowest answer's connection closed.
  HttpServer(const HttpOptions& options, Budget& budget, Handler handler, Accepts accepts);
  ~HttpServer();

  uint16_t port() const;
  /// Whether the address is this machine's alone.
  bool is_loopback() const;
  /// Returns after stop(), or after drain() once the accepted requests are answered and the clients
  /// have taken the answers or their time is up. Throws std::bad_alloc, after which only the end of
  /// the process is safe.
  void run();
  /// Takes no more connections, closes those that are idle, and the others after their answer. Any
  /// thread.
  void drain();
  void stop();
  /// Calls it for each SIGINT and SIGTERM, on the thread of run(). Before run().
  void on_signals(std::function<void(int signal)> handle);

 private:
  struct State;
  class Connection;
  std::shared_ptr<State> state_;
};

}  // namespace infer
