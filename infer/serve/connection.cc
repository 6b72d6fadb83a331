#include "infer/serve/connection.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <string_view>

namespace infer {
namespace {

constexpr milliseconds kCancelAgain{100};  // an operation that was between two steps
constexpr milliseconds kLastTime{10'000};  // when the server goes down
constexpr milliseconds kLinger{2'000};     // for a client to read why its request was refused
constexpr size_t kReadAtOnce = 8192, kReadAhead = 16384 - kReadAtOnce;
constexpr size_t kMostIdBytes = 128;
constexpr size_t kFieldSize = 32;  // what a header counts beside its bytes, as in RFC 9113, 6.5.2
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string string_of(beast::string_view text) { return {text.data(), text.size()}; }

std::string_view text_of(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

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

/// Whether a line begins with white space, which continues the header before it (obs-fold). Beast
/// would join the two; a proxy may not (RFC 9112, section 5.2).
bool has_folded_line(std::string_view head) {
  return head.find("\n ") != head.npos || head.find("\n\t") != head.npos;
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

HttpServer::Connection::Connection(std::shared_ptr<State> state, tcp::socket socket)
    : state_(std::move(state)),
      socket_(std::move(socket)),
      timer_(state_->io),
      buffer_(state_->options.max_header + kReadAhead + kReadAtOnce) {
  error_code ignored;
  client_ = plain(socket_.remote_endpoint(ignored).address()).to_string();
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);  // what is there is read at once
  state_->connections.insert(this);
}

HttpServer::Connection::~Connection() {
  leave();
  state_->connections.erase(this);
  state_->accept(state_);
}

void HttpServer::Connection::end_after(milliseconds time, uint64_t operation) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this(), operation](error_code error) {
    // Of an operation that has ended, the timer may have been too late to cancel.
    if (error || operation != self->operation_) return;
    self->timed_out_ = true;
    error_code ignored;
    self->socket_.cancel(ignored);
    self->end_after(kCancelAgain, operation);
  });
}

void HttpServer::Connection::join(std::list<Connection*>& list) {
  place_ = list.insert(list.end(), this);
  list_ = &list;
}

/// Gives back all that is counted.
void HttpServer::Connection::leave() {
  if (list_ != nullptr) list_->erase(place_);
  list_ = nullptr;
  state_->unread -= std::exchange(unread_, 0);
  state_->unsent -= std::exchange(unsent_, 0);
  share_ = {};
}

/// The server goes down: what is read or written now has little time left.
void HttpServer::Connection::hurry() {
  const Clock::time_point end = Clock::now() + kLastTime;
  body_until_ = std::min(body_until_, end);
  if (pending_ || !socket_.is_open() || timer_.expiry() <= end) return;
  end_after(kLastTime, operation_);
}

void HttpServer::Connection::close() {
  const std::shared_ptr<Connection> self = shared_from_this();
  leave();
  pending_.reset();
  if (!answered_) gone_.request_stop();
  error_code ignored;
  timer_.cancel();
  socket_.close(ignored);
}

void HttpServer::Connection::wait_for_request() {
  if (state_->draining) return close();
  // One byte may be the CR of an empty line; more were sent before the last answer.
  if (buffer_.size() > 1) return begin_request({});
  buffer_.shrink_to_fit();
  join(state_->idle);
  state_->accept(state_);
  socket_.async_wait(tcp::socket::wait_read,
                     within(state_->options.idle_time, &Connection::begin_request));
}

void HttpServer::Connection::begin_request(error_code error) {
  leave();
  if (!error && buffer_.size() <= 1)
    buffer_.commit(socket_.read_some(buffer_.prepare(kReadAtOnce), error));
  if (error == asio::error::would_block) return wait_for_request();
  if (error) return close();
  while (text_of(buffer_).starts_with("\r\n")) buffer_.consume(2);  // RFC 9112, section 2.2
  if (buffer_.size() == 0 || text_of(buffer_) == "\r") return wait_for_request();
  request_ = {};
  request_.client = client_;
  request_.local_host = state_->local_host;
  keep_alive_ = head_ = false;
  parser_.emplace();
  parser_->body_limit(state_->options.max_body);
  parser_->header_limit(static_cast<uint32_t>(state_->options.max_header));
  parser_->on_chunk_header(check_extensions_);
  head_until_ = Clock::now() + state_->options.head_time;
  read_head();
}

/// Parses what has come of the head, and waits for more until it is whole.
void HttpServer::Connection::read_head() {
  error_code error;
  const size_t used = parser_->put(buffer_.data(), error);
  const bool folded = has_folded_line(text_of(buffer_).substr(0, used));
  buffer_.consume(used);
  if (folded)
    return refuse(400, "a header continues on a second line; send each header on one line");
  if (error == http::error::need_more) {
    const auto left = std::chrono::duration_cast<milliseconds>(head_until_ - Clock::now());
    return socket_.async_wait(tcp::socket::wait_read, within(left, &Connection::more_of_head));
  }
  head_read(error);
}

void HttpServer::Connection::more_of_head(error_code error) {
  if (!error) buffer_.commit(socket_.read_some(buffer_.prepare(kReadAtOnce), error));
  if (error && error != asio::error::would_block) return head_read(error);
  read_head();
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
  if (size > state_->options.max_header) return refuse(http::error::header_limit);
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
  if (has_body && !state_->accepts(request_)) {
    keep_alive_ = false;
    return handle();
  }
  const bool waits = beast::iequals(message[http::field::expect], "100-continue");
  parser_->get().clear();  // of the fields, which take more memory than their bytes
  buffer_.shrink_to_fit();
  if (!waits || version_ < 11) return continued(error);
  asio::async_write(socket_, asio::buffer(kContinue),
                    within(state_->options.write_time, &Connection::continued));
}

void HttpServer::Connection::continued(error_code error) {
  if (error) return close();
  body_until_ = Clock::now() + (state_->draining ? kLastTime : state_->options.body_time);
  parser_->is_done() ? body_read({}) : read_body();
}

void HttpServer::Connection::read_body() {
  const auto left = std::chrono::duration_cast<milliseconds>(body_until_ - Clock::now());
  http::async_read_some(socket_, buffer_, *parser_, within(left, &Connection::body_read));
}

void HttpServer::Connection::body_read(error_code error) {
  if (error) return refuse(error);
  const auto size = static_cast<int64_t>(parser_->get().body().size());
  state_->unread += size - std::exchange(unread_, size);
  // One alone may be larger.
  if (state_->unread > state_->options.max_unread && state_->unread > unread_)
    return refuse(503, "the server is receiving too much; try again later");
  if (!parser_->is_done()) return read_body();
  leave();
  request_.body = std::move(parser_->get().body());
  handle();
}

/// Of a request that could not be read.
void HttpServer::Connection::refuse(error_code error) {
  const HttpOptions& options = state_->options;
  if (error == asio::error::timed_out) return refuse(408, "the request did not arrive in time");
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
  leave();
  keep_alive_ = false;
  request_.status = status;
  request_.problem = std::move(problem);
  handle();
}

void HttpServer::Connection::handle() {
  parser_.reset();
  answered_ = false;
  gone_ = {};
  pending_ = shared_from_this();
  HttpReply reply = [state = std::weak_ptr(state_), weak = weak_from_this(),
                     number = ++number_](HttpResponse response) {
    const std::shared_ptr<State> alive = state.lock();
    if (!alive) return;
    // What keeps a connection alive is held on the thread of run() alone.
    asio::post(alive->io, [weak, number, response = std::move(response)]() mutable {
      if (const auto self = weak.lock()) self->reply(number, std::move(response));
    });
  };
  if (request_.status == 0) watch();
  state_->handler(std::move(request_), std::move(reply), gone_.get_token());
}

/// Notices that the client closes the connection while its request is being answered.
void HttpServer::Connection::watch() {
  if (buffer_.size() >= kReadAhead) return watch_for_reset();
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this(), number = number_](error_code error) {
                       if (!error && self->waits_for(number)) self->watched();
                     });
}

