// Tables of position vectors as JSON and CSV.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "infer/render/position_report.h"
#include "phasor/lens/table.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

Json rows_of(MatrixView matrix) {
  Json rows = Json::array();
  for (int64_t i = 0; i < matrix.rows; ++i) {
    const auto row = matrix.values.subspan(i * matrix.columns, matrix.columns);
    rows.push_back(std::vector<double>(row.begin(), row.end()));
  }
  return rows;
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json numbers(const std::vector<Property>& properties) {
  Json json = Json::object();
  for (const Property& property : properties) {
    json[std::string(property.key)] = {{"value", number(property.value)},
                                       {"random", number(property.random)}};
  }
  return json;
}

Json pairs_of(const NamedTable& table) {
  Json pairs = Json::array();
  for (const phasor::ColumnPair& pair : table.pairs) {
    pairs.push_back({{"sine", pair.sine},
                     {"cosine", pair.cosine < 0 ? Json() : Json(pair.cosine)},
                     {"frequency", pair.frequency > 0 ? Json(pair.frequency) : Json()}});
  }
  return pairs;
}

/// Angles [T, pairs], in radians, clockwise from twelve.
Json angles_of(const NamedTable& table) {
  const Matrix hands = clock_pairs(table);
  Matrix angles{.values = {}, .rows = hands.rows, .columns = hands.columns / 2};
  for (size_t i = 0; i < hands.values.size(); i += 2) {
    angles.values.push_back(clock_angle(hands.values[i], hands.values[i + 1]));
  }
  return rows_of(angles);
}

Json map_of(const NamedTable& table) {
  const phasor::PlaneMap plane = phasor::principal_plane(table.values.values, table.width());
  return {{"points", rows_of({plane.points, table.rows(), 2})}, {"share", plane.share}};
}

Json describe(const PositionsPage& page, size_t i) {
  const NamedTable& table = page.tables[i];
  Json json = {{"name", table.name},
               {"kind", table.kind},
               {"layout", table.layout ? Json(phasor::to_string(*table.layout)) : Json()},
               {"base", table.layout ? Json(table.base) : Json()},
               {"first_position", table.first_position},
               {"length", table.rows()},
               {"width", table.width()}};
  if (page.asks(TableSection::kValues) || page.asks(TableSection::kImage)) {
    json["values"] = rows_of(table.values);
  }
  if (page.asks(TableSection::kCurves)) json["pairs"] = pairs_of(table);
  if (page.asks(TableSection::kDistances)) json["distances"] = rows_of(cosine_distances(table));
  if (page.asks(TableSection::kClock)) json["angles"] = angles_of(table);
  if (page.asks(TableSection::kMap)) json["map"] = map_of(table);
  if (page.asks(TableSection::kProperties)) json["properties"] = numbers(page.properties[i]);
  return json;
}

}  // namespace

std::string to_json(const PositionsPage& page) {
  Json json = {{"tables", Json::array()}};
  for (size_t i = 0; i < page.tables.size(); ++i) json["tables"].push_back(describe(page, i));
  if (page.asks(TableSection::kAgainst)) {
    json["against"] = numbers(page.against);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_csv(const NamedTable& table) {
  std::string text = "position";
  for (int64_t c = 0; c < table.width(); ++c) text += fmt::format(",{}", c);
  text += "\n";
  for (int64_t p = 0; p < table.rows(); ++p) {
    text += fmt::format("{}", table.first_position + p);
    for (int64_t c = 0; c < table.width(); ++c) {
      text += fmt::format(",{}", table.values.values[p * table.width() + c]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace infer
