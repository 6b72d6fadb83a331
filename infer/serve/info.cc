// What is known of the server and its models.
#include "files/json_writer.h"
#include "infer/serve/exchange.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// As OpenAI's clients list it.
void write_listed(const ModelQueue& model, JsonWriter& json) {
  json.object("id", model.name(), "object", "model", "created", 0, "owned_by", "phasor");
}

/// As TEI has it: labels by id and ids by label of a classifier, the pooling of a model of vectors.
void write_kind(const phasor::Model& model, JsonWriter& json) {
  const phasor::Weights& weights = model.weights();
  const auto& head = weights.classifier ? weights.classifier : weights.token_classifier;
  const bool makes_vectors =
      model.has_sentence() || model.has_sparse() || model.has_token_vectors();
  if (!head && !makes_vectors) return json.value(nullptr);
  json.object([&] {
    if (!head) {
      json.key("embedding").object([&] {
        json.member("pooling", model.has_sentence() ? to_string(model.sentence().pooling.modes)
                               : model.has_sparse() ? "splade"
                                                    : "none");
      });
      return;
    }
    const std::vector<std::string>& labels = head->labels;
    json.key(labels.size() == 1 && weights.classifier ? "reranker" : "classifier").object([&] {
      json.key("id2label").object([&] {
        for (size_t i = 0; i < labels.size(); ++i) json.member(std::to_string(i), labels[i]);
      });
      json.key("label2id").object([&] {
        for (size_t i = 0; i < labels.size(); ++i) json.member(labels[i], i);
      });
    });
  });
}

/// As TEI names it.
std::string_view dtype_of(phasor::Precision precision) {
  return precision == phasor::Precision::kBfloat16 ? "bfloat16"
         : precision == phasor::Precision::kInt8   ? "int8"
                                                   : "float32";
}

void write_model(const ModelQueue& model, JsonWriter& json) {
  json.member("model_id", model.name(), "model_dtype", dtype_of(model.encoder().precision()));
  write_kind(model.model(), json.key("model_type"));
  json.member("max_input_length", model.max_tokens());
}

void answer_copy(Exchange& exchange, const std::string& text) {
  exchange.take(std::ssize(text));  // before it is copied
  exchange.answer(text);
}

}  // namespace

void Exchange::get_health() { answer(json_object("status", "ok")); }

void Exchange::get_metrics() {
  std::vector<std::pair<std::string, int64_t>> waiting;
  for (const auto& model : service.models_) waiting.emplace_back(model->name(), model->waiting());
  answer(HttpResponse{.body = service.metrics_.text(waiting),
                      .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

void Exchange::get_models() {
  JsonWriter json;
  json.object([&] {
    json.member("object", "list");
    json.key("data").array(service.models_, [&](const auto& each) { write_listed(*each, json); });
  });
  answer(json.take());
}

void Exchange::get_model() {
  JsonWriter json;
  write_listed(model(request.path.substr(route->paths[0].size())), json);
  answer(json.take());
}

std::string info_json(std::span<const std::unique_ptr<ModelQueue>> models,
                      const ServiceOptions& options) {
  JsonWriter json;
  json.object([&] {
    write_model(*models.front(), json);  // as TEI has it, of one model
    json.member("max_concurrent_requests", options.queue.max_queue, "max_batch_tokens",
                options.queue.max_batch_tokens, "max_client_batch_size", options.max_texts,
                "auto_truncate", true, "version", PHASOR_VERSION);
    if (models.size() == 1) return;
    json.key("models").array(
        models, [&](const auto& each) { json.object([&] { write_model(*each, json); }); });
  });
  return json.take();
}

void Exchange::get_info() { answer_copy(*this, service.info_); }

void Exchange::get_openapi() { answer_copy(*this, service.openapi_); }

}  // namespace infer
