#include "infer/serve/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "infer/cli/input.h"
#include "infer/render/page.h"
#include "models/files.h"
#include "phasor/errors.h"
#include "phasor/version.h"

namespace infer {

using Json = nlohmann::ordered_json;
using Task = RunKind::Task;

namespace {

constexpr int64_t kMostTextsOfOpenAi = 2048;
constexpr int64_t kMostObservedBytes = 10'000;  // of a text
constexpr int64_t kMostInterventions = 32;

/// Ends a request.
struct Refusal {
  Failure failure;
};
[[noreturn]] void refuse(int status, const char* type, const std::string& message) {
  throw Refusal{{status, type, message}};
}
[[noreturn]] void invalid(const std::string& message) { refuse(422, "Validation", message); }
[[noreturn]] void empty(const std::string& message) { refuse(400, "Empty", message); }

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// "[0.1,-2]": the shortest digits that give the same float32.
void append(std::string& text, std::span<const float> values) {
  text += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    fmt::format_to(std::back_inserter(text), "{}", values[i]);
  }
  text += ']';
}

int64_t sum_of_tokens(const std::vector<TextResult>& results) {
  return std::accumulate(
      results.begin(), results.end(), int64_t{0},
      [](int64_t sum, const TextResult& result) { return sum + result.num_tokens; });
}

/// The fields of a request's JSON.
class Fields {
 public:
  explicit Fields(const nlohmann::json& json, const char* name = "the body") : json_(json) {
    if (!json.is_object()) invalid(fmt::format("{} must be a JSON object", name));
  }

  /// Null where it is missing or null.
  const nlohmann::json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  const nlohmann::json& at(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) invalid(fmt::format("`{}` is missing", key));
    return *value;
  }
  bool flag(const char* key, bool otherwise) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) invalid(fmt::format("`{}` must be true or false", key));
    return value->get<bool>();
  }
  std::string text(const char* key, const char* otherwise) const {
    const nlohmann::json* const value = find(key);
    return value == nullptr ? otherwise : string_of(*value, key);
  }
  /// 0 where it is missing.
  int64_t count(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number_integer() || *value < 1 || *value > 1'000'000'000)
      invalid(fmt::format("`{}` must be a whole number above 0", key));
    return value->get<int64_t>();
  }
  /// A string that is not empty.
  std::string text(const char* key) const {
    std::string text = string_of(at(key), key);
    if (text.empty()) empty(fmt::format("`{}` is empty", key));
    return text;
  }
  static std::string string_of(const nlohmann::json& value, const char* key) {
    if (!value.is_string()) invalid(fmt::format("`{}` must be a string", key));
    return value.get<std::string>();
  }
  /// A string, or a list of them; none is empty.
  std::vector<std::string> texts(const char* key, int64_t most) const {
    const nlohmann::json& value = at(key);
    if (value.is_string()) return checked({value.get<std::string>()}, key, most);
    if (!value.is_array()) invalid(fmt::format("`{}` must be a string or a list of strings", key));
    std::vector<std::string> texts;
    for (const nlohmann::json& item : value) {
      if (texts.empty() && (item.is_number() || item.is_array())) {
        invalid(fmt::format(
            "`{}` holds token ids; ids of another vocabulary would be read as "
            "other words, so send text (in LangChain: check_embedding_ctx_length=False)",
            key));
      }
      texts.push_back(string_of(item, key));
    }
    return checked(std::move(texts), key, most);
  }

  /// The same, but may be missing or empty.
  std::vector<std::string> list(const char* key, int64_t most) const {
    const nlohmann::json* const value = find(key);
    const bool none = value == nullptr || (value->is_array() && value->empty());
    return none ? std::vector<std::string>() : texts(key, most);
  }

  static std::vector<std::string> checked(std::vector<std::string> texts, const char* key,
                                          int64_t most) {
    if (texts.empty()) empty(fmt::format("`{}` is empty", key));
    if (std::ranges::any_of(texts, &std::string::empty))
      empty(fmt::format("`{}` holds an empty text", key));
    if (std::ssize(texts) > most) {
      refuse(413, "Validation",
             fmt::format("`{}` has {} texts; a request may have {}{}", key, texts.size(), most,
                         most == kMostTextsOfOpenAi ? "" : " (--max-texts)"));
    }
    return texts;
  }

 private:
  const nlohmann::json& json_;
};

