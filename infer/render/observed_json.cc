// What is known about a text, as JSON.
#include <cmath>
#include <nlohmann/json.hpp>

#include "infer/render/report.h"
#include "infer/views/numbers.h"

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

Json head_json(int64_t number, const phasor::HeadProfile& head) {
  return {{"head", number},
          {"distance", head.mean_distance},
          {"entropy", head.entropy},
          {"entropy_share", head.entropy_share},
          {"previous", head.previous},
          {"next", head.next},
          {"self", head.self},
          {"first", head.first},
          {"separators", head.separators},
          {"positional_offset", or_null(head.positional_offset)},
          {"positional_share", head.positional_share},
          {"by_offset", head.by_offset}};
}

Json attention_json(const std::optional<ObservedAttention>& attention) {
  if (!attention) return nullptr;
  Json json = {{"distance", attention->distance},
               {"entropy", attention->entropy},
               {"entropy_share", attention->entropy_share}};
  Json& offsets = json["by_offset"] = Json::object();
  for (const auto& [offset, share] : attention->by_offset) offsets[std::to_string(offset)] = share;
  Json& heads = json["heads"] = Json::array();
  for (const phasor::HeadProfile& head : attention->heads) {
    heads.push_back(head_json(std::ssize(heads) + 1, head));
  }
  return json;
}

Json split_json(const ObservedSplit& split, const char* group) {
  return {{"position", split.position}, {group, split.group}, {"rest", split.rest}};
}

Json matrix_json(const ObservedSplit& split) {
  return {{"stable_rank", split.stable_rank}, {"smoothness", split.smoothness}};
}

Json probe_json(const phasor::ProbeReport& probe) {
  const auto score = [](const phasor::ProbeScore& score) {
    return Json{{"r2", score.r2}, {"mean_absolute_error", score.mean_absolute_error}};
  };
  return {{"num_train", probe.num_train}, {"num_held_out", probe.num_held_out},
          {"train", score(probe.train)},  {"held_out", score(probe.held_out)},
          {"mean", score(probe.mean)},    {"shuffled", score(probe.shuffled)}};
}

Json layer_json(size_t l, const ObservedLayer& layer) {
  Json json = {{"layer", l},
               {"norm", layer.norm},
               {"position_effect", or_null(layer.position_effect)},
               {"split", nullptr},
               {"position_matrix", nullptr},
               {"direct_position", nullptr}};
  if (const auto& split = layer.split) {
    json["split"] = split_json(*split, "token");
    json["position_matrix"] = matrix_json(*split);
  }
  if (const auto& direct = layer.direct_position) {
    json["direct_position"] = {{"norm", direct->norm}, {"share", direct->alignment}};
  }
  json["order_sensitivity"] = order_json(layer);
  json["attention"] = attention_json(layer.attention);
  if (layer.corpus_split) {
    json["corpus_split"] = split_json(*layer.corpus_split, "text");
    json["corpus_split"].update(matrix_json(*layer.corpus_split));
  }
  if (layer.probe) json["probe"] = probe_json(*layer.probe);
  return json;
}

Json shares_json(const phasor::ScoreShares& shares) {
  Json json;
  for_each_share(shares, [&](const char* name, double share) { json[name] = share; });
  return json;
}

Json scores_json(const std::optional<ObservedScores>& scores) {
  if (!scores) return nullptr;
  Json json = shares_json(scores->all);
  Json& heads = json["heads"] = Json::array();
  for (const phasor::ScoreShares& shares : scores->heads) {
    heads.push_back({{"head", heads.size() + 1}});
    heads.back().update(shares_json(shares));
  }
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
  if (text.corpus) {
    json["file"] = text.corpus->file;
    json["texts"] = text.corpus->texts;
    json["tokens"] = text.corpus->tokens;
    json["corpus_split"] = {{"texts", text.corpus->split_texts},
                            {"places", text.corpus->split_places}};
    json["probe"] = {{"train_texts", text.corpus->train_texts},
                     {"held_out_texts", text.corpus->held_out_texts}};
  } else {
    json.update(text_json(text, "position_ids"));
    json["text_tokens"] = text.text_tokens;
  }
  json["num_layers"] = text.num_layers();
  json["num_heads"] = text.num_heads;
  json["d_model"] = text.d_model;
  Json& layers = json["layers"] = Json::array();
  for (const ObservedLayer& layer : text.layers) layers.push_back(layer_json(layers.size(), layer));
  json["pooled_effect"] = or_null(text.pooled_effect);
  json["first_layer_scores"] = scores_json(text.first_layer_scores);
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
