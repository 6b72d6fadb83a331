#include "infer/serve/http.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <csignal>
#include <ctime>
#include <list>
#include <optional>
#include <set>
#include <string_view>

#include "phasor/errors.h"

namespace infer {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kLastTime{10'000};  // when the server goes down
constexpr milliseconds kLinger{2'000};     // for a client to read why its request was refused
constexpr milliseconds kRetryAccept{100};  // where descriptors have run out
constexpr size_t kReadAhead = 8192;        // while a request is answered
constexpr size_t kReadAtOnce = 1024;       // of a head
constexpr size_t kMostIdBytes = 128;
constexpr int64_t kMostUnread = int64_t{64} << 20;
constexpr size_t kFieldSize = 32;  // what a header counts beside its bytes, as in RFC 9113, 6.5.2
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string string_of(beast::string_view text) { return {text.data(), text.size()}; }

/// "/a b" of "/a%20b".
std::string decoded(std::string_view path) {
  std::string text;
  for (size_t i = 0; i < path.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = path.data() + i + 1;
    if (path[i] == '%' && path.size() - i > 2 &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      text += static_cast<char>(byte);
      i += 2;
    } else {
      text += path[i];
    }
  }
  return text;
}

/// The target is "/path?query", or with "http://host" before it, as proxies are sent it.
void set_target(HttpRequest& request, std::string target) {
  if (const size_t scheme = target.find("://"); !target.starts_with('/') && scheme != target.npos) {
    const size_t begin = scheme + 3,
                 end = std::min(target.find_first_of("/?", begin), target.size());
    request.host = target.substr(begin, end - begin);
    target.erase(0, end);
    if (!target.starts_with('/')) target.insert(0, "/");
  }
  request.path = decoded(std::string_view(target).substr(0, target.find('?')));
}

/// Whether a head may begin so: what speaks TLS or ends its lines with "\n" would wait for an end.
bool begins_head(std::string_view text) {
  for (size_t i = text.find('\n'); i != text.npos; i = text.find('\n', i + 1))
    if (i == 0 || text[i - 1] != '\r') return false;
  const std::string_view first = text.substr(0, text.find('\r'));
  return text.empty() || text[0] == '\r' ||
         (text[0] >= 'A' && (first == text || first.find(" HTTP/") != first.npos));
}

/// As RFC 9110 has it: "Mon, 23 Nov 2026 13:00:00 GMT".
std::string date() {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::time(nullptr)));
}

/// 127.0.0.1 of ::ffff:127.0.0.1, as a socket for both versions of IP names it.
asio::ip::address plain(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(const HttpOptions& options, Budget& budget, Handler handler, Accepts accepts);

  void accept();
  void drain();

  const HttpOptions options;
  Budget& budget;
  // Parts of it, so that slow clients cannot hold all: of bodies that are being read, and of
  // answers that are being written.
  Budget unread{
      std::min(budget.limit() / 2, std::max(kMostUnread, static_cast<int64_t>(options.max_body)))};
  Budget unsent{budget.limit() / 2};
  const Handler handler;
  const Accepts accepts;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  asio::steady_timer retry{io}, last_time{io};
  asio::signal_set signals{io};
  tcp::acceptor acceptor{io};
  std::string local_host;  // as HttpRequest has it
  bool accepting = false, draining = false;
  std::set<std::shared_ptr<Connection>> connections;
  std::list<Connection*> writing;  // that which takes longest first
};

/// One connection, whose requests come one after the other. Lives on the thread of run().
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  enum class Does { kWaits, kReadsHead, kReadsBody, kIsAnswered, kWrites, kHasEnded };

  Connection(State& state, tcp::socket socket) : state_(state), stream_(std::move(socket)) {
    error_code ignored;
    client_ = plain(stream_.socket().remote_endpoint(ignored).address()).to_string();
    stream_.socket().set_option(tcp::no_delay(true), ignored);
  }

  Does does() const { return does_; }
  void wait();
  void close();

 private:
  /// Calls the function with the error of an operation.
  auto then(void (Connection::*next)(error_code)) {
    return [self = shared_from_this(), next](error_code error, size_t = 0) {
      (self.get()->*next)(error);
    };
  }
  void read(void (Connection::*next)(error_code)) {
    stream_.async_read_some(buffer_.prepare(kReadAtOnce),
                            [self = shared_from_this(), next](error_code error, size_t size) {
                              self->buffer_.commit(size);
                              (self.get()->*next)(error);
                            });
  }
  std::string_view unread() const {
    return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
  }

  void read_head(error_code error);
  void head_read(error_code error);
  void read_body(error_code error);
  void refuse(error_code error);
  void refuse(int status, std::string problem);
  void handle();
  void watch(error_code error);
  void reply(const std::stop_source& request, HttpResponse response);
  void leave();
  void written(error_code error);
  void linger(error_code error);

