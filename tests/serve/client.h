// A server of infer serve on a free port, and clients of it that are careful or careless.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "infer/serve/service.h"
#include "tests/support/test.h"

namespace infer {

using Json = nlohmann::json;
using namespace std::chrono_literals;
using phasor::bundled_model;

struct Answer {
  int status = 0;  // 0: the connection ended
  std::string head, body;

  Json json() const { return Json::parse(body); }
};

/// A connection, and what a careful or careless client does with it.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* const at = reinterpret_cast<const sockaddr*>(&address);
    connected_ = ::connect(socket_, at, sizeof address) == 0;
    const timeval limit{.tv_sec = 240, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  /// Sends no more, but reads.
  void end() const { shutdown(socket_, SHUT_WR); }
  /// Closes with a reset, as the system does for a program that ends with unread bytes.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  void send(std::string_view method, std::string_view path, std::string_view body = {},
            std::string_view headers = {}) {
    send(fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{}", method,
                     path, body.size(), headers, body));
  }

  Answer receive(bool has_body = true) {
    Answer answer;
    while (received_.find("\r\n\r\n") == std::string::npos)
      if (!more()) return answer;
    const size_t end = received_.find("\r\n\r\n") + 4;
    answer.head = received_.substr(0, end);
    received_.erase(0, end);
    answer.status = std::stoi(answer.head.substr(9, 3));
    if (answer.status == 100 && has_body) return receive();  // which may always be sent
    const size_t length = answer.head.find("Content-Length: ");
    if (!has_body || length == std::string::npos) return answer;
    const size_t size = std::stoul(answer.head.substr(length + 16));
    while (received_.size() < size)
      if (!more()) return {};
    answer.body = received_.substr(0, size);
    received_.erase(0, size);
    return answer;
  }
  /// All that comes before the server ends the connection.
  std::string rest() {
    while (more()) continue;
    return std::exchange(received_, {});
  }
  /// Whether the server ends the connection, and sends nothing before.
  bool is_closed(int flags = 0) {
    char byte;
    const ssize_t got = received_.empty() ? recv(socket_, &byte, 1, flags) : 1;
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  bool more() {
    char bytes[4096];
    const ssize_t got = recv(socket_, bytes, sizeof bytes, 0);
    if (got > 0) received_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }

  int socket_;
  bool connected_ = false;
  std::string received_;
};

/// A number of /metrics; 0 where it has none of this name.
inline double metric(uint16_t port, const std::string& name) {
  Client client(port);
  client.send("GET", "/metrics");
  const std::string text = client.receive().body, line = "\n" + name + " ";
  const size_t at = text.find(line);
  return at == std::string::npos ? 0 : std::stod(text.substr(at + line.size()));
}

struct Given {
  std::vector<std::pair<std::string, std::string>> models = {
      {"sinusoidal", bundled_model("sinusoidal").string()}};
  ServiceOptions service = {};
  HttpOptions http = {};
  bool ready = true;
};

/// A server on a port that was free.
class Server {
 public:
  explicit Server(const Given& given = {})
      : service_(given.service, metrics_),
        http_(
            http_options(given), service_.budget(),
            [this](auto&&... request) { service_.serve(std::move(request)...); },
            [this](const HttpRequest& request) { return service_.accepts(request); }) {
    for (const auto& [name, folder] : given.models) {
      service_.add_model(std::make_unique<ModelQueue>(name, phasor::Model::load(folder),
                                                      phasor::EncoderOptions{.threads = 2},
                                                      given.service.queue, metrics_));
    }
    if (given.ready) service_.ready();
    port_ = http_.port();
    thread_ = std::thread([this] { http_.run(); });
  }
  ~Server() {
    if (!thread_.joinable()) return;
    http_.stop();
    thread_.join();
  }

  uint16_t port() const { return port_; }
  Service& service() { return service_; }
  void drain() {
    service_.drain();
    http_.drain();
  }
  void join() { thread_.join(); }

  Answer post(std::string_view path, const Json& body, std::string_view headers = {}) const {
    return post_text(path, body.dump(), headers);
  }
  Answer post_text(std::string_view path, std::string_view body,
                   std::string_view headers = {}) const {
    Client client(port_);
    client.send("POST", path, body, headers);
    return client.receive();
  }
  Answer get(std::string_view path, std::string_view headers = {}) const {
    Client client(port_);
    client.send("GET", path, {}, headers);
    return client.receive();
  }
  double metric(const std::string& name) const { return infer::metric(port_, name); }

 private:
  static HttpOptions http_options(const Given& given) {
    HttpOptions options = given.http;
    options.port = 0;
    return options;
  }

  Metrics metrics_;
  Service service_;
  HttpServer http_;
  uint16_t port_ = 0;
  std::thread thread_;
};

inline const std::vector<std::string> kTexts = {"Tom bit a dog.", "It rained. We stayed at home!",
                                                "Hello"};

/// The library's own, of a bundled model.
inline std::vector<std::vector<float>> vectors(const std::string& model, bool normalize,
                                               const std::vector<std::string>& texts = kTexts) {
  phasor::Encoder encoder(phasor::Model::load(bundled_model(model)));
  const phasor::Vectors embeddings = encoder.embed(texts, {.normalize = normalize});
  std::vector<std::vector<float>> all;
  for (int64_t i = 0; i < embeddings.size(); ++i)
    all.emplace_back(embeddings[i].begin(), embeddings[i].end());
  return all;
}

/// The float32 nearest to each number of a list.
inline std::vector<float> floats(const Json& list) {
  std::vector<float> all;
  for (const Json& number : list) all.push_back(number.get<float>());
  return all;
}

/// Whether a list of lists has these rows, to the last bit.
inline bool are(const Json& lists, const std::vector<std::vector<float>>& rows) {
  return std::ranges::equal(lists, rows,
                            [](const Json& list, const auto& row) { return floats(list) == row; });
}

/// Expects a status, and words in the message that an error of the route's shape has.
inline void expect_refused(const Server& server, const std::string& path, const std::string& body,
                           int status, const std::string& words, std::string_view headers = {}) {
  SCOPED_TRACE(path + " " + body.substr(0, 80));
  const Answer answer = server.post_text(path, body, headers);
  EXPECT_EQ(answer.status, status);
  const Json json = answer.json();
  const bool openai = path.starts_with("/v1/");
  EXPECT_TRUE(openai ? json["error"]["type"].is_string() : json["error_type"].is_string());
  const std::string said = openai ? json["error"]["message"] : json["error"];
  EXPECT_NE(said.find(words), std::string::npos) << said;
}

/// A request that keeps the engine busy for a while: `count` texts, each cut to 128 tokens.
inline Json long_request(int count = 32) {
  const std::string text = "Tom" + phasor::repeat(" dog", 1500);
  return {{"inputs", std::vector<std::string>(count, text)}};
}

}  // namespace infer
