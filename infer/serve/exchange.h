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
  int64_t room = 0;     // bytes of the answer that it has
  // Of a POST, until run():
  std::optional<phasor::internal::JsonDocument> body;
  std::optional<Fields> fields;

  void answer(HttpResponse response);
  void answer(std::string text) { answer(HttpResponse{.body = std::move(text)}); }
  void answer_copy(const std::string& text) {
    take(std::ssize(text));
    answer(text);
  }

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

  using Suits = std::function<bool(const ModelQueue&)>;
  /// The model that the request names; else the first that suits.
  ModelQueue& model(const Suits& suits = [](const ModelQueue&) { return true; }) const;
  /// The same; `otherwise` is said of one that cannot: "is no reranker".
  ModelQueue& model(bool (ModelQueue::*can)() const, std::string_view otherwise) const;
  ModelQueue& model(const std::string& name) const;
  /// One that makes vectors of texts.
  ModelQueue& embedder() const;

  /// The request has so many bytes from now on: of its texts, results and answer. Refuses it where
  /// they are too many (413), or too many now (429).
  void take(int64_t bytes);

  /// Of this task, as the request says them; what is its own in `own`, where that is given.
  phasor::TextOptions options_of(const Task& task, const Fields* own = nullptr) const {
    return read_options(*asked, task.uses, *fields, own == nullptr ? *fields : *own);
  }

  /// The options and the `inputs` of such a request, which may say nothing else.
  Work work_of(const Task& task) const;

  /// All of it: so many texts for this model. Its body goes.
  void has_read(const ModelQueue& queue, size_t num_texts);

  using Write = std::function<void(JsonWriter&, const Columns&, const Work&)>;
  /// Of `work`: its task, options and texts. `write` writes the answer when they have been run.
  void run(ModelQueue& queue, Work work, Write write);

  /// "[…,…]": what `write` writes of 0, 1, … n - 1. The answer gets more room where it needs that.
  void write_each(JsonWriter& json, int64_t n, const std::function<void(int64_t i)>& write);
  /// For more bytes of the answer; throws as take() does.
  void add_room(int64_t bytes) {
    take(share.bytes() + bytes);
    room += bytes;
  }
  /// Answers with the rows of each text in this array: [n, width].
  void run_rows(ModelQueue& queue, Work work, const char* array, size_t width);
  /// Runs the pairs of the query and each document. `write` gets their scores, and their numbers,
  /// the best first.
  using WriteRanks = std::function<void(JsonWriter&, std::span<const float> scores,
                                        std::span<const size_t> order, const Work&)>;
  void rank(std::vector<std::string> documents, bool raw, WriteRanks write);

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

/// The page; where `asks_key`, its reader is asked for one.
std::string live_page(std::span<const std::unique_ptr<ModelQueue>> models, bool asks_key);

/// What GET /info answers.
std::string info_json(std::span<const std::unique_ptr<ModelQueue>> models,
                      const ServiceOptions& options);

}  // namespace infer