float cosine_of(const TextResult& a, const TextResult& b) {
  return static_cast<float>(phasor::cosine(a.values, b.values));
}

/// Indices from the largest number to the smallest.
std::vector<size_t> best_first(std::span<const float> numbers) {
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return numbers[i]; });
  return order;
}

/// How many of a vector's numbers are asked for: all of them, or `dimensions`.
int64_t dimensions_of(const Fields& fields, const ModelQueue& queue) {
  const int64_t dimensions = fields.count("dimensions");
  if (dimensions > queue.vector_width())
    invalid(fmt::format("`dimensions` is {}; the model's vectors have {}", dimensions,
                        queue.vector_width()));
  return dimensions == 0 ? queue.vector_width() : dimensions;
}

/// The first `dimensions` columns, again of length 1 where the whole had that.
void cut(std::vector<TextResult>& results, int64_t dimensions, bool normalize) {
  for (TextResult& result : results) {
    if (dimensions == std::ssize(result.values)) return;
    result.values.resize(dimensions);
    if (!normalize) continue;
    double squares = 0;
    for (const float x : result.values) squares += static_cast<double>(x) * x;
    const double scale = 1 / std::max(std::sqrt(squares), 1e-12);
    for (float& x : result.values) x = static_cast<float>(x * scale);
  }
}

}  // namespace

struct Exchange;

/// What is served at a path. One that ends with "/" takes what begins with it.
struct Route {
  std::string_view method, path;
  void (Exchange::*handle)();
  bool openai = false;  // errors have OpenAI's shape
  bool open = false;    // needs no key
};

/// A request on its way, and its answer.
struct Exchange : std::enable_shared_from_this<Exchange> {
  Exchange(Service& service, HttpRequest request, HttpReply reply, std::stop_token gone)
      : service(service),
        request(std::move(request)),
        reply(std::move(reply)),
        gone(std::move(gone)) {}

  Service& service;
  HttpRequest request;
  HttpReply reply;
  std::stop_token gone;
  Clock::time_point start = Clock::now();
  const Route* route = nullptr;
  std::string model_name;  // empty: none is asked
  int64_t texts = 0, tokens = 0;

  std::string_view route_name() const { return route != nullptr ? route->path : "other"; }

  void answer(HttpResponse response) {
    const auto duration = Clock::now() - start;
    service.metrics_.request(route_name(), model_name, response.status, duration);
    if (service.log_) {
      service.log_({request.client, request.method, request.path, model_name, response.status,
                    std::chrono::duration<double>(duration).count(), texts, tokens});
    }
    reply(std::move(response));
  }
  void answer(const Json& json) { answer(HttpResponse{.body = dump(json)}); }
  void answer(std::string body) { answer(HttpResponse{.body = std::move(body)}); }

  void fail(const Failure& failure);

  /// Runs `step`, and fails with what it throws.
  template <typename Step>
  void attempt(const Step& step) {
    try {
      try {
        step();
      } catch (const Refusal& refusal) {
        fail(refusal.failure);
      } catch (...) {
        fail(failure_of(std::current_exception()));
      }
    } catch (...) {  // there is not even memory to say so
      reply({.status = 500});
    }
  }

  nlohmann::json body() const {
    if (request.body.empty()) refuse(400, "Validation", "the body is empty; send JSON");
    if (request.body.find('\0') != std::string::npos)
      refuse(400, "Validation", "the body is not JSON: it holds a zero byte");
    if (!request.encoding.empty() && request.encoding != "identity")
      refuse(415, "Validation", fmt::format("bodies encoded as {} are not read", request.encoding));
    try {
      return phasor::internal::parse_json(request.body, "the body");
    } catch (const phasor::ModelError& error) {
      refuse(400, "Validation", error.what());
    }
  }