  State& state_;
  beast::tcp_stream stream_;
  std::string client_;
  beast::flat_buffer buffer_{state_.options.max_header + kReadAhead + kReadAtOnce};
  Does does_ = Does::kWaits;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> response_;
  HttpRequest request_;
  Budget::Share share_, unsent_;  // of the answer that is being written
  std::shared_ptr<bool> is_sent_;
  Budget::Share unread_;                                        // of the body that is being read
  unsigned version_ = 11;                                       // of HTTP, that the client speaks
  bool keep_alive_ = false, head_ = false, has_ended_ = false;  // the client's side
  std::stop_source gone_{std::nostopstate};                     // of the request that is answered
};

HttpServer::State::State(const HttpOptions& options, Budget& budget, Handler handler,
                         Accepts accepts)
    : options(options), budget(budget), handler(std::move(handler)), accepts(std::move(accepts)) {
  error_code error;
  const auto found = tcp::resolver(io).resolve(options.host, std::to_string(options.port),
                                               tcp::resolver::passive, error);
  for (const auto& entry : found) {  // none where the name is unknown
    acceptor = tcp::acceptor(io);
    acceptor.open(entry.endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(entry.endpoint(), error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error != asio::error::address_family_not_supported &&
        error != boost::system::errc::address_not_available)
      break;
  }
  if (error) {
    throw phasor::InvalidArgument(fmt::format(
        "cannot listen on {}:{}: {}{}", options.host, options.port, error.message(),
        error == asio::error::address_in_use ? "; choose another --port, or 0 for any" : ""));
  }
  if (acceptor.local_endpoint().address().is_loopback()) local_host = options.host;
}

/// At the limit the next wait in the system's backlog, until a connection ends. When the server
/// goes down there is no next, and it ends with the last connection.
void HttpServer::State::accept() {
  if (draining && connections.empty()) return io.stop();
  if (draining || std::ssize(connections) >= options.max_connections) return;
  if (std::exchange(accepting, true)) return;
  acceptor.async_accept([this](error_code error, tcp::socket socket) {
    accepting = false;
    if (!error) {
      const auto connection = std::make_shared<Connection>(*this, std::move(socket));
      connections.insert(connection);
      connection->wait();
      return accept();
    }
    retry.expires_after(kRetryAccept);
    retry.async_wait([this](error_code error) {
      if (!error) accept();
    });
  });
}

void HttpServer::State::drain() {
  draining = true;
  error_code ignored;
  acceptor.close(ignored);
  accept();
  using enum Connection::Does;
  std::vector<std::pair<std::shared_ptr<Connection>, Connection::Does>> busy;
  for (const auto& connection : std::set(connections)) {
    if (connection->does() <= kReadsHead)
      connection->close();
    else
      busy.emplace_back(connection, connection->does());
  }
  last_time.expires_after(kLastTime);
  last_time.async_wait([busy = std::move(busy)](error_code error) {
    for (const auto& [connection, did] : busy)  // what does something else has a new deadline
      if (!error && did != kIsAnswered && connection->does() == did) connection->close();
  });
}

void HttpServer::Connection::close() {
  const std::shared_ptr<Connection> self = shared_from_this();  // it may wait for nothing else
  if (does_ == Does::kHasEnded) return;
  if (does_ == Does::kIsAnswered) gone_.request_stop();
  does_ = Does::kHasEnded;
  stream_.close();
  unread_ = {};
  leave();
  state_.connections.erase(self);
  state_.accept();
}

void HttpServer::Connection::wait() {
  if (state_.draining) return close();
  does_ = Does::kWaits;
  if (buffer_.size() > 0) return read_head({});  // it was sent before the last answer
  buffer_.shrink_to_fit();
  stream_.expires_after(state_.options.idle_time);
  read(&Connection::read_head);
}

void HttpServer::Connection::read_head(error_code error) {
  if (error) return close();
  while (unread().starts_with("\r\n")) buffer_.consume(2);  // RFC 9112, section 2.2
  const std::string_view text = unread();
  if (does_ == Does::kWaits && text.empty()) return wait();
  if (does_ == Does::kWaits) stream_.expires_after(state_.options.head_time);
  does_ = Does::kReadsHead;
  const size_t end = text.find("\r\n\r\n");
  const bool may_be_head = begins_head(text.substr(0, end));
  if (may_be_head && end == text.npos && text.size() <= state_.options.max_header)
    return read(&Connection::read_head);
  request_ = {};
  request_.client = client_;
  request_.local_host = state_.local_host;
  keep_alive_ = head_ = false;
  if (!may_be_head) return refuse(http::error::bad_method);
  if (end == text.npos) return refuse(http::error::header_limit);
  // A line that begins with white space continues the header before it (obs-fold). Beast would join
  // the two; a proxy may not (RFC 9112, section 5.2).
  const std::string_view head = text.substr(0, end);
  if (head.find("\n ") != head.npos || head.find("\n\t") != head.npos)
    return refuse(400, "a header continues on a second line; send each header on one line");
  does_ = Does::kReadsBody;
  parser_.emplace();
  parser_->body_limit(state_.options.max_body);
  parser_->header_limit(static_cast<uint32_t>(state_.options.max_header));
  // Beast accepts a line feed within the quotes of a chunk's extension; a proxy may end the line
  // there.
  static auto check = [](uint64_t, beast::string_view extensions, error_code& error) {
    if (extensions.find('\n') != extensions.npos) error = http::error::bad_chunk_extension;
  };
  parser_->on_chunk_header(check);
  buffer_.consume(parser_->put(buffer_.data(), error));
  head_read(error);
}

void HttpServer::Connection::head_read(error_code error) {
  // Before the body: after it, fields may follow that nobody should trust.
  const http::request<http::string_body>& message = parser_->get();
  const auto field = [&](http::field name) { return string_of(message[name]); };
  request_.method = string_of(message.method_string());
  request_.host = field(http::field::host);
  set_target(request_, string_of(message.target()));
  request_.origin = field(http::field::origin);
  request_.fetch_site = string_of(message["Sec-Fetch-Site"]);
  request_.fetch_mode = string_of(message["Sec-Fetch-Mode"]);
  request_.authorization = field(http::field::authorization);
  request_.id = string_of(message["X-Request-Id"].substr(0, kMostIdBytes));
  request_.content_type = field(http::field::content_type);
  const auto codings = message.equal_range(http::field::content_encoding);
  for (auto each = codings.first; each != codings.second; ++each)
    request_.encoding += (request_.encoding.empty() ? "" : ", ") + string_of(each->value());
  version_ = message.version();
  head_ = message.method() == http::verb::head;
  if (error) return refuse(error);

  size_t size = 0;
  for (const auto& field : message)
    size += field.name_string().size() + field.value().size() + kFieldSize;
  if (size > state_.options.max_header) return refuse(http::error::header_limit);
  const bool coded = message.count(http::field::transfer_encoding) > 0;
  if (coded && (version_ < 11 || message.count(http::field::content_length) > 0 ||
                !beast::iequals(message[http::field::transfer_encoding], "chunked")))
    return refuse(400, "the body's length is unclear: send Content-Length, or chunks");
  const size_t hosts = message.count(http::field::host);
  if (hosts > 1 || (version_ >= 11 && hosts == 0))
    return refuse(400, "there must be one Host header");
  for (const auto name : {http::field::origin, http::field::authorization}) {
    if (message.count(name) > 1)
      return refuse(400, fmt::format("there must be one {} header", string_of(to_string(name))));
  }
  keep_alive_ = message.keep_alive();
  request_.has_length = coded || parser_->content_length().has_value();
  const bool has_body = coded || parser_->content_length().value_or(0) > 0;
  if (has_body && !state_.accepts(request_)) {
    keep_alive_ = false;
    return handle();
  }
  const bool asks = version_ >= 11 && beast::iequals(message[http::field::expect], "100-continue");
  parser_->get().clear();  // of the fields, which take more memory than their bytes
  buffer_.shrink_to_fit();
  stream_.expires_after(state_.options.body_time);
  if (!asks) return read_body({});
  asio::async_write(stream_, asio::buffer(kContinue), then(&Connection::read_body));
}

void HttpServer::Connection::read_body(error_code error) {
  if (error) return refuse(error);
  const auto size = std::ssize(parser_->get().body());
  if (size > state_.unread.limit())
    return refuse(413, fmt::format("the body is larger than {} bytes, half of --max-memory",
                                   state_.unread.limit()));
  const bool is_whole = parser_->is_done();
  if (!state_.budget.resize(request_.share, size))
    return refuse(429, "other requests take the memory (--max-memory); try again later");
  if (!is_whole && !state_.unread.resize(unread_, size))
    return refuse(429, "other bodies are arriving; try again later");
  if (size > int64_t{kReadAhead}) buffer_.reserve(kReadAhead);  // else it would grow by 512 bytes
  if (!is_whole)
    return http::async_read_some(stream_, buffer_, *parser_, then(&Connection::read_body));
  request_.body = std::move(parser_->get().body());
  handle();
}

/// Of a request that could not be read.
void HttpServer::Connection::refuse(error_code error) {
  const HttpOptions& options = state_.options;
  if (error == http::error::body_limit)
    return refuse(413,
                  fmt::format("the body is larger than {} bytes (--max-body)", options.max_body));
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refuse(431, fmt::format("the headers have more than {} bytes, each counted with {} more",
                                   options.max_header, kFieldSize));
  const bool is_http =
      error.category() == http::make_error_code(http::error::bad_method).category();
  if (is_http && error != http::error::end_of_stream && error != http::error::partial_message)
    return refuse(400, fmt::format("this is not HTTP: {}", error.message()));
  close();
}

void HttpServer::Connection::refuse(int status, std::string problem) {
  keep_alive_ = false;
  request_.share = {};
  request_.status = status;
  request_.problem = std::move(problem);
  handle();
}

void HttpServer::Connection::handle() {
  parser_.reset();
  unread_ = {};
  does_ = Does::kIsAnswered;
  stream_.expires_never();
  gone_ = {};
  HttpReply reply = [state = state_.weak_from_this(), weak = weak_from_this(),
                     request = gone_](HttpResponse response) {
    const std::shared_ptr<State> alive = state.lock();
    if (!alive) return;
    // What keeps a connection alive is held on the thread of run() alone.
    asio::post(alive->io, [weak, request, response = std::move(response)]() mutable {
      if (const auto self = weak.lock()) self->reply(request, std::move(response));
    });
  };
  const bool is_refused = request_.status != 0;
  state_.handler(std::move(request_), std::move(reply), gone_.get_token());
  if (!is_refused) watch({});
}

/// Reads ahead while a request is answered, and notices that the client has gone.
void HttpServer::Connection::watch(error_code error) {
  has_ended_ |= error && error != asio::error::operation_aborted;
  if (does_ != Does::kIsAnswered) return;
  if (error) return close();
  if (buffer_.size() < kReadAhead) read(&Connection::watch);
}

void HttpServer::Connection::reply(const std::stop_source& request, HttpResponse response) {
  if (does_ != Does::kIsAnswered || request != gone_) return;
  does_ = Does::kWrites;
  stream_.cancel();  // watch()
  keep_alive_ = keep_alive_ && !state_.draining;
  response_.emplace();
  response_->version(version_);
  response_->result(static_cast<unsigned>(response.status));
  response_->set(http::field::date, date());
  response_->set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->keep_alive(keep_alive_);
  response_->content_length(response.body.size());
  if (!head_) response_->body() = std::move(response.body);
  share_ = std::move(response.share);
  is_sent_ = std::move(response.is_sent);
  const int64_t size = std::min(std::ssize(response_->body()), state_.unsent.limit());
  state_.writing.push_back(this);
  while (!state_.unsent.resize(unsent_, size) && state_.writing.size() > 1)
    state_.writing.front()->close();
  stream_.expires_after(state_.draining ? kLastTime : state_.options.write_time);
  http::async_write(stream_, *response_, then(&Connection::written));
}

void HttpServer::Connection::leave() {
  std::erase(state_.writing, this);
  share_ = {};
  unsent_ = {};
  is_sent_ = {};
}

void HttpServer::Connection::written(error_code error) {
  response_.reset();
  if (is_sent_) *is_sent_ = !error;
  leave();
  if (error || has_ended_) return close();  // the system tells an end once
  if (keep_alive_) return wait();
  stream_.socket().shutdown(tcp::socket::shutdown_send, error);
  stream_.expires_after(kLinger);
  linger({});
}

/// Reads what a refused client still sends, for a while: closed at once, the connection would be
/// reset, and the client might not see the answer.
void HttpServer::Connection::linger(error_code error) {
  if (error) return close();
  buffer_.clear();
  read(&Connection::linger);
}

HttpServer::HttpServer(const HttpOptions& options, Budget& budget, Handler handler, Accepts accepts)
    : state_(std::make_shared<State>(options, budget, std::move(handler), std::move(accepts))) {}

HttpServer::~HttpServer() {
  state_->draining = true;
  while (!state_->connections.empty()) (*state_->connections.begin())->close();
}

uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

bool HttpServer::is_loopback() const { return !state_->local_host.empty(); }

void HttpServer::run() {
  state_->accept();
  state_->io.run();
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_.get()] { state->drain(); });
}

void HttpServer::on_signals(std::function<void(int)> handle) {
  error_code ignored;  // where it has been added
  for (const int signal : {SIGINT, SIGTERM}) state_->signals.add(signal, ignored);
  state_->signals.async_wait([this, handle](error_code error, int signal) {
    if (error) return;
    handle(signal);
    on_signals(handle);
  });
}

void HttpServer::stop() { state_->io.stop(); }

}  // namespace infer
