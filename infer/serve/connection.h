// The connections of an HttpServer: what http.cc and connection.cc share.
#pragma once

// clang-format off: Boost 1.74 needs std::exchange, and does not include it.
#include <utility>
// clang-format on

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "infer/serve/http.h"

namespace infer {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

struct HttpServer::State {
  State(const HttpOptions& options, Handler handler, Accepts accepts)
      : options(options), handler(std::move(handler)), accepts(std::move(accepts)), retry(io) {}

  /// An address that is listened on.
  struct Door {
    tcp::acceptor acceptor;
    bool accepting = false;
  };

  void listen();
  bool is_open() const { return doors.front().acceptor.is_open(); }
  void accept(const std::shared_ptr<State>& self);
  void accept(const std::shared_ptr<State>& self, Door& door);
  void drain();

  const HttpOptions options;
  const Handler handler;
  const Accepts accepts;
  asio::io_context io{1};
  std::list<Door> doors;  // one for each address of the host, on one port
  asio::steady_timer retry;
  std::string local_host;  // as HttpRequest has it
  bool draining = false;
  int64_t unread = 0, unsent = 0;  // bytes
  std::set<Connection*> connections;
  std::list<Connection*> idle, writing;  // the longest idle first, and that which writes longest
};

/// One connection, whose requests come one after the other. Lives on the thread of run(), kept
/// alive by what it waits for: an operation of its socket, or an answer.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, tcp::socket socket);
  ~Connection();

  void begin() { wait_for_request(); }
  void hurry();
  void close();
  /// Of one that is in the list of idle connections: for how long.
  Clock::duration waited() const {
    return Clock::now() - (timer_.expiry() - state_->options.idle_time);
  }

 private:
  /// Calls `then(error)` for the end of an operation; asio::error::timed_out where it took longer.
  template <typename Then>
  auto within(milliseconds time, Then then) {
    timed_out_ = false;
    end_after(time, ++operation_);
    return [self = shared_from_this(), then](error_code error, size_t = 0) {
      ++self->operation_;
      self->timer_.cancel();
      (self.get()->*then)(self->timed_out_ ? asio::error::timed_out : error);
    };
  }
  void end_after(milliseconds time, uint64_t operation);
  void join(std::list<Connection*>& list);
  void leave();

  void wait_for_request();
  void begin_request(error_code error);
  void read_head();
  void more_of_head(error_code error);
  void head_read(error_code error);
  void continued(error_code error);
  void read_body();
  void body_read(error_code error);
  void refuse(error_code error);
  void refuse(int status, std::string problem);
  void handle();
  void watch();
  void watched();
  void watch_for_reset();
  bool waits_for(uint64_t number) const { return number == number_ && !answered_; }
  void reply(uint64_t number, HttpResponse response);
  void write(HttpResponse response, bool keep_alive);
  void written(error_code error);
  void linger();
  void lingered(error_code error);

  /// Beast accepts a line feed within the quotes of a chunk's extension; a proxy may end the line
  /// there.
  struct CheckExtensions {
    void operator()(uint64_t, beast::string_view extensions, error_code& error) const {
      if (extensions.find('\n') != extensions.npos) error = http::error::bad_chunk_extension;
    }
  };

  std::shared_ptr<State> state_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  uint64_t operation_ = 0;  // that the timer is for
  bool timed_out_ = false;
  std::list<Connection*>* list_ = nullptr;  // of the state, that this is in
  std::list<Connection*>::iterator place_;
  int64_t unread_ = 0, unsent_ = 0;  // what this has of the state's
  Budget::Share share_;              // of the answer that is being written
  std::string client_;
  beast::flat_buffer buffer_;
  CheckExtensions check_extensions_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  HttpRequest request_;
  unsigned version_ = 11;  // of HTTP, that the client speaks
  uint64_t number_ = 0;    // of the request
  bool answered_ = true, keep_alive_ = false, head_ = false;
  std::stop_source gone_;
  std::shared_ptr<Connection> pending_;  // this, until it is answered
  Clock::time_point head_until_, body_until_, linger_until_;
};

}  // namespace infer