  using Suits = std::function<bool(const ModelQueue&)>;
  /// The model that the request names; else the first that suits.
  ModelQueue& model(const Fields& fields, const Suits& suits) const {
    const auto& models = service.models_;
    if (models.size() == 1) return *models.front();
    if (const std::string name = fields.text("model", ""); !name.empty()) return model(name);
    const auto found = std::ranges::find_if(models, [&](const auto& m) { return suits(*m); });
    return found == models.end() ? *models.front() : **found;
  }
  ModelQueue& model(const std::string& name) const {
    const auto& models = service.models_;
    const auto found = std::ranges::find(models, name, [](const auto& m) { return m->name(); });
    if (found == models.end())
      refuse(404, "model_not_found",
             fmt::format("there is no model \"{:.100}\"; GET /v1/models lists them", name));
    return **found;
  }
  ModelQueue& any_model(const Fields& fields) const {
    return model(fields, [](const ModelQueue&) { return true; });
  }
  ModelQueue& embedder(const Fields& fields) const {
    ModelQueue& queue = model(fields, &ModelQueue::makes_vectors);
    if (queue.is_classifier())
      invalid(
          fmt::format("the model {} scores texts, and makes no vectors of them: use /predict, "
                      "/rerank or /embed_all",
                      queue.name()));
    try {
      queue.model().sentence();
    } catch (const phasor::ModelError& error) {
      invalid(fmt::format("the model {} has no sentence vectors: {}", queue.name(), error.what()));
    }
    return queue;
  }
  ModelQueue& classifier(const Fields& fields) const {
    ModelQueue& queue = model(
        fields, [](const ModelQueue& each) { return each.is_classifier() && !each.is_reranker(); });
    if (!queue.is_classifier())
      invalid(fmt::format("the model {} has no classification head", queue.name()));
    return queue;
  }
  ModelQueue& reranker(const Fields& fields) const {
    ModelQueue& queue = model(fields, &ModelQueue::is_reranker);
    if (!queue.is_reranker())
      invalid(fmt::format("the model {} is no reranker, whose head has one label", queue.name()));
    return queue;
  }

  using Then = std::function<void(std::vector<TextResult>)>;
  /// Of `work`: its kind and texts.
  void run(ModelQueue& queue, Work work, Then then) {
    model_name = queue.name();
    texts = std::ssize(work.texts);
    request.body = {};
    work.deadline = start + service.options_.timeout;
    work.gone = gone;
    work.done = [self = shared_from_this(), then = std::move(then)](std::vector<TextResult> results,
                                                                    const Failure& failure) {
      self->attempt([&] {
        if (failure.status != 0) return self->fail(failure);
        self->tokens = sum_of_tokens(results);
        then(std::move(results));
      });
    };
    switch (queue.add(std::move(work))) {
      case ModelQueue::Added::kYes:
        return;
      case ModelQueue::Added::kFull:
        refuse(429, "Overloaded", "the queue is full; try again later");
      case ModelQueue::Added::kTooLarge:
        refuse(413, "Validation",
               fmt::format("the texts and their results could have more than {} MB; send fewer",
                           service.options_.queue.max_queue_bytes >> 20));
    }
  }

  void get_health() { answer(std::string("{\"status\":\"ok\"}")); }
  void get_metrics();
  void get_models();
  void get_model();
  void get_info();
  void by_kind();
  void openai_embeddings();
  void embed();
  void embed_all();
  void predict();
  void rerank();
  void rerank_v1();
  void similarity();
  void tokenize();
  void get_page();
  void observe();
};

