// Bodies of requests to infer serve: every one has an answer, and none is the server's fault.
#include <future>

#include "tests/fuzz/fuzz.h"
#include "tests/serve/client.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
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
