// A comparison as one JSON object.
#include <nlohmann/json.hpp>

#include "infer/render/comparison_report.h"
#include "infer/render/report.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

Json layer_json(size_t l, const ObservedLayer& layer, const Question& question) {
  Json json = {{"layer", l}, {"norm", layer.norm}};
  if (question.asks(Section::kEffect)) json["position_effect"] = layer.position_effect.value_or(0);
  if (question.asks(Section::kOrder)) {
    Json& order = json["order_sensitivity"];
    for (size_t kind = 0; kind < kReorderingNames.size(); ++kind) {
      order[std::string(kReorderingNames[kind])] =
          layer.order ? Json((*layer.order)[kind]) : Json();
    }
  }
  if (question.asks(Section::kDirect)) {
    const auto& direct = layer.direct_position;
    json["direct_position"] =
        direct ? Json({{"norm", direct->norm}, {"share", direct->alignment}}) : Json();
  }
  if (layer.attention) {
    json["attention_distance"] = layer.attention->distance;
    Json& offsets = json["attention_by_offset"] = Json::object();
    for (const auto& [offset, share] : layer.attention->by_offset) {
      offsets[std::to_string(offset)] = share;
    }
  }
  return json;
}

Json layers_json(const SideReport& report, const Question& question) {
  Json layers = Json::array();
  for (size_t l = 0; l < report.layers.size(); ++l) {
    layers.push_back(layer_json(l, report.layers[l], question));
  }
  return layers;
}

Json score_json(const MaskedScore& score) {
  const Estimate loss = score.loss(), accuracy = score.accuracy();
  return {{"tokens", score.tokens},    {"masks", score.masks()},
          {"loss", loss.mean},         {"loss_error", loss.error},
          {"accuracy", accuracy.mean}, {"accuracy_error", accuracy.error}};
}

Json lengths_json(const std::vector<LengthScore>& lengths) {
  if (lengths.empty()) return nullptr;
  Json json = Json::array();
  for (const LengthScore& length : lengths) {
    Json entry = {{"factor", length.factor},
                  {"length", length.length},
                  {"overflow", length.overflow ? Json(to_string(*length.overflow)) : Json()}};
    entry.update(score_json(length.score));
    json.push_back(entry);
  }
  return json;
}

Json measures_json(const TableMeasures& measures) {
  return {{"toeplitz_r2", measures.toeplitz_r2},
          {"locality", measures.locality},
          {"symmetry", measures.symmetry}};
}

Json table_json(const std::optional<TableReport>& table) {
  if (!table) return nullptr;
  Json json = {{"rows", table->rows}, {"norm", table->norm}};
  json.update(measures_json(table->measures));
  json["random"] = measures_json(table->random);
  return json;
}

Json side_json(const Side& side, const SideReport& report, const Question& question) {
  const auto trained = side.trained_length();
  int64_t dropped = 0, invalid_bytes = 0;
  for (const Input& input : report.inputs) {
    dropped += input.dropped;
    invalid_bytes += input.invalid_bytes;
  }
  Json json = {
      {"label", side.label},
      {"model", side.model_name},
      {"positions", describe_positions(side.model().config().position, side.options.positions)},
      {"precision", to_string(side.encoder.precision())},
      {"trained_length", trained ? Json(*trained) : Json()},
      {"texts", report.inputs.size()},
      {"reordered_texts", report.reordered_texts},
      {"tokens", report.tokens},
      {"dropped", dropped},
      {"invalid_bytes", invalid_bytes}};
  json["layers"] = layers_json(report, question);
  if (question.asks(Section::kTable)) json["table"] = table_json(report.table);
  if (question.asks(Section::kMasked)) {
    json["masked"] = report.masked ? score_json(*report.masked) : Json();
  }
  if (question.asks(Section::kLonger)) json["longer"] = lengths_json(report.lengths);
  Json& missing = json["missing"] = Json::object();
  for (const auto& [section, why] : report.missing) {
    const std::string name(kSectionNames[static_cast<size_t>(section)]);
    if (question.asks(section)) missing[name] = why;
  }
  return json;
}

}  // namespace

std::string to_json(const Comparison& comparison) {
  Json json = {{"seed", comparison.question.seed},
               {"same_tokens", same_tokens(comparison.reports[0], comparison.reports[1])}};
  Json& sides = json["sides"] = Json::array();
  for (size_t i = 0; i < 2; ++i) {
    sides.push_back(side_json(*comparison.sides[i], comparison.reports[i], comparison.question));
  }
  if (!comparison.moved.empty()) {
    Json& layers = json["moved_by_precision"] = Json::array();
    for (const Deviation& deviation : comparison.moved) {
      layers.push_back({{"layer", layers.size()}});
      layers.back().update(deviation_json(deviation));
    }
  }
  if (const auto difference = loss_difference(comparison)) {
    json["masked_loss_difference"] = {{"mean", difference->mean}, {"error", difference->error}};
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace infer