namespace {

constexpr std::array kRoutes = {
    Route{"GET", "/health", &Exchange::get_health, false, true},
    Route{"GET", "/ping", &Exchange::get_health, false, true},
    Route{"GET", "/metrics", &Exchange::get_metrics},
    Route{"GET", "/info", &Exchange::get_info},
    Route{"GET", "/v1/models", &Exchange::get_models, true},
    Route{"GET", "/v1/models/", &Exchange::get_model, true},
    Route{"POST", "/v1/embeddings", &Exchange::openai_embeddings, true},
    Route{"POST", "/embeddings", &Exchange::openai_embeddings, true},
    Route{"POST", "/", &Exchange::by_kind},
    Route{"POST", "/invocations", &Exchange::by_kind},
    Route{"POST", "/embed", &Exchange::embed},
    Route{"POST", "/embed_all", &Exchange::embed_all},
    Route{"POST", "/predict", &Exchange::predict},
    Route{"POST", "/rerank", &Exchange::rerank},
    Route{"POST", "/v1/rerank", &Exchange::rerank_v1, true},
    Route{"POST", "/v2/rerank", &Exchange::rerank_v1, true},
    Route{"POST", "/similarity", &Exchange::similarity},
    Route{"POST", "/tokenize", &Exchange::tokenize},
    Route{"GET", "/", &Exchange::get_page, false, true},
    Route{"POST", "/observe", &Exchange::observe},
};

bool is_at(const Route& route, std::string_view path) {
  const bool has_more = route.path.size() > 1 && route.path.ends_with('/');
  return has_more ? path.starts_with(route.path) : path == route.path;
}

/// "GET, HEAD, POST".
std::string methods_at(std::string_view path) {
  std::vector<std::string_view> methods;
  for (const Route& route : kRoutes) {
    if (!is_at(route, path)) continue;
    methods.push_back(route.method);
    if (route.method == "GET") methods.emplace_back("HEAD");
  }
  return fmt::format("{}", fmt::join(methods, ", "));
}

bool takes_method(const Route& route, std::string_view method) {
  return route.method == method || (method == "HEAD" && route.method == "GET");
}

/// As OpenAI's errors have it.
std::string_view openai_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status >= 500 || status == 424 ? "server_error" : "invalid_request_error";
}

}  // namespace

