#include "infer/serve/http.h"

#include <fmt/format.h>

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <optional>
#include <set>

#include "phasor/errors.h"

namespace infer {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

namespace {

constexpr milliseconds kRetryAccept{100};  // where descriptors have run out
constexpr milliseconds kLinger{2'000};     // for a client to read why its request was refused
constexpr size_t kReadAtOnce = 8192;

std::string string_of(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct HttpServer::State {
  State(const HttpOptions& options, Handler handler)
      : options(options), handler(std::move(handler)), acceptor(io), retry(io) {}

  void accept(const std::shared_ptr<State>& self);
  void drain();

  const HttpOptions options;
  const Handler handler;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  bool accepting = false, draining = false;
  std::set<Connection*> connections;
  std::atomic<int64_t> count = 0;
};

/// One connection, whose requests come one after the other. Kept alive by what it waits for.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, tcp::socket socket)
      : state_(std::move(state)), socket_(std::move(socket)), timer_(state_->io) {
    error_code ignored;
    client_ = socket_.remote_endpoint(ignored).address().to_string(ignored);
    socket_.set_option(tcp::no_delay(true), ignored);
    state_->connections.insert(this);
    ++state_->count;
  }
  ~Connection() {
    state_->connections.erase(this);
    --state_->count;
    state_->accept(state_);
  }

  void wait_for_request();
  void close_if_idle() {
    if (idle_) close();
  }
  void close() {
    error_code ignored;
    timer_.cancel();
    socket_.close(ignored);
  }

 private:
  /// Calls `then(error)` for the end of an operation; asio::error::timed_out where it took longer.
  template <typename Then>
  auto within(milliseconds time, Then then) {
    timed_out_ = false;
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this(), operation = ++operation_](error_code error) {
      // Of an operation that has ended, the timer may have been too late to cancel.
      if (error || operation != self->operation_) return;
      self->timed_out_ = true;
      error_code ignored;
      self->socket_.cancel(ignored);
    });
    return [self = shared_from_this(), then](error_code error, size_t) {
      ++self->operation_;
      self->timer_.cancel();
      (self.get()->*then)(self->timed_out_ ? asio::error::timed_out : error);
    };
  }

  void begin_request(error_code error);
  void head_read(error_code error);
  void continued(error_code error);
  void body_read(error_code error);
  void refuse(error_code error);
  void handle();
  void watch();
  void reply(uint64_t number, HttpResponse response);
  void write(HttpResponse response, bool keep_alive);
  void written(error_code error);
  void linger();
  void lingered(error_code error);

  std::shared_ptr<State> state_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  uint64_t operation_ = 0;  // that the timer is for
  bool timed_out_ = false, idle_ = true;
  std::string client_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  uint64_t number_ = 0;  // of the request
  bool answered_ = true, keep_alive_ = false, head_ = false;
  std::stop_source gone_;
  Clock::time_point linger_until_;
};

void HttpServer::State::accept(const std::shared_ptr<State>& self) {
  if (accepting || !acceptor.is_open()) return;
  if (std::ssize(connections) >= options.max_connections) return;  // goes on when one has ended
  accepting = true;
  acceptor.async_accept([self](error_code error, tcp::socket socket) {
    self->accepting = false;
    if (!self->acceptor.is_open()) return;
    if (!error) {
      std::make_shared<Connection>(self, std::move(socket))->wait_for_request();
      return self->accept(self);
    }
    self->retry.expires_after(kRetryAccept);
    self->retry.async_wait([self](error_code error) {
      if (!error) self->accept(self);
    });
  });
}

void HttpServer::State::drain() {
  draining = true;
  error_code ignored;
  acceptor.close(ignored);
  retry.cancel();
  for (Connection* const connection : std::set(connections)) connection->close_if_idle();
}

void HttpServer::Connection::wait_for_request() {
  if (state_->draining) return close();
  idle_ = true;
  keep_alive_ = head_ = false;
  parser_.emplace();
  parser_->body_limit(state_->options.max_body);
  parser_->header_limit(static_cast<uint32_t>(state_->options.max_header));
  if (buffer_.size() > 0) return begin_request({});  // sent before the answer to the last one
  const auto end = within(state_->options.idle_time, &Connection::begin_request);
  socket_.async_read_some(buffer_.prepare(kReadAtOnce), [this, end](error_code error, size_t size) {
    buffer_.commit(size);
    end(error, size);
  });
}

void HttpServer::Connection::begin_request(error_code error) {
  idle_ = false;
  if (error) return close();
  http::async_read_header(socket_, buffer_, *parser_,
                          within(state_->options.head_time, &Connection::head_read));
}

void HttpServer::Connection::head_read(error_code error) {
  if (error) return refuse(error);
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return continued(error);
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(kContinue),
                    within(state_->options.write_time, &Connection::continued));
}

void HttpServer::Connection::continued(error_code error) {
  if (error) return close();
  http::async_read(socket_, buffer_, *parser_,
                   within(state_->options.body_time, &Connection::body_read));
}

void HttpServer::Connection::body_read(error_code error) { error ? refuse(error) : handle(); }

