// Bytes of a connection to infer serve: they are answered if they are a request, and in any case
// the next client is. Bodies of requests: every one has an answer, and none is the server's fault.
#include <charconv>
#include <future>

#include "infer/serve/routes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/serve/client.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

/// The status of the first answer; 0 where there is none. "100 Continue" may come before it.
int status_of(std::string_view answer) {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  while (answer.starts_with(kContinue)) answer.remove_prefix(kContinue.size());
  if (answer.empty()) return 0;
  const bool known = answer.starts_with("HTTP/1.1 ") || answer.starts_with("HTTP/1.0 ");
  int status = 0;
  const char* const digits = answer.data() + std::min<size_t>(answer.size(), 9);
  const auto end = std::from_chars(digits, answer.data() + answer.size(), status).ptr;
  require(known && end == digits + 3 && end != answer.data() + answer.size() && *end == ' ',
          "an answer begins with a status line");
  return status;
}

bool run_http(std::string_view bytes) {
  static const infer::Server server({.models = {{"small", BertFolder({}).path()}},
                                     .service = {.keys = {"key"}, .hosts = {"ours"}},
                                     .http = {.max_body = 4096, .max_header = 1024}});
  infer::Client stranger(server.port());
  const size_t half = bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]) % bytes.size();
  stranger.send(bytes.substr(0, half));
  stranger.send(bytes.substr(half));
  constexpr std::string_view kKey = "Authorization: Bearer key\r\n";
  infer::Client next(server.port());
  infer::Answer metrics;
  do {
    next.send("GET", "/metrics", {}, kKey);
    metrics = next.receive();
    require(metrics.status == 200, "the next client gets its answer");
  } while (metrics.body.find("phasor_queue_requests{model=\"small\"} 0\n") == std::string::npos);
  next.send("POST", "/embed", R"({"inputs": "a"})", kKey);
  require(next.receive().status == 200, "the next client gets its vector");
  // Which was made behind the stranger's: if the stranger's request has an end, it is answered.
  stranger.end();
  const int status = status_of(stranger.rest());
  // Nothing is answered where a request has no end. No model is being loaded, and no queue is full.
  require(status == 0 || (status >= 200 && status < 500 && status != 424),
          "an answer puts no blame on the server");
  return status == 200;
}

constexpr std::string_view kAuthorized = "Host: a\r\nAuthorization: bearer key\r\n";

std::string request(std::string_view line, std::string_view headers, std::string_view body = {}) {
  return fmt::format(
      "{} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key\r\nContent-Length: {}\r\n"
      "{}\r\n{}",
      line, body.size(), headers, body);
}

std::vector<std::string> http_seeds() {
  constexpr std::string_view kBody = R"({"inputs": "a b"})";
  return {
      "GET /health HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\nOrigin: http://127.0.0.1\r\n\r\n",
      "GET /ping HTTP/1.0\r\n\r\n",
      "HEAD http://a/health?b HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
      request("GET /v1/mod%65ls?a=b", "Origin: http://localhost\r\n"),
      request("GET /v1/models/small", ""),
      request("GET http://[::1]:80/info",
              "Origin: http://[::1]\r\nSec-Fetch-Site: same-origin\r\n"),
      request("GET http://Ours./metrics", "Origin: http://ours\r\n"),
      request("POST /embed", "Content-Type: application/json\r\n", kBody) +
          request("POST /tokenize", "Content-Encoding: identity\r\n", kBody) +
          "GET /health HTTP/1.0\r\n\r\n",
      fmt::format("POST /embed HTTP/1.1\r\n{}Transfer-Encoding: chunked\r\n\r\n{:x};a=b\r\n{}\r\n"
                  "0\r\nTrailer: a\r\n\r\n",
                  kAuthorized, kBody.size(), kBody),
      request("POST /embed", "Expect: 100-continue\r\n", kBody),
      request("POST /embed", "", R"({"inputs": "\ud83d\\ude00 \ud83d\ude00"})")};
}

}  // namespace