void Exchange::fail(const Failure& failure) {
  const bool openai = route != nullptr ? route->openai : request.path.starts_with("/v1/");
  const Json json = openai ? Json{{"error",
                                   {{"message", failure.message},
                                    {"type", openai_type(failure.status)},
                                    {"param", nullptr},
                                    {"code", failure.type}}}}
                           : Json{{"error", failure.message}, {"error_type", failure.type}};
  HttpResponse response{.status = failure.status, .body = dump(json)};
  if (failure.status == 429 || failure.status == 503)
    response.headers.emplace_back("Retry-After", "1");
  if (failure.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (failure.status == 405) response.headers.emplace_back("Allow", methods_at(request.path));
  answer(std::move(response));
}

void Exchange::get_metrics() {
  std::vector<std::pair<std::string, int64_t>> waiting;
  for (const auto& model : service.models_) waiting.emplace_back(model->name(), model->waiting());
  answer(HttpResponse{.body = service.metrics_.text(waiting),
                      .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

/// As OpenAI's clients list it.
Json listed(const ModelQueue& model) {
  return {{"id", model.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "phasor"}};
}

void Exchange::get_models() {
  Json list = Json::array();
  for (const auto& model : service.models_) list.push_back(listed(*model));
  answer(Json{{"object", "list"}, {"data", list}});
}

void Exchange::get_model() { answer(listed(model(request.path.substr(route->path.size())))); }

/// As TEI names it.
std::string_view dtype_of(phasor::Precision precision) {
  switch (precision) {
    case phasor::Precision::kBfloat16:
      return "bfloat16";
    case phasor::Precision::kInt8:
      return "int8";
    default:
      return "float32";
  }
}

void Exchange::get_info() {
  Json list = Json::array();
  for (const auto& model : service.models_) {
    Json kind;
    if (const auto& head = model->model().weights().classifier) {
      Json by_id = Json::object(), by_label = Json::object();
      for (size_t i = 0; i < head->labels.size(); ++i) {
        by_id[std::to_string(i)] = head->labels[i];
        by_label[head->labels[i]] = i;
      }
      kind[head->labels.size() == 1 ? "reranker" : "classifier"] = {{"id2label", by_id},
                                                                    {"label2id", by_label}};
    } else if (model->model().has_sentence()) {
      kind["embedding"] = {{"pooling", to_string(model->model().sentence().pooling.modes)}};
    }
    list.push_back({{"model_id", model->name()},
                    {"model_dtype", dtype_of(model->encoder().precision())},
                    {"model_type", kind},
                    {"max_input_length", model->max_tokens()}});
  }
  Json info = list.front();  // as TEI has it, of one model
  info.update({{"max_concurrent_requests", service.options_.queue.max_queue},
               {"max_batch_tokens", service.options_.queue.max_batch_tokens},
               {"max_client_batch_size", service.options_.max_texts},
               {"auto_truncate", true},
               {"version", PHASOR_VERSION}});
  if (list.size() > 1) info["models"] = list;
  answer(info);
}

void Exchange::by_kind() {
  const nlohmann::json json = body();
  const ModelQueue& queue = any_model(Fields(json));
  if (!queue.is_classifier()) return embed();
  queue.is_reranker() ? rerank() : predict();
}

void Exchange::openai_embeddings() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = embedder(fields);
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    invalid("`encoding_format` must be \"float\" or \"base64\"");
  const int64_t dimensions = dimensions_of(fields, queue);
  const RunKind kind{.prompt = queue.model().sentence().prompt};
  run(queue, {.kind = kind, .texts = fields.texts("input", kMostTextsOfOpenAi)},
      [this, &queue, dimensions, format](std::vector<TextResult> results) {
        cut(results, dimensions, true);
        std::string text = R"({"object":"list","data":[)";
        for (size_t i = 0; i < results.size(); ++i) {
          text += fmt::format(R"({}{{"object":"embedding","index":{},"embedding":)",
                              i == 0 ? "" : ",", i);
          if (format == "float")
            append(text, results[i].values);
          else
            text += fmt::format("\"{}\"", base64(results[i].values));
          text += '}';
        }
        text += fmt::format(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                            dump(queue.name()), tokens, tokens);
        answer(std::move(text));
      });
}

/// Of TEI's shapes.
RunKind embed_kind(const Fields& fields, const ModelQueue& queue) {
  const phasor::SentenceConfig& sentence = queue.model().sentence();
  RunKind kind{.truncate = fields.flag("truncate", true),
               .normalize = fields.flag("normalize", true),
               .prompt = sentence.prompt};
  if (fields.text("truncation_direction", "right") != "right" &&
      fields.text("truncation_direction", "") != "Right")
    invalid("`truncation_direction` must be \"Right\": texts are cut at their end");
  if (const std::string name = fields.text("prompt_name", ""); !name.empty()) {
    const auto found = sentence.prompts.find(name);
    if (found == sentence.prompts.end())
      invalid(fmt::format("the model has no prompt \"{:.100}\"", name));
    kind.prompt = found->second;
  }
  return kind;
}

void Exchange::embed() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = embedder(fields);
  const RunKind kind = embed_kind(fields, queue);
  const int64_t dimensions = dimensions_of(fields, queue);
  run(queue, {.kind = kind, .texts = fields.texts("inputs", service.options_.max_texts)},
      [this, dimensions, normalize = kind.normalize](std::vector<TextResult> results) {
        cut(results, dimensions, normalize);
        std::string text;
        for (const TextResult& result : results) {
          text += text.empty() ? '[' : ',';
          append(text, result.values);
        }
        answer(text + "]");
      });
}

void Exchange::embed_all() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = any_model(fields);
  const RunKind kind{.task = Task::kStates, .truncate = fields.flag("truncate", true)};
  run(queue, {.kind = kind, .texts = fields.texts("inputs", service.options_.max_texts)},
      [this](const std::vector<TextResult>& results) {
        std::string text;
        for (const TextResult& result : results) {
          text += text.empty() ? "[[" : ",[";
          const size_t width = result.values.size() / static_cast<size_t>(result.num_tokens);
          for (size_t i = 0; i < result.values.size(); i += width) {
            if (i > 0) text += ',';
            append(text, std::span(result.values).subspan(i, width));
          }
          text += ']';
        }
        answer(text + "]");
      });
}

void Exchange::predict() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = classifier(fields);
  // "s", ["a", "b"]: one pair, or a list of texts ["s"] and pairs ["a", "b"].
  const nlohmann::json& inputs = fields.at("inputs");
  const bool flat =
      inputs.is_string() || (inputs.is_array() && !inputs.empty() && inputs[0].is_string());
  std::vector<std::string> first, second;
  const auto add = [&](const nlohmann::json& item) {
    const nlohmann::json list = item.is_string() ? nlohmann::json::array({item}) : item;
    if (!list.is_array() || list.empty() || list.size() > 2)
      invalid("`inputs` must be a text, a pair of texts, or a list of lists of one or two texts");
    first.push_back(Fields::string_of(list[0], "inputs"));
    if (list.size() == 2) second.push_back(Fields::string_of(list[1], "inputs"));
  };
  if (flat)
    add(inputs);
  else if (inputs.is_array())
    std::ranges::for_each(inputs, add);
  else
    invalid("`inputs` must be a text or a list");
  if (!second.empty() && second.size() != first.size())
    invalid("`inputs` mixes texts and pairs; send them in two requests");
  Fields::checked(first, "inputs", service.options_.max_texts);
  const bool raw = fields.flag("raw_scores", false);
  const RunKind kind{.task = second.empty() ? Task::kClassify : Task::kClassifyPairs,
                     .truncate = fields.flag("truncate", true)};
  run(queue, {.kind = kind, .texts = std::move(first), .second = std::move(second)},
      [this, &queue, raw, flat](const std::vector<TextResult>& results) {
        const std::vector<std::string>& labels = queue.model().weights().classifier->labels;
        Json all = Json::array();
        for (const TextResult& result : results) {
          const std::vector<float>& scores = raw ? result.values : result.probabilities;
          Json& list = all.emplace_back(Json::array());
          for (const size_t i : best_first(scores))
            list.push_back({{"score", scores[i]}, {"label", labels[i]}});
        }
        answer(flat ? all[0] : all);
      });
}