/// Of a request that could not be read.
void HttpServer::Connection::refuse(error_code error) {
  const auto answer = [&](int status, std::string what) {
    write({.status = status, .body = fmt::format("{{\"error\":\"{}\"}}", what)}, false);
  };
  const HttpOptions& options = state_->options;
  if (error == asio::error::timed_out) return answer(408, "the request did not arrive in time");
  if (error == http::error::body_limit)
    return answer(413, fmt::format("the body is larger than {} bytes", options.max_body));
  if (error == http::error::header_limit)
    return answer(431, fmt::format("the headers are larger than {} bytes", options.max_header));
  const bool is_http =
      error.category() == http::make_error_code(http::error::bad_method).category();
  if (is_http && error != http::error::end_of_stream && error != http::error::partial_message)
    return answer(400, fmt::format("this is not HTTP: {}", error.message()));
  close();
}

void HttpServer::Connection::handle() {
  http::request<http::string_body> message = parser_->release();
  HttpRequest request{.method = string_of(message.method_string()),
                      .path = string_of(message.target()),
                      .query = {},
                      .authorization = string_of(message[http::field::authorization]),
                      .content_type = string_of(message[http::field::content_type]),
                      .encoding = string_of(message[http::field::content_encoding]),
                      .body = std::move(message.body()),
                      .client = client_};
  if (const size_t mark = request.path.find('?'); mark != std::string::npos) {
    request.query = request.path.substr(mark + 1);
    request.path.resize(mark);
  }
  keep_alive_ = message.keep_alive();
  head_ = message.method() == http::verb::head;
  answered_ = false;
  gone_ = {};
  const uint64_t number = ++number_;
  HttpReply reply = [weak = weak_from_this(), number](HttpResponse response) {
    const std::shared_ptr<Connection> self = weak.lock();
    if (!self) return;
    asio::post(self->socket_.get_executor(),
               [self, number, response = std::move(response)]() mutable {
                 self->reply(number, std::move(response));
               });
  };
  watch();
  state_->handler(std::move(request), std::move(reply), gone_.get_token());
}

/// Notices that the client closes the connection while its request is being answered.
void HttpServer::Connection::watch() {
  socket_.async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), number = number_](error_code error) {
        if (error || self->answered_ || self->number_ != number) return;
        char byte;
        error_code problem;
        self->socket_.non_blocking(true, problem);
        const size_t got =
            self->socket_.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, problem);
        if (problem == asio::error::would_block) return self->watch();
        if (got > 0) return;  // the next request, already
        self->answered_ = true;
        self->gone_.request_stop();
        self->close();
      });
}

void HttpServer::Connection::reply(uint64_t number, HttpResponse response) {
  if (number != number_ || answered_) return;
  answered_ = true;
  error_code ignored;
  socket_.cancel(ignored);  // what watches
  write(std::move(response), keep_alive_ && !state_->draining);
}

void HttpServer::Connection::write(HttpResponse response, bool keep_alive) {
  keep_alive_ = keep_alive;
  response_.emplace();
  response_->result(static_cast<unsigned>(response.status));
  response_->reason(
      beast::string_view(reason_of(response.status).data(), reason_of(response.status).size()));
  response_->set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->keep_alive(keep_alive);
  const size_t length = response.body.size();
  if (!head_) response_->body() = std::move(response.body);
  response_->content_length(length);
  serializer_.emplace(*response_);
  http::async_write(socket_, *serializer_,
                    within(state_->options.write_time, &Connection::written));
}

void HttpServer::Connection::written(error_code error) {
  response_.reset();
  serializer_.reset();
  if (error) return close();
  if (keep_alive_) return wait_for_request();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  linger_until_ = Clock::now() + kLinger;
  linger();
}

/// Reads what a refused client still sends, for a while: closed at once, the connection would be
/// reset, and the client might not see the answer.
void HttpServer::Connection::linger() {
  const auto left = std::chrono::duration_cast<milliseconds>(linger_until_ - Clock::now());
  if (left.count() <= 0) return close();
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kReadAtOnce), within(left, &Connection::lingered));
}

void HttpServer::Connection::lingered(error_code error) { error ? close() : linger(); }

HttpServer::HttpServer(const HttpOptions& options, Handler handler)
    : state_(std::make_shared<State>(options, std::move(handler))) {
  tcp::acceptor& acceptor = state_->acceptor;
  error_code error;
  tcp::resolver resolver(state_->io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  if (!error) {
    const tcp::endpoint endpoint = *found.begin();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    throw phasor::InvalidArgument(
        fmt::format("cannot listen on {}:{}: {}", options.host, options.port, error.message()));
  }
}

HttpServer::~HttpServer() {
  drain();
  for (Connection* const connection : std::set(state_->connections)) connection->close();
  state_->io.restart();
  state_->io.poll();  // what has been cancelled, which holds the state
}

uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run() {
  state_->accept(state_);
  state_->io.run();
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_] { state->drain(); });
}

void HttpServer::stop() { state_->io.stop(); }

int64_t HttpServer::connections() const { return state_->count; }

std::string_view reason_of(int status) {
  const beast::string_view reason = http::obsolete_reason(static_cast<http::status>(status));
  return {reason.data(), reason.size()};
}

}  // namespace infer