Fuzzer http_fuzzer() {
  return {.name = "http",
          .run = run_http,
          .seeds = http_seeds,
          .words = words(R"(
GET\s POST\s HEAD\s OPTIONS\s \sHTTP/1.1\r\n \sHTTP/1.0\r\n Host:\sa\r\n Content-Length:\s
Transfer-Encoding:\schunked\r\n Connection:\skeep-alive\r\n Connection:\sclose\r\n
Expect:\s100-continue\r\n Upgrade:\sh2c\r\n \r\n\r\n 0\r\n\r\n ffffffffffffffff\r\n %00 %2e%2e/
18446744073709551616 Content-Encoding:\sgzip\r\n Origin:\snull\r\n \r\n\s http://[::1]/
Host:\sours\r\n Origin:\shttp://a\r\n Sec-Fetch-Site:\scross-site\r\n
Authorization:\sBearer\skey\r\n /v1/models/ /health /metrics /info ?)"),
          // Without a key; another site's page; no such path or method; coded; of no clear length.
          .refused = {"GET /info HTTP/1.1\r\nHost: a\r\n\r\n",
                      "GET /health HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n\r\n",
                      request("GET /info", "Sec-Fetch-Site: cross-site\r\n"),
                      request("GET /info", "X: a\r\n b\r\n"), request("GET /nowhere", ""),
                      request("DELETE /embed", ""),
                      request("POST /embed", "Content-Encoding: gzip\r\n", "{}"),
                      request("POST /embed", "Transfer-Encoding: chunked\r\n", "{}"),
                      fmt::format("POST /embed HTTP/1.1\r\n{}\r\n", kAuthorized),
                      "POST /embed HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"}};
}

namespace {

/// A model of each kind.
infer::Service& served() {
  static const auto server = [] {
    const BertFolder vectors({}), labels({"yes", "no"}), ranks({"relevant"}), spans({"O"}, 1, true);
    const SparseFolder sparse(json{{"pooling_strategy", "max"}});
    const TokenVectorFolder tokens;
    vectors.write("config_sentence_transformers.json", R"({"prompts": {"query": "a: "}})");
    return std::make_unique<infer::Server>(infer::Given{.models = {{"vectors", vectors.path()},
                                                                   {"labels", labels.path()},
                                                                   {"ranks", ranks.path()},
                                                                   {"spans", spans.path()},
                                                                   {"sparse", sparse.path()},
                                                                   {"tokens", tokens.path()}}});
  }();
  return server->service();
}

int status_of(infer::HttpRequest request) {
  std::promise<int> status;
  served().serve(std::move(request),
                 [&](const infer::HttpResponse& response) { status.set_value(response.status); },
                 {});
  return status.get_future().get();
}

/// Where bodies are sent.
const std::vector<std::string_view>& paths() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> posts;
    for (const infer::Route& route : infer::routes())
      if (route.method == "POST") posts.push_back(route.paths[0]);
    return posts;
  }();
  return all;
}

/// Of a path, by its number, and a body.
bool run_server(std::string_view bytes) {
  if (bytes.empty()) return false;
  infer::HttpRequest request;
  request.method = "POST";
  request.path = paths()[static_cast<uint8_t>(bytes[0]) % paths().size()];
  request.content_type = "application/json";
  request.has_length = true;
  request.body = bytes.substr(1);
  const int status = status_of(std::move(request));
  require(status >= 200 && status < 500 && status != 424, "an answer puts no blame on the server");
  return status == 200;
}

std::string sent_to(std::string_view path, std::string_view body) {
  const auto number = std::ranges::find(paths(), path) - paths().begin();
  return std::string(1, static_cast<char>(number)).append(body);
}

std::vector<std::string> server_seeds() {
  std::vector<std::string> inputs = {
      sent_to("/embed", R"({"inputs": "a", "truncation_direction": "left", "truncate": true})"),
      sent_to("/predict", R"({"inputs": [["a", "b"]], "raw_scores": true})"),
      sent_to("/v1/rerank", R"({"query": "a", "documents": ["b", {"text": "c"}], "top_n": 1})"),
      sent_to("/observe", R"({"model": "vectors", "texts": ["a b"], "positions": "sinusoidal",
"edits": ["reverse"], "cut_residuals": ["1.mlp"]})")};
  for (const infer::Route& route : infer::routes())
    for (const std::string_view path : route.paths)
      if (!route.request.schema.empty() && std::ranges::count(paths(), path) > 0)
        inputs.push_back(sent_to(path, route.request.example));
  return inputs;
}

/// Of the format, and the names of what requests and answers may say.
std::vector<std::string> server_words() {
  std::vector<std::string> all = words(R"(
null true -1 9223372036854775807 \\u0000 \\ud800 \xff "query" "base64" "ubinary" "Left" "none")");
  const json document = json::parse(infer::openapi_json());
  for (const json& schema : document.at("components").at("schemas")) {
    const json flat = schema.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      const size_t at = pointer.rfind("/properties/");
      if (at == pointer.npos) continue;
      const size_t begin = at + 12;  // behind "/properties/"
      all.push_back(json(pointer.substr(begin, pointer.find('/', begin) - begin)).dump());
    }
  }
  return all;
}

}  // namespace

Fuzzer server_fuzzer() {
  return {.name = "server",
          .run = run_server,
          .seeds = server_seeds,
          .words = server_words(),
          // Token ids; no model of this name.
          .refused = {sent_to("/v1/embeddings", R"({"input": [[5, 7]]})"),
                      sent_to("/embed", R"({"inputs": "a", "model": "none"})")}};
}

}  // namespace phasor::fuzz
