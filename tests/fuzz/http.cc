// Bytes of a connection to infer serve: they are answered if they are a request, and whatever they
// are, the next client is answered. Bodies of requests: every one has an answer, and none is the
// server's fault.
#include <charconv>
#include <future>

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
  stranger.end();
  const int status = status_of(stranger.rest());
  // Nothing is answered where a request has no end. No model is being loaded, and no queue is full.
  require(status == 0 || (status >= 200 && status < 500 && status != 424),
          "an answer puts no blame on the server");
  infer::Client next(server.port());
  next.send("GET", "/health");
  require(next.receive().status == 200, "the next client gets its answer");
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
          // Without a key; another site's page; no such path or method; coded; of no clear length
          // or none.
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

constexpr const char* kPaths[] = {
    "/v1/embeddings", "/embed",      "/embed_all", "/predict", "/rerank",
    "/v1/rerank",     "/similarity", "/tokenize",  "/",        "/observe"};

/// An embedder, a classifier and a reranker.
infer::Service& served() {
  static const auto server = [] {
    const BertFolder vectors({}), labels({"yes", "no"}), ranks({"relevant"});
    vectors.folder().write("config_sentence_transformers.json", R"({"prompts": {"query": "a: "}})");
    return std::make_unique<infer::Server>(infer::Given{.models = {{"vectors", vectors.path()},
                                                                   {"labels", labels.path()},
                                                                   {"ranks", ranks.path()}}});
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

bool run_server(std::string_view bytes) {
  if (bytes.empty()) return false;
  infer::HttpRequest request;
  request.method = "POST";
  request.path = kPaths[static_cast<uint8_t>(bytes[0]) % std::size(kPaths)];
  request.content_type = "application/json";
  request.has_length = true;
  request.body = bytes.substr(1);
  const int status = status_of(std::move(request));
  require(status >= 200 && status < 500 && status != 424, "an answer puts no blame on the server");
  return status == 200;
}

std::vector<std::string> server_seeds() {
  const std::pair<char, const char*> bodies[] = {
      {'\0', R"({"input": ["a b", "c"], "model": "vectors", "encoding_format": "base64"})"},
      {'\0', R"({"input": "a", "dimensions": 5, "user": "u"})"},
      {'\1', R"({"inputs": "a b", "truncate": true, "normalize": false, "prompt_name": "query"})"},
      {'\1', R"({"inputs": "a", "kind": "dense", "dimensions": 3})"},
      {'\2', R"({"inputs": ["a", "b c"], "truncation_direction": "Right"})"},
      {'\3', R"({"inputs": [["a", "b"]], "raw_scores": true})"},
      {'\4', R"({"query": "a", "texts": ["b", "c"], "return_text": true})"},
      {'\5', R"({"model": "ranks", "query": "a", "documents": ["b", {"text": "c"}], "top_n": 1})"},
      {'\6', R"({"inputs": {"source_sentence": "a", "sentences": ["b", "c"]}})"},
      {'\7', R"({"inputs": "a b", "add_special_tokens": false})"},
      {'\x9', R"({"model": "vectors", "texts": ["a b"], "positions": "sinusoidal",
"edits": ["reverse"], "cut_residuals": ["1.mlp"]})"}};
  std::vector<std::string> inputs;
  for (const auto& [path, body] : bodies) inputs.push_back(std::string(1, path) + body);
  return inputs;
}

}  // namespace

Fuzzer server_fuzzer() {
  return {.name = "server",
          .run = run_server,
          .seeds = server_seeds,
          .words = words(R"(
"input" "inputs" "texts" "query" "documents" "model" "truncate" "normalize" "encoding_format"
"dimensions" "kind" "tokens" "top_n" "return_documents" "raw_scores" "source_sentence" "sentences" "text"
"positions" "edits" "cut_residual" "overflow" "baseline" "only" null true -1 9223372036854775807
\\u0000 \\ud800 \xff)"),
          // Token ids; no model of this name.
          .refused = {std::string("\0{\"input\": [[5, 7]]}", 20),
                      "\1{\"inputs\": \"a\", \"model\": \"none\"}"}};
}

}  // namespace phasor::fuzz
