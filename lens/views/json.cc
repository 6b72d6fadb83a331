#include "lens/views/json.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "lens/views/view.h"

namespace phasor::internal {
namespace {

using Json = nlohmann::ordered_json;

Json positions_json(const std::vector<float>& position_ids) {
  Json json = Json::array();
  for (const float position : position_ids) {
    const bool whole = std::round(position) == position && std::abs(position) < 0x1p53f;
    json.push_back(whole ? Json(static_cast<int64_t>(position)) : Json(position));
  }
  return json;
}

Json table_json(const View& view, const Table& table) {
  Json rows = Json::array();
  for (const Row& row : table.rows) {
    Json& json = rows.emplace_back(Json::object());
    if (row.layer >= 0) json["layer"] = row.layer;
    if (row.head > 0) json["head"] = row.head;
    if (!row.label.empty()) json[view.row_name] = row.label;
    for_each_number(table, row, [&](const std::string& key, double number) {
      json[key] = std::isnan(number) ? Json() : Json(number);
    });
  }
  return rows;
}

Json masks_json(const std::vector<Filler>& fillers) {
  Json json = Json::array();
  for (const Filler& filler : fillers) {
    if (json.empty() || json.back()["token"] != filler.token)
      json.push_back({{"token", filler.token}, {"fillers", Json::array()}});
    json.back()["fillers"].push_back(
        {{"id", filler.id}, {"piece", filler.piece}, {"probability", filler.probability}});
  }
  return json;
}

// In the order of Rows and Chart.
constexpr std::array kRows = {"layers", "heads", "named"};
constexpr std::array kCharts = {"none", "lines", "stacked", "curves", "dots"};

}  // namespace

Json to_json(const Observed& observed) {
  Json json = Json::object();
  if (!observed.label.empty()) json["label"] = observed.label;
  json.update({{"model", observed.model},
               {"positions", observed.positions},
               {"precision", observed.precision},
               {"edits", observed.edits},
               {"cut_residuals", observed.cut_residuals}});
  if (observed.untrained > 0) json["untrained"] = observed.untrained;
  if (observed.means) {
    json.update({{"file", observed.file.empty() ? Json() : Json(observed.file)},
                 {"texts", observed.num_texts},
                 {"tokens", observed.num_tokens}});
  } else {
    const Tokens& tokens = observed.tokens;
    json.update({{"text", observed.text ? Json(*observed.text) : Json()},
                 {"ids", tokens.ids},
                 {"pieces", tokens.pieces},
                 {"position_ids", positions_json(observed.position_ids)},
                 {"invalid_bytes", tokens.invalid_bytes},
                 {"dropped", tokens.dropped},
                 {"text_tokens", observed.text_tokens}});
  }
  Json tables = Json::object();
  for (const View& view : lens::views()) {
    const Table* const table = observed.table(view.name);
    if (table != nullptr) tables[view.name] = table_json(view, *table);
  }
  json.update({{"num_layers", observed.num_layers},
               {"num_heads", observed.num_heads},
               {"d_model", observed.d_model},
               {"views", tables},
               {"missing", Json(observed.missing)},
               {"masks", masks_json(observed.fillers)}});
  return json;
}

Json to_json(std::span<const Observed> runs) {
  if (runs.size() == 1) return to_json(runs[0]);
  Json json = {{"runs", Json::array()}};
  for (const Observed& run : runs) json["runs"].push_back(to_json(run));
  return json;
}

Json views_json() {
  Json json = Json::array();
  for (const View& view : lens::views()) {
    Json columns = Json::array();
    for (const Column& column : view.columns) {
      if (column.printed) columns.push_back({{"key", column.key}, {"label", label_of(column)}});
    }
    json.push_back({{"name", view.name},
                    {"title", view.title},
                    {"hint", view.hint},
                    {"unit", view.unit},
                    {"rows", kRows.at(static_cast<size_t>(view.rows))},
                    {"row_name", view.row_name},
                    {"chart", kCharts.at(static_cast<size_t>(view.chart))},
                    {"series", view.series},
                    {"columns", columns}});
  }
  return json;
}

}  // namespace phasor::internal
