// What was observed, and the table of views, as JSON. docs/reading-in-python.md documents the keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "files/json_writer.h"
#include "lens/study/observed.h"
#include "lens/study/run.h"
#include "lens/views/differences.h"

namespace phasor {
namespace internal {
namespace {

constexpr int64_t kMostWeights = 1'500'000;  // of all patterns of a text

void write_positions(const std::vector<float>& position_ids, JsonWriter& json) {
  json.array(position_ids, [&](const float position) {
    const bool whole = std::round(position) == position && std::abs(position) < 0x1p53f;
    whole ? json.value(static_cast<int64_t>(position)) : json.value(static_cast<double>(position));
  });
}

void write_row(const View& view, const Table& table, const Row& row, JsonWriter& json) {
  json.object([&] {
    if (row.layer >= 0) json.member("layer", row.layer);
    if (row.head > 0) json.member("head", row.head);
    if (!row.label.empty()) json.member(view.row_name, row.label);
    for_each_number(table, row,
                    [&](const std::string& key, double number) { json.member(key, number); });
  });
}

void write_tables(const Observed& observed, JsonWriter& json) {
  json.object([&] {
    for (const View& view : lens::views()) {
      const Table* const table = observed.table(view.name);
      if (table == nullptr) continue;
      json.key(view.name).array(table->rows,
                                [&](const Row& row) { write_row(view, *table, row, json); });
    }
  });
}

void write_masks(std::span<const Filler> fillers, JsonWriter& json) {
  json.array([&] {
    for (auto first = fillers.begin(); first != fillers.end();) {
      const auto last =
          std::find_if(first, fillers.end(), [&](auto& f) { return f.token != first->token; });
      json.object([&] {
        json.member("token", first->token);
        json.key("fillers").array([&] {
          for (; first != last; ++first) {
            json.object("id", first->id, "piece", first->piece, "probability", first->probability);
          }
        });
      });
    }
  });
}

/// The mean weight of a block of rows and columns of a pattern [T, T].
double block_mean(const float* pattern, int64_t tokens, int64_t cells, int64_t row,
                  int64_t column) {
  const auto edge = [&](int64_t cell) { return cell * tokens / cells; };
  double sum = 0;
  for (int64_t i = edge(row); i < edge(row + 1); ++i) {
    for (int64_t j = edge(column); j < edge(column + 1); ++j) sum += pattern[i * tokens + j];
  }
  return sum / static_cast<double>((edge(row + 1) - edge(row)) * (edge(column + 1) - edge(column)));
}

/// Square roots, so that 8 bits tell small weights apart, too. [L, H, cells, cells]
std::vector<uint8_t> pattern_bytes(const Observed& observed, int64_t cells) {
  const int64_t tokens = observed.num_tokens;
  std::vector<uint8_t> values;
  for (const std::vector<float>& layer : observed.patterns) {  // [H, T, T]
    for (int64_t head = 0; head < observed.num_heads; ++head) {
      const float* pattern = layer.data() + head * tokens * tokens;  // [T, T]
      for (int64_t cell = 0; cell < cells * cells; ++cell) {
        const double weight = block_mean(pattern, tokens, cells, cell / cells, cell % cells);
        values.push_back(
            static_cast<uint8_t>(std::lround(255 * std::sqrt(std::clamp(weight, 0.0, 1.0)))));
      }
    }
  }
  return values;
}

/// The profiles by offset of all heads, [L, H, 2K + 1], up to the offset K.
std::vector<float> profile_values(const Observed& observed, int64_t farthest) {
  std::vector<float> values;
  for (const std::vector<HeadProfile>& layer : observed.heads) {
    for (const HeadProfile& head : layer) {
      const auto middle = head.by_offset.begin() + observed.num_tokens - 1;
      values.insert(values.end(), middle - farthest, middle + farthest + 1);
    }
  }
  return values;
}

/// `size` of `values`, whose bytes follow as base64.
template <typename T>
void write_figure(const char* name, const char* size_name, int64_t size,
                  const std::vector<T>& values, JsonWriter& json) {
  json.key(name).object([&] {
    json.member(size_name, size);
    json.key("values").raw('"' + to_base64(std::as_bytes(std::span(values))) + '"');
  });
}

void write_figures(const Observed& observed, JsonWriter& json) {
  const int64_t tokens = observed.num_tokens;
  if (observed.means) return;
  if (!observed.patterns.empty()) {
    const int64_t heads = std::ssize(observed.patterns) * observed.num_heads;
    const int64_t cells = std::min(tokens, static_cast<int64_t>(std::sqrt(kMostWeights / heads)));
    write_figure("patterns", "cells", cells, pattern_bytes(observed, cells), json);
  }
  if (!observed.heads.empty()) {
    const int64_t farthest = std::min(tokens - 1, kFarthestOffset);
    write_figure("profiles", "offsets", farthest, profile_values(observed, farthest), json);
  }
  if (!observed.position_vectors.empty()) {
    write_figure("vectors", "columns", std::ssize(observed.position_vectors) / tokens,
                 observed.position_vectors, json);
  }
  if (!observed.turns.empty()) write_figure("turns", "tokens", tokens, observed.turns, json);
  if (!observed.apart.empty())
    write_figure("apart", "layers", observed.num_layers + 1, observed.apart, json);
}

void write_conclusions(std::span<const Observed> runs, JsonWriter& json) {
  std::vector<const View*> all;
  for (const View& view : lens::views()) all.push_back(&view);
  json.key("conclusions").array(conclusions(runs, all), [&](const Conclusion& each) {
    if (each.sentence.empty()) return;
    json.object([&] {
      json.member("sentence", each.sentence);
      json.key("views").array(each.views, [&](const View* view) { json.value(view->name); });
    });
  });
}

/// `alone`: it is the only run of its text.
void write_run(const Observed& observed, bool alone, bool figures, JsonWriter& json) {
  json.object([&] {
    if (!observed.label.empty()) json.member("label", observed.label);
    json.member("model", observed.model);
    json.member("name", short_name(observed.model));
    json.member("positions", observed.positions);
    json.member("precision", observed.precision);
    json.member("edits", observed.edits);
    json.member("cut_residuals", observed.cut_residuals);
    if (observed.untrained > 0) json.member("untrained", observed.untrained);
    if (observed.means) {
      json.member("file", observed.file.empty() ? std::nullopt : std::optional(observed.file),
                  "texts", observed.num_texts, "tokens", observed.num_tokens);
    } else {
      json.member("text", observed.text, "ids", observed.tokens.ids, "pieces",
                  observed.tokens.pieces);
      write_positions(observed.position_ids, json.key("position_ids"));
      json.member("invalid_bytes", observed.tokens.invalid_bytes, "dropped",
                  observed.tokens.dropped, "text_tokens", observed.text_tokens);
    }
    json.member("num_layers", observed.num_layers, "num_heads", observed.num_heads, "d_model",
                observed.d_model);
    write_tables(observed, json.key("views"));
    json.key("missing").object([&] {
      for (const auto& [view, why] : observed.missing) json.member(view, why);
    });
    json.key("notes").object([&] {
      for (const auto& [view, table] : observed.tables) {
        if (!table.note.empty()) json.member(view, table.note);
      }
    });
    write_masks(observed.fillers, json.key("masks"));
    if (!observed.apart.empty()) json.member("pair", say_pair(observed));
    if (alone) write_conclusions({&observed, 1}, json);
    if (figures) write_figures(observed, json);
  });
}

// In the order of Rows, Chart and Needs.
constexpr std::array kRows = {"layers", "heads", "named"};
constexpr std::array kCharts = {"none", "lines", "stacked", "curves", "dots"};
constexpr std::array kNeeds = {"nothing", "text",  "two runs",
                               "texts",   "lines", "two runs of lines"};

/// As the page writes it, which has room for words: of "tp" "token × position".
std::string long_label(const Column& column) {
  const std::string_view key = column.key;
  if (key.size() != 2 || key.find_first_not_of("tp") != key.npos) return label_of(column);
  const auto word = [](char part) { return part == 't' ? "token" : "position"; };
  return fmt::format("{} × {}", word(key[0]), word(key[1]));
}

void write_view(const View& view, JsonWriter& json) {
  json.object([&] {
    json.member("name", view.name);
    json.member("title", view.title);
    json.member("hint", view.hint);
    json.member("unit", view.unit);
    json.member("needs", kNeeds.at(static_cast<size_t>(view.needs)));
    json.member("slow", view.slow);
    json.member("rows", kRows.at(static_cast<size_t>(view.rows)));
    json.member("row_name", view.row_name);
    json.member("chart", kCharts.at(static_cast<size_t>(view.chart)));
    json.member("series", view.series);
    json.key("columns").array(view.columns, [&](const Column& column) {
      if (!column.printed) return;
      json.object("key", column.key, "label", long_label(column), "meaning", column.meaning);
    });
  });
}

}  // namespace
}  // namespace internal

namespace lens {

std::string to_json(std::span<const Observed> runs, bool figures) {
  internal::JsonWriter json;
  const bool alone = runs.size() == 1;
  const auto write = [&] {
    for (const Observed& run : runs) internal::write_run(run, alone, figures, json);
  };
  if (alone) {
    write();
    return json.take();
  }
  json.object([&] {
    json.key("runs").array(write);
    internal::write_conclusions(runs, json);
  });
  return json.take();
}

std::string views_json() {
  internal::JsonWriter json;
  json.array(views(), [&](const View& view) { internal::write_view(view, json); });
  return json.take();
}

}  // namespace lens
}  // namespace phasor
