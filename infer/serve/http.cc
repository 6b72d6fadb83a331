#include "infer/serve/http.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/serve/connection.h"
#include "phasor/errors.h"

namespace infer {

void HttpServer::State::listen() {
  error_code error;
  tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, error);
  error_code lacking;  // a version of IP that this machine does not have
  uint16_t port = options.port;
  for (const auto& entry : found) {  // none where the name is unknown
    const asio::ip::address address = entry.endpoint().address();
    const auto is_open_at = [&](const Door& door) {
      return door.acceptor.local_endpoint().address() == address;
    };
    if (std::ranges::any_of(doors, is_open_at)) continue;
    tcp::acceptor acceptor(io);
    acceptor.open(entry.endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    // Else [::] is 0.0.0.0 as well, which is opened beside it where the name has both.
    if (!error && address.is_v6() && found.size() > 1)
      acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind({address, port}, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error == asio::error::address_family_not_supported ||
        error == boost::system::errc::address_not_available) {
      lacking = std::exchange(error, {});
      continue;
    }
    if (error) break;
    port = acceptor.local_endpoint().port();
    doors.push_back({std::move(acceptor)});
  }
  if (!error && doors.empty()) error = lacking;
  if (error) {
    throw phasor::InvalidArgument(fmt::format(
        "cannot listen on {}:{}: {}{}", options.host, options.port, error.message(),
        error == asio::error::address_in_use ? "; choose another --port, or 0 for any" : ""));
  }
  const bool is_local = std::ranges::all_of(doors, [](const Door& door) {
    return door.acceptor.local_endpoint().address().is_loopback();
  });
  if (is_local) local_host = options.host;
}

void HttpServer::State::accept(const std::shared_ptr<State>& self) {
  for (Door& door : doors) accept(self, door);
}

void HttpServer::State::accept(const std::shared_ptr<State>& self, Door& door) {
  static constexpr milliseconds kRetryAccept{100};  // where descriptors have run out
  if (door.accepting || !door.acceptor.is_open()) return;
  // Goes on when one has ended or is idle.
  if (std::ssize(connections) >= options.max_connections && idle.empty()) return;
  door.acceptor.async_accept([self, &door](error_code error, tcp::socket socket) {
    door.accepting = false;
    if (!door.acceptor.is_open()) return;
    const bool is_full = std::ssize(self->connections) >= self->options.max_connections;
    if (!self->idle.empty()) {
      // Without descriptors nobody may be waiting: one that has just come can send its request.
      Connection* const first = self->idle.front();
      if (is_full || (error && first->waited() >= kRetryAccept)) first->close();
    }
    if (!error) {
      std::make_shared<Connection>(self, std::move(socket))->begin();
      return self->accept(self, door);
    }
    self->retry.expires_after(kRetryAccept);
    self->retry.async_wait([self](error_code error) {
      if (!error) self->accept(self);
    });
  });
  door.accepting = true;
}

void HttpServer::State::drain() {
  draining = true;
  error_code ignored;
  for (Door& door : doors) door.acceptor.close(ignored);
  retry.cancel();
  while (!idle.empty()) idle.front()->close();
  for (Connection* const connection : connections) connection->hurry();
}

HttpServer::HttpServer(const HttpOptions& options, Handler handler, Accepts accepts)
    : state_(std::make_shared<State>(options, std::move(handler), std::move(accepts))) {
  state_->listen();
}

HttpServer::~HttpServer() {
  do {  // what has been read meanwhile is handled, and what has been cancelled holds the state
    drain();
    for (Connection* const connection : std::set(state_->connections)) connection->close();
    state_->io.restart();
    state_->io.poll();
  } while (!state_->connections.empty());
}

uint16_t HttpServer::port() const { return state_->doors.front().acceptor.local_endpoint().port(); }

bool HttpServer::is_loopback() const { return !state_->local_host.empty(); }

void HttpServer::run() {
  state_->accept(state_);
  state_->io.run();
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_] { state->drain(); });
}

void HttpServer::stop() { state_->io.stop(); }

}  // namespace infer