void HttpServer::Connection::watched() {
  error_code problem;
  const size_t got = socket_.receive(buffer_.prepare(kReadAtOnce), 0, problem);
  buffer_.commit(got);  // the next request, already
  if (got > 0 || problem == asio::error::would_block) return watch();
  if (problem != asio::error::eof) return close();
  if (buffer_.size() == 0) keep_alive_ = false;
  if (version_ >= 11) socket_.send(asio::buffer(kContinue), 0, problem);
  watch_for_reset();
}

void HttpServer::Connection::watch_for_reset() {
  socket_.async_wait(tcp::socket::wait_error,
                     [self = shared_from_this(), number = number_](error_code error) {
                       if (!error && self->waits_for(number)) self->close();
                     });
}

void HttpServer::Connection::reply(uint64_t number, HttpResponse response) {
  if (!waits_for(number)) return;
  answered_ = true;
  pending_.reset();
  error_code ignored;
  socket_.cancel(ignored);  // what watches
  write(std::move(response), keep_alive_ && !state_->draining);
}

void HttpServer::Connection::write(HttpResponse response, bool keep_alive) {
  keep_alive_ = keep_alive;
  response_.emplace();
  response_->version(version_);
  response_->result(static_cast<unsigned>(response.status));
  response_->set(http::field::date, date());
  response_->set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) response_->set(name, value);
  response_->keep_alive(keep_alive);
  const size_t length = response.body.size();
  if (!head_) response_->body() = std::move(response.body);
  share_ = std::move(response.share);
  response_->content_length(length);
  unsent_ = static_cast<int64_t>(response_->body().size());
  state_->unsent += unsent_;
  join(state_->writing);
  while (state_->unsent > state_->options.max_unsent && state_->writing.front() != this)
    state_->writing.front()->close();
  serializer_.emplace(*response_);
  http::async_write(
      socket_, *serializer_,
      within(state_->draining ? kLastTime : state_->options.write_time, &Connection::written));
}

void HttpServer::Connection::written(error_code error) {
  leave();
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

}  // namespace infer
