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
#include "infer/serve/routes.h"
#include "infer/serve/service.h"

namespace infer {

using phasor::internal::json_object;
using phasor::internal::json_string;
using phasor::internal::JsonWriter;

constexpr MostTexts kMostTextsOfOpenAi = {2048};  // of a request; Cohere's as well

/// A request on its way, and its answer.
struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(Service& service, HttpRequest request, HttpReply reply, std::stop_token gone)
      : service(service),
        request(std::move(request)),
        reply(std::move(reply)),
        gone(std::move(gone)),
        share(std::move(this->request.share)) {
    if (this->request.id.empty()) this->request.id = service.next_id();
  }

  Service& service;
  HttpRequest request;
  HttpReply reply;
  std::stop_token gone;
  Clock::time_point start = Clock::now();
  const Route* route = nullptr;
  const Request* asked = nullptr;  // what the request may say
  std::string model_name;          // empty: none is asked
  int64_t texts = 0, tokens = 0;
  Budget::Share share;  // of its body, then of its texts, results and answer
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

  /// Answers as the route of this function.
  void as(void (Exchange::*handle)());

  /// The request's JSON, until run().
  const nlohmann::json& body();

  using Suits = std::function<bool(const ModelQueue&)>;
  /// The model that the request names; else the first that suits.
  ModelQueue& model(
      const Fields& fields, const Suits& suits = [](const ModelQueue&) { return true; }) const;
  /// The same; `otherwise` is said of one that cannot: "is no reranker".
  ModelQueue& model(const Fields& fields, bool (ModelQueue::*can)() const,
                    std::string_view otherwise) const;
  ModelQueue& model(const std::string& name) const;
  /// One that makes vectors of texts.
  ModelQueue& embedder(const Fields& fields) const;

  /// Counts so many bytes in all. Refuses the request where they are too many (413), or too many
  /// now (429).
  void take(int64_t bytes);

  /// Of this task, as the request says them; what is its own in `own`, where that is given.
  phasor::TextOptions options_of(const Fields& fields, const Task& task,
                                 const Fields* own = nullptr) const {
    return read_options(*asked, task.uses, fields, own == nullptr ? fields : *own);
  }

  /// The options and the `inputs` of such a request, which may say nothing else.
  Work work_of(const Fields& fields, const Task& task) const;

  using Then = std::function<void(const Columns&)>;
  /// Of `work`: its task, options and texts. What it may take is counted in `share`, the answer as
  /// well, which can be written with room for all of it.
  void run(ModelQueue& queue, Work work, Then then);

  /// "[…,…]": what `write` writes of each text.
  void answer_each(const std::function<void(JsonWriter&, int64_t text)>& write);
  /// Answers with the rows of each text in this part: [n, width].
  void run_rows(ModelQueue& queue, Work work, const char* part, int64_t width);
  /// A query and its documents.
  Work ranking(const ModelQueue& queue, const Fields& fields,
               std::vector<std::string> documents) const;

  // What routes() names.
  void get_health();
  void get_metrics();
  void get_models();
  void get_model();
  void get_info();
  void get_page();
  void get_openapi();
  void by_kind();
  void openai_embeddings();
  void embed();
  void embed_tokens();
  void embed_sparse();
  void embed_all();
  void predict();
  void predict_tokens();
  void rerank();
  void rerank_v1();
  void similarity();
  void tokenize();
  void observe();
};

/// What GET /info answers.
std::string info_json(std::span<const std::unique_ptr<ModelQueue>> models,
                      const ServiceOptions& options);

}  // namespace infer
