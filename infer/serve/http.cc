#include "infer/serve/http.h"

#include <fmt/format.h>

#include <new>
#include <thread>

#include "infer/serve/connection.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr milliseconds kRetryAccept{100};  // where descriptors have run out
constexpr milliseconds kMemoryPause{1};    // where memory has

}  // namespace

void HttpServer::State::accept(const std::shared_ptr<State>& self) {
  if (accepting || !acceptor.is_open()) return;
  // Goes on when one has ended or is idle.
  if (std::ssize(connections) >= options.max_connections && idle.empty()) return;
  acceptor.async_accept([self](error_code error, tcp::socket socket) {
    self->accepting = false;
    if (!self->acceptor.is_open()) return;
    const bool is_full = std::ssize(self->connections) >= self->options.max_connections;
    if (!self->idle.empty()) {
      // Without descriptors nobody may be waiting: one that has just come can send its request.
      Connection* const first = self->idle.front();
      if (is_full || (error && first->waited() >= kRetryAccept)) first->close();
    }
    if (!error) {
      self->accept(self);  // first, for there may be no memory for this one
      std::make_shared<Connection>(self, std::move(socket))->begin();
      return;
    }
    self->retry.expires_after(kRetryAccept);
    self->retry.async_wait([self](error_code error) {
      if (!error) self->accept(self);
    });
  });
  accepting = true;  // it has not thrown
}

void HttpServer::State::stop() {
  stopped = true;
  io.stop();
}

void HttpServer::State::drain() {
  draining = true;
  error_code ignored;
  acceptor.close(ignored);
  retry.cancel();
  while (!idle.empty()) idle.front()->close();
  for (Connection* const connection : connections) connection->hurry();
}

HttpServer::HttpServer(const HttpOptions& options, Handler handler, Accepts accepts)
    : state_(std::make_shared<State>(options, std::move(handler), std::move(accepts))) {
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
  do {  // what has been read meanwhile is handled, and what has been cancelled holds the state
    drain();
    for (Connection* const connection : std::set(state_->connections)) connection->close();
    state_->io.restart();
    state_->io.poll();
  } while (!state_->connections.empty());
}

uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run() {
  while (!state_->stopped) {
    try {
      state_->accept(state_);
      state_->io.run();
      if (!state_->acceptor.is_open()) return;  // drained
      state_->io.restart();
    } catch (const std::bad_alloc&) {  // the connection that asked for it has ended
      std::this_thread::sleep_for(kMemoryPause);
    }
  }
}

void HttpServer::drain() {
  try {
    asio::post(state_->io, [state = state_] {
      try {
        state->drain();
      } catch (const std::bad_alloc&) {
        state->stop();
      }
    });
  } catch (const std::bad_alloc&) {
    stop();
  }
}

void HttpServer::stop() { state_->stop(); }

std::string_view reason_of(int status) {
  const beast::string_view reason = http::obsolete_reason(static_cast<http::status>(status));
  return {reason.data(), reason.size()};
}

}  // namespace infer