void Exchange::rerank() {
  const nlohmann::json json = body();
  const Fields fields(json);
  if (fields.find("texts") == nullptr && fields.find("documents") != nullptr) return rerank_v1();
  ModelQueue& queue = reranker(fields);
  std::vector<std::string> documents = fields.texts("texts", service.options_.max_texts);
  const RunKind kind{.task = Task::kRerank, .truncate = fields.flag("truncate", true)};
  const bool raw = fields.flag("raw_scores", false);
  std::vector<std::string> shown;
  if (fields.flag("return_text", false)) shown = documents;
  run(queue, {.kind = kind, .texts = std::move(documents), .query = fields.text("query")},
      [this, raw, shown](const std::vector<TextResult>& results) {
        std::vector<float> logits;
        for (const TextResult& result : results) logits.push_back(result.values[0]);
        Json list = Json::array();
        for (const size_t i : best_first(logits)) {
          Json& item = list.emplace_back(
              Json{{"index", i}, {"score", raw ? logits[i] : results[i].probabilities[0]}});
          if (!shown.empty()) item["text"] = shown[i];
        }
        answer(list);
      });
}

void Exchange::rerank_v1() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = reranker(fields);
  const nlohmann::json& items = fields.at("documents");
  if (!items.is_array()) invalid("`documents` must be a list");
  std::vector<std::string> documents;
  for (const nlohmann::json& item : items) {
    const bool wrapped = item.is_object() && item.contains("text");
    const nlohmann::json& text = wrapped ? item["text"] : item;
    if (!text.is_string())
      invalid("`documents` must hold strings, or objects with a string `text`");
    documents.push_back(text.get<std::string>());
  }
  documents = Fields::checked(std::move(documents), "documents", kMostTextsOfOpenAi);
  const int64_t top = fields.count("top_n");
  std::vector<std::string> shown;
  if (fields.flag("return_documents", false)) shown = documents;
  run(queue,
      {.kind = {.task = Task::kRerank},
       .texts = std::move(documents),
       .query = fields.text("query")},
      [this, &queue, top, shown](const std::vector<TextResult>& results) {
        std::vector<float> logits;
        for (const TextResult& result : results) logits.push_back(result.values[0]);
        Json list = Json::array();
        for (const size_t i : best_first(logits)) {
          if (top > 0 && std::ssize(list) == top) break;
          Json& item = list.emplace_back(
              Json{{"index", i}, {"relevance_score", results[i].probabilities[0]}});
          if (!shown.empty()) item["document"] = {{"text", shown[i]}};
        }
        answer(Json{
            {"model", queue.name()}, {"usage", {{"total_tokens", tokens}}}, {"results", list}});
      });
}

