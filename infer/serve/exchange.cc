#include "infer/serve/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "files/utf8.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr int64_t kAlwaysSent = 1024;   // bytes of an answer: errors are sent in any case
constexpr int64_t kBesideBytes = 1024;  // of an answer: its model and usage
constexpr int64_t kJson = 4;            // bytes of JSON for a byte of results: 16 for a float32

/// As OpenAI's errors have it.
std::string_view openai_type(int status) {
  if (status == 429) return "rate_limit_error";
  return status >= 500 || status == 424 ? "server_error" : "invalid_request_error";
}

/// The code unit of the escape \uXXXX at `place`; 0 where there is none.
int code_unit(std::string_view json, size_t place) {
  if (json.size() - place < 6 || json.substr(place, 2) != "\\u") return 0;
  int unit = 0;
  const char* const digits = json.data() + place + 2;
  return std::from_chars(digits, digits + 4, unit, 16).ptr == digits + 4 ? unit : 0;
}

/// Makes escapes of lone surrogates, which clients write that cut a text within an emoji, those of
/// U+FFFD. JSON allows them (RFC 8259, section 8.2), but its parser does not. Bytes stay in place.
void replace_lone_surrogates(std::string& json) {
  for (size_t i = json.find('\\'); i < json.size(); i = json.find('\\', i)) {
    const int unit = code_unit(json, i);
    const bool is_high = unit >= 0xD800 && unit < 0xDC00, is_low = unit >= 0xDC00 && unit < 0xE000;
    const int next = is_high ? code_unit(json, i + 6) : 0;
    const bool is_pair = next >= 0xDC00 && next < 0xE000;
    if ((is_high || is_low) && !is_pair) json.replace(i + 2, 4, "fffd");
    i += is_pair ? 12 : 2;  // a backslash, too, may be escaped
  }
}

phasor::internal::JsonDocument parsed(std::string& body) {
  if (body.empty()) refuse(400, "Validation", "the body is empty; send JSON");
  if (body.find('\0') != std::string::npos)
    refuse(400, "Validation", "the body is not JSON: it holds a zero byte");
  replace_lone_surrogates(body);
  try {
    return phasor::internal::parse_json(body, "the body");
  } catch (const phasor::ModelError& error) {
    const bool is_utf8 = phasor::internal::to_valid_utf8(body).invalid_bytes == 0;
    refuse(400, "Validation", "{}{}", error.what(), is_utf8 ? "" : "; the body is not in UTF-8");
  }
}

}  // namespace

void Exchange::answer(HttpResponse response) {
  constexpr int kFailures = 400;  // which are short, and always sent
  const bool is_asked_when_full = route != nullptr && route->handle == &Exchange::get_metrics;
  const auto bytes = std::ssize(response.body);
  if (bytes > kAlwaysSent && response.status < kFailures && !is_asked_when_full)
    take(bytes);  // for a GET nothing was counted before
  else
    service.budget_.resize(share, bytes);
  const std::string_view path = route != nullptr ? route->path_of(request.path) : "other";
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Served served{request.id,      request.client, request.method, request.path, model_name,
                response.status, seconds,        texts,          tokens};
  const auto record = [&service = service, path, served](const bool* is_sent) mutable {
    if (!*is_sent) served.status = kGone.status;
    delete is_sent;
    service.record(path, served);
  };
  response.is_sent = {new bool(false), record};
  response.headers.emplace_back("X-Request-Id", request.id);
  response.share = std::move(share);
  reply(std::move(response));
}

