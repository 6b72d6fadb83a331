// A request on its way to a model, and its answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "files/files.h"
#include "files/json_writer.h"
#include "infer/serve/fields.h"
#include "infer/serve/http.h"
#include "infer/serve/queue.h"
#include "infer/serve/service.h"
#include "infer/serve/text_fields.h"

namespace infer {

using phasor::internal::json_object;
using phasor::internal::json_string;
using phasor::internal::JsonWriter;

constexpr int64_t kNumberBytes = 16;  // a float32 below 1e12 in JSON, and a comma
constexpr int64_t kCharBytes = 6;     // the longest escape of a byte in JSON

/// "GET, HEAD, POST": what may be sent to a path.
std::string methods_at(std::string_view path);

constexpr MostTexts kMostTextsOfOpenAi = {2048};  // of a request; Cohere's as well

struct Exchange;

/// What is served at a path. One that ends with "/" takes what begins with it.
struct Route {
  std::string_view method, path;
  void (Exchange::*handle)();
  std::string_view summary;
  std::string_view answer, request = {};  // schemas of openapi_json()
  bool openai = false;                    // errors have OpenAI's shape
  bool open = false;                      // needs no key
  bool json_alone = false;                // its body's type must be application/json
};

/// A request on its way, and its answer.
struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(Service& service, HttpRequest request, HttpReply reply, std::stop_token gone)
      : service(service),
        request(std::move(request)),
        reply(std::move(reply)),
        gone(std::move(gone)) {
    if (this->request.id.empty()) this->request.id = service.next_id();
  }

  Service& service;
  HttpRequest request;
  HttpReply reply;
  std::stop_token gone;
  Clock::time_point start = Clock::now();
  const Route* route = nullptr;
  std::string model_name;  // empty: none is asked
  int64_t texts = 0, tokens = 0;
  Budget::Share share;                                 // of its texts, results and answer
  std::optional<phasor::internal::JsonDocument> json;  // of body()

  void answer(HttpResponse response);
  void answer(std::string body) { answer(HttpResponse{.body = std::move(body)}); }

  void fail(const Failure& failure);

  /// Runs `step`, and fails with what it throws.
  template <typename Step>
  void attempt(const Step& step) {
    try {
      step();
    } catch (...) {
      fail(failure_of(std::current_exception()));
    }
  }

  /// The request's JSON, until run().
  const nlohmann::json& body();

  using Suits = std::function<bool(const ModelQueue&)>;
  /// The model that the request names; else the first that suits.
  ModelQueue& model(
      const Fields& fields, const Suits& suits = [](const ModelQueue&) { return true; }) const;
  ModelQueue& model(const std::string& name) const;
  /// One that makes vectors of texts.
  ModelQueue& embedder(const Fields& fields) const;
  ModelQueue& classifier(const Fields& fields) const;
  ModelQueue& reranker(const Fields& fields) const;
  ModelQueue& token_classifier(const Fields& fields) const;

  /// Counts so many bytes in all, those of the answer among them. Refuses the request where they
  /// are too many (413), or too many now (429).
  void take(int64_t bytes, int64_t answer_bytes);

  using Then = std::function<void(const Columns&)>;
  /// Of `work`: its task, options and texts. `answer_bytes`: the most that the answer may have.
  void run(ModelQueue& queue, Work work, int64_t answer_bytes, Then then);

  void get_health() { answer(std::string("{\"status\":\"ok\"}")); }
  void get_metrics();
  void get_models();
  void get_model();
  void get_info();
  void by_kind();
  void openai_embeddings();
  void embed() { embed_kind("dense"); }
  /// As /embed: a vector of each text, or of each token; `otherwise` where the body names no kind.
  void embed_kind(const char* otherwise);
  void embed_sparse();
  void embed_all();
  /// "[…,…]": what `write` writes of each text, of `bytes_of` it at most.
  void answer_each(const Columns& results, const std::function<int64_t(int64_t text)>& bytes_of,
                   const std::function<void(JsonWriter&, int64_t text)>& write);
  void embed_tokens(const Fields& fields);
  /// Answers with the rows of each text in this part: [n, width].
  void run_rows(ModelQueue& queue, Work work, const char* part, int64_t width);
  void predict();
  void predict_tokens();
  void rerank();
  void rerank_v1();
  void similarity();
  void tokenize();
  void get_page();
  void get_openapi();
  void observe();
};

/// What GET /info answers.
std::string info_json(std::span<const std::unique_ptr<ModelQueue>> models,
                      const ServiceOptions& options);

/// What GET /openapi.json answers: OpenAPI 3.1.
std::string openapi_json(std::span<const Route> routes);

}  // namespace infer