void Exchange::similarity() {
  const nlohmann::json json = body();
  const Fields fields(json), inputs(fields.at("inputs"), "`inputs`");
  ModelQueue& queue = embedder(fields);
  std::vector<std::string> texts = inputs.texts("sentences", service.options_.max_texts);
  texts.insert(texts.begin(), inputs.text("source_sentence"));
  const RunKind kind{.prompt = queue.model().sentence().prompt};
  run(queue, {.kind = kind, .texts = std::move(texts)}, [this](const auto& results) {
    std::vector<float> cosines;
    for (size_t i = 1; i < results.size(); ++i)
      cosines.push_back(cosine_of(results[0], results[i]));
    std::string text;
    append(text, cosines);
    answer(std::move(text));
  });
}

void Exchange::tokenize() {
  const nlohmann::json json = body();
  const Fields fields(json);
  ModelQueue& queue = any_model(fields);
  const bool specials = fields.flag("add_special_tokens", true);
  run(queue,
      {.kind = {.task = Task::kTokenize},
       .texts = fields.texts("inputs", service.options_.max_texts)},
      [this, &queue, specials](const std::vector<TextResult>& results) {
        std::string text;
        for (const auto& [values, probabilities, num_tokens, tokens] : results) {
          text += text.empty() ? "[[" : "],[";
          const std::vector<int64_t> places = text_places(queue.model(), tokens.ids);
          for (int64_t t = 0; t < num_tokens; ++t) {
            const bool special = !std::ranges::binary_search(places, t);
            if (special && !specials) continue;
            fmt::format_to(std::back_inserter(text),
                           R"({}{{"id":{},"text":{},"special":{},"start":null,"stop":null}})",
                           text.ends_with('}') ? "," : "", tokens.ids[t], dump(tokens.pieces[t]),
                           special);
          }
        }
        answer(text + "]]");
      });
}

void Exchange::get_page() {
  answer(HttpResponse{
      .body = service.page_,
      .content_type = "text/html; charset=utf-8",
      .headers = {{"Content-Security-Policy",
                   "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src "
                   "'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'"},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "no-cache"}}});
}

