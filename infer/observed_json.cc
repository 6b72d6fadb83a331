// What is known about a text, as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "infer/observed.h"
#include "infer/report.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json positions_json(const std::vector<float>& position_ids) {
  Json json = Json::array();
  for (const float position : position_ids) {
    const float whole = std::round(position);
    json.push_back(whole == position ? Json(static_cast<int64_t>(whole)) : Json(position));
  }
  return json;
}

Json order_json(const ObservedLayer& layer) {
  if (!layer.order) return nullptr;
  Json json;
  for (size_t kind = 0; kind < kReorderingNames.size(); ++kind) {
    json[std::string(kReorderingNames[kind])] = (*layer.order)[kind];
  }
  return json;
}

Json attention_json(const std::optional<ObservedAttention>& attention) {
  if (!attention) return nullptr;
  Json json = {{"distance", attention->distance}};
  Json& offsets = json["by_offset"] = Json::object();
  for (const auto& [offset, share] : attention->by_offset) offsets[std::to_string(offset)] = share;
  return json;
}

Json layer_json(size_t l, const ObservedLayer& layer) {
  Json json = {{"layer", l},
               {"norm", layer.norm},
               {"position_effect", or_null(layer.position_effect)},
               {"direct_position", nullptr}};
  if (const auto& direct = layer.direct_position) {
    json["direct_position"] = {{"norm", direct->norm}, {"share", direct->alignment}};
  }
  json["order_sensitivity"] = order_json(layer);
  json["attention"] = attention_json(layer.attention);
  return json;
}

Json masks_json(const std::vector<MaskReport>& masks) {
  Json json = Json::array();
  for (const MaskReport& mask : masks) {
    Json fillers = Json::array();
    for (const Filler& filler : mask.fillers) {
      fillers.push_back(
          {{"id", filler.id}, {"piece", filler.piece}, {"probability", filler.probability}});
    }
    json.push_back({{"token", mask.token}, {"fillers", fillers}});
  }
  return json;
}

/// The keys that say which text this is about; what stands for its positions has two names.
Json text_json(const Observed& text, const char* positions_key) {
  return {{"text", or_null(text.input.text)},
          {"ids", text.input.token_ids},
          {"pieces", text.input.pieces},
          {positions_key, positions_json(text.position_ids)},
          {"invalid_bytes", text.input.invalid_bytes},
          {"dropped", text.input.dropped}};
}

}  // namespace

Json to_json(const Observed& text) {
  Json json = {{"model", text.model},
               {"positions", text.positions},
               {"precision", text.precision},
               {"edits", text.edits},
               {"cut_residuals", text.cut_residuals}};
  json.update(text_json(text, "position_ids"));
  json["text_tokens"] = text.text_tokens;
  json["num_layers"] = text.num_layers();
  json["num_heads"] = text.num_heads;
  json["d_model"] = text.d_model;
  Json& layers = json["layers"] = Json::array();
  for (const ObservedLayer& layer : text.layers) layers.push_back(layer_json(layers.size(), layer));
  json["pooled_effect"] = or_null(text.pooled_effect);
  Json& missing = json["missing"] = Json::object();
  for (const auto& [measure, why] : text.missing) {
    missing[std::string(kMeasureNames[static_cast<size_t>(measure)])] = why;
  }
  json["masks"] = masks_json(text.masks);
  return json;
}

std::string summary_json(const Observed& text) {
  Json json = {{"model", text.model}};
  json.update(text_json(text, "positions"));
  Json& layers = json["layers"] = Json::array();
  for (const ObservedLayer& layer : text.layers) {
    const auto& attention = layer.attention;
    layers.push_back({{"layer", layers.size()},
                      {"norm", layer.norm},
                      {"position_effect", or_null(layer.position_effect)},
                      {"attention_distance", attention ? Json(attention->distance) : Json()}});
  }
  json["masks"] = masks_json(text.masks);
  return line(json);
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace infer
