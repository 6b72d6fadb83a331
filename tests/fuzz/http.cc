// Bytes of a connection to the HTTP server: whatever they are, the next client is answered.
#include "infer/serve/http.h"

#include <thread>

#include "tests/fuzz/fuzz.h"
#include "tests/serve/client.h"

namespace phasor::fuzz {
namespace {

infer::HttpOptions fuzzed_options() {
  using std::chrono::milliseconds;
  return {.port = 0,
          .max_body = 4096,
          .max_header = 1024,
          .head_time = milliseconds(200),
          .body_time = milliseconds(200),
          .write_time = milliseconds(200),
          .idle_time = milliseconds(200)};
}

/// Answers with the size of the body that came.
class Listening {
 public:
  Listening()
      : server_(
            fuzzed_options(),
            [](const infer::HttpRequest& request, const infer::HttpReply& reply, std::stop_token) {
              if (request.status != 0)
                reply({.status = request.status});
              else
                reply({.body = std::to_string(request.body.size())});
            },
            [](const infer::HttpRequest& request) { return request.path != "/refused"; }),
        thread_([this] { server_.run(); }) {}
  ~Listening() {
    server_.stop();
    thread_.join();
  }
  uint16_t port() const { return server_.port(); }

 private:
  infer::HttpServer server_;
  std::thread thread_;
};

void run_http(std::string_view bytes) {
  static const Listening server;
  infer::Client stranger(server.port());
  const size_t half = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]) % bytes.size();
  stranger.send(bytes.substr(0, half));
  stranger.send(bytes.substr(half));
  stranger.end();
  while (!stranger.is_closed()) continue;  // it reads what comes
  infer::Client next(server.port());
  next.send("POST", "/", "12345");
  require(next.receive().body == "5", "the next client gets its answer");
}

}  // namespace

Fuzzer http_fuzzer() {
  return {
      .name = "http",
      .run = run_http,
      .seeds = []() -> std::vector<std::string> {
        return {
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST /%41?b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
            "HEAD http://a/b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            "POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"};
      },
      .words = {"GET ",
                "POST ",
                "HEAD ",
                "OPTIONS ",
                " HTTP/1.1\r\n",
                " HTTP/1.0\r\n",
                "Host: a\r\n",
                "Content-Length: ",
                "Transfer-Encoding: chunked\r\n",
                "Connection: keep-alive\r\n",
                "Connection: close\r\n",
                "Expect: 100-continue\r\n",
                "Upgrade: h2c\r\n",
                "\r\n\r\n",
                "0\r\n\r\n",
                "ffffffffffffffff\r\n",
                "%00",
                "%2e%2e/",
                "18446744073709551616",
                "Content-Encoding: gzip\r\n",
                "Origin: null\r\n",
                "\r\n ",
                "http://[::1]/"}};
}

}  // namespace phasor::fuzz
