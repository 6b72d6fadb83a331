// What is known of the server and its models.
#include "infer/serve/exchange.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// As OpenAI's clients list it.
Json listed(const ModelQueue& model) {
  return {{"id", model.name()}, {"object", "model"}, {"created", 0}, {"owned_by", "phasor"}};
}

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

}  // namespace

void Exchange::get_metrics() {
  std::vector<std::pair<std::string, int64_t>> waiting;
  for (const auto& model : service.models_) waiting.emplace_back(model->name(), model->waiting());
  answer(HttpResponse{.body = service.metrics_.text(waiting),
                      .content_type = "text/plain; version=0.0.4; charset=utf-8"});
}

void Exchange::get_models() {
  Json list = Json::array();
  for (const auto& model : service.models_) list.push_back(listed(*model));
  answer(Json{{"object", "list"}, {"data", list}});
}

void Exchange::get_model() { answer(listed(model(request.path.substr(route->path.size())))); }

std::string info_json(std::span<const std::unique_ptr<ModelQueue>> models,
                      const ServiceOptions& options) {
  Json list = Json::array();
  for (const auto& model : models) {
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
  info.update({{"max_concurrent_requests", options.queue.max_queue},
               {"max_batch_tokens", options.queue.max_batch_tokens},
               {"max_client_batch_size", options.max_texts},
               {"auto_truncate", true},
               {"version", PHASOR_VERSION}});
  if (list.size() > 1) info["models"] = list;
  return one_line(info);
}

void Exchange::get_info() {
  const auto bytes = std::ssize(service.info_);
  take(bytes, bytes);  // before it is copied
  answer(service.info_);
}

}  // namespace infer