void Exchange::fail(const Failure& failure) {
  const bool openai =
      route != nullptr ? route->is(Route::kOpenAi) : request.path.starts_with("/v1/");
  HttpResponse response{.status = failure.status};
  JsonWriter error;
  if (openai) {
    error.object([&] {
      error.key("error").object("message", failure.message, "type", openai_type(failure.status),
                                "param", nullptr, "code", failure.type);
    });
  } else {
    error.object("error", failure.message, "error_type", failure.type);
  }
  response.body = error.take();
  if (failure.status == 429 || failure.status == 503)
    response.headers.emplace_back("Retry-After", "1");
  if (failure.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (failure.status == 415) response.headers.emplace_back("Accept-Encoding", "identity");
  if (failure.status == 405) response.headers.emplace_back("Allow", methods_at(request.path));
  answer(std::move(response));
}

void Exchange::as(void (Exchange::*handle)()) {
  const Route& route = *std::ranges::find(routes(), handle, &Route::handle);
  asked = &route.request;
  if (route.method == "POST") {
    if (!body) body = parsed(request.body);
    fields.emplace(**body);
  }
  (this->*handle)();
}

ModelQueue& Exchange::model(const Suits& suits) const {
  const auto& models = service.models_;
  if (models.size() == 1) return *models.front();
  if (const std::string name = fields->text("model", ""); !name.empty()) return model(name);
  const auto found = std::ranges::find_if(models, [&](const auto& m) { return suits(*m); });
  return found == models.end() ? *models.front() : **found;
}

ModelQueue& Exchange::model(bool (ModelQueue::*can)() const, std::string_view otherwise) const {
  ModelQueue& queue = model(can);
  if (!(queue.*can)()) invalid("the model {} {}", queue.name(), otherwise);
  return queue;
}

ModelQueue& Exchange::model(const std::string& name) const {
  const auto& models = service.models_;
  const auto found = std::ranges::find(models, name, [](const auto& m) { return m->name(); });
  if (found == models.end())
    refuse(404, "model_not_found", "there is no model \"{:.100}\"; GET /v1/models lists them",
           name);
  return **found;
}

ModelQueue& Exchange::embedder() const {
  ModelQueue& queue = model(&ModelQueue::makes_vectors);
  if (queue.is_classifier() || queue.labels_tokens())
    invalid(
        "the model {} labels or scores texts, and makes no vectors of them: use /predict, "
        "/predict_tokens, /rerank or /embed_all",
        queue.name());
  if (queue.ranks_by_tokens())
    invalid(
        "the model {} makes a vector of each token, not one of a text: use \"kind\": \"tokens\" "
        "or /rerank",
        queue.name());
  try {
    queue.model().sentence();
  } catch (const phasor::ModelError& error) {
    invalid("the model {} has no sentence vectors: {}", queue.name(), error.what());
  }
  return queue;
}

void Exchange::take(int64_t bytes) {
  constexpr double kMega = 1e6;
  const auto limit = static_cast<double>(service.budget_.limit());
  if (static_cast<double>(bytes) > limit)
    refuse(413, "Validation",
           "the texts, their results and the answer could take {:.1f} MB; all requests together "
           "have {:g} MB (--max-memory): send fewer or shorter texts",
           static_cast<double>(bytes) / kMega, limit / kMega);
  if (!service.budget_.resize(share, bytes))
    refuse(429, "Overloaded", "other requests take the memory (--max-memory); try again later");
}

Work Exchange::work_of(const Task& task) const {
  Work work{.task = &task, .options = options_of(task)};
  work.texts = fields->texts("inputs", service.options_.most_texts());
  fields->refuse_others();
  return work;
}

void Exchange::has_read(const ModelQueue& queue, size_t num_texts) {
  model_name = queue.name();
  texts = static_cast<int64_t>(num_texts);
  request.body = {};
  fields.reset();
  body.reset();
}

void Exchange::run(ModelQueue& queue, Work work, Write write) {
  work.prompt_bytes = phasor::prompt_of(work.options, queue.model().text()).size();
  take(most_bytes(queue, work) + kBesideBytes);
  has_read(queue, work.texts.size());
  work.deadline = start + service.options_.timeout;
  work.gone = gone;
  work.done = [self = shared_from_this(), write = std::move(write)](
                  const Work& work, const Columns& results, const Failure& failure) {
    self->attempt([&] {
      if (failure.status != 0) return self->fail(failure);
      for (const int64_t count : results.all<int64_t>("num_tokens")) self->tokens += count;
      const int64_t bytes = results.bytes();
      self->room = std::max<int64_t>(0, self->share.bytes() - work.bytes() - bytes);
      JsonWriter json(std::min(self->room, kJson * bytes + kBesideBytes));
      write(json, results, work);
      self->answer(json.take());
    });
  };
  queue.add(std::move(work));
}

void Exchange::write_each(JsonWriter& json, int64_t n,
                          const std::function<void(int64_t i)>& write) {
  json.array([&] {
    for (int64_t i = 0; i < n; ++i) {
      write(i);
      const auto size = static_cast<int64_t>(json.size());
      if (size > room) add_room(size);
    }
  });
}

}  // namespace infer