/// Whatever the case.
bool equal_letters(std::string_view a, std::string_view b) {
  const auto lower = [](unsigned char c) { return std::tolower(c); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// Options of the command line in a message become the fields that give them.
Failure in_fields(Failure failure) {
  for (const auto& [option, field] :
       {std::pair("--edit", "`edits`"), std::pair("--cut-residual", "`cut_residuals`"),
        std::pair("--positions", "`positions`")}) {
    if (failure.message.starts_with(option)) failure.message.replace(0, std::strlen(option), field);
  }
  constexpr std::string_view kFiles = " (or table=FILE)";  // which the server does not read
  if (const size_t at = failure.message.find(kFiles); at != std::string::npos)
    failure.message.erase(at, kFiles.size());
  return failure;
}

void Exchange::observe() {
  // Another site's page can send this type only if we allow it, which we do not.
  constexpr std::string_view kJson = "application/json";
  if (!equal_letters(std::string_view(request.content_type).substr(0, kJson.size()), kJson))
    refuse(415, "Validation", "send \"Content-Type: application/json\"");
  const nlohmann::json json = body();
  const Fields fields(json);
  Observation observation{
      .model = &any_model(fields),
      .texts = fields.texts("texts", 2),
      .positions = fields.text("positions", ""),
      .interventions = {.edits = fields.list("edits", kMostInterventions),
                        .cuts = fields.list("cut_residuals", kMostInterventions)},
      .deadline = start + service.options_.timeout,
      .gone = gone};
  model_name = observation.model->name();
  texts = std::ssize(observation.texts);
  request.body = {};
  for (const std::string& text : observation.texts) {
    if (std::ssize(text) > kMostObservedBytes)
      invalid(fmt::format("a text has {} bytes; at most {} are observed", text.size(),
                          kMostObservedBytes));
  }
  for (const std::string& edit : observation.interventions.edits) {
    if (edit.starts_with("table=")) invalid("the server reads no files, so there is no table=");
  }
  observation.done = [self = shared_from_this()](std::string body, int64_t tokens,
                                                 const Failure& failure) {
    self->attempt([&] {
      if (failure.status != 0) return self->fail(in_fields(failure));
      self->tokens = tokens;
      self->answer(std::move(body));
    });
  };
  if (!service.observer_.add(std::move(observation)))
    refuse(429, "Overloaded", "too many observations wait; try again later");
}

/// "name" of "name:8080" and of "http://name"; "[::1]" of "[::1]:8080".
std::string_view host_of(std::string_view origin) {
  if (const size_t scheme = origin.find("://"); scheme != origin.npos)
    origin.remove_prefix(scheme + 3);
  if (origin.starts_with('[')) return origin.substr(0, origin.find(']') + 1);
  return origin.substr(0, origin.find(':'));
}

void Service::add_model(std::unique_ptr<ModelQueue> model) {
  if (std::ranges::find(models_, model->name(), [](const auto& m) { return m->name(); }) !=
      models_.end())
    throw phasor::InvalidArgument(fmt::format(
        "two models are called \"{}\"; give one another name: -m NAME=DIR", model->name()));
  models_.push_back(std::move(model));
}

void Service::ready() {
  page_ = live_page(models_, !options_.keys.empty());
  ready_ = true;
}

bool Service::has_key(std::string_view authorization) const {
  constexpr std::string_view kBearer = "bearer ";
  if (!equal_letters(authorization.substr(0, kBearer.size()), kBearer)) return false;
  bool is_one = false;  // all are compared, so that the time tells nothing
  for (const std::string& key : options_.keys)
    is_one |= equal_keys(authorization.substr(kBearer.size()), key);
  return is_one;
}

/// A name that another site's owner has pointed at this machine makes its pages ours to a browser.
bool Service::is_rebound(const HttpRequest& request) const {
  if (!request.is_local || request.origin.empty()) return false;
  const std::string_view name = host_of(request.host);
  const bool is_address =
      name.starts_with('[') || name.find_first_not_of("0123456789.") == std::string_view::npos;
  return !is_address && name != "localhost" &&
         std::ranges::find(options_.hosts, name, host_of) == options_.hosts.end();
}

/// That of the path and the method; else of the path; else none.
const Route* route_of(const HttpRequest& request) {
  const Route* of_path = nullptr;
  for (const Route& route : kRoutes) {
    if (!is_at(route, request.path)) continue;
    if (takes_method(route, request.method)) return &route;
    if (of_path == nullptr) of_path = &route;
  }
  return of_path;
}

Failure Service::refusal(const HttpRequest& request) const {
  const Route* const route = route_of(request);
  if (request.status != 0) return {request.status, "Http", request.problem};
  if (!options_.keys.empty() && !(route && route->open) && !has_key(request.authorization))
    return {401, "Unauthorized", "the key is missing or wrong; send \"Authorization: Bearer KEY\""};
  if (is_rebound(request))
    return {403, "Forbidden",
            fmt::format("pages of {} may not ask this server; --allow-host {} lets them",
                        request.host, host_of(request.host))};
  if (route == nullptr) return {404, "NotFound", fmt::format("there is no {}", request.path)};
  if (!takes_method(*route, request.method))
    return {
        405, "MethodNotAllowed",
        fmt::format("{} takes {}, not {}", request.path, methods_at(request.path), request.method)};
  if (!ready_) return {503, "Unhealthy", "the models are being loaded"};
  if (draining_) return {503, "Unhealthy", "the server is going down"};
  return {};
}

void Service::serve(HttpRequest request, HttpReply reply, std::stop_token gone) {
  const auto exchange =
      std::make_shared<Exchange>(*this, std::move(request), std::move(reply), std::move(gone));
  exchange->route = route_of(exchange->request);
  exchange->attempt([&] {
    const Failure failure = refusal(exchange->request);
    if (failure.status != 0) return exchange->fail(failure);
    (exchange.get()->*exchange->route->handle)();
  });
}

bool equal_keys(std::string_view given, std::string_view key) {
  unsigned char difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[key.empty() ? 0 : i % key.size()]);
  return difference == 0;
}

std::string base64(const std::vector<float>& values) {
  static_assert(std::endian::native == std::endian::little);
  return base64(std::as_bytes(std::span(values)));
}

}  // namespace infer
