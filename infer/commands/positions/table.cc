#include "phasor/lens/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "files/matrix_file.h"
#include "files/spelling.h"
#include "infer/cli/command_line.h"
#include "infer/commands/positions/report.h"
#include "lens/study/run.h"
#include "phasor/errors.h"
#include "phasor/model.h"
#include "phasor/names.h"

namespace infer {
namespace {

constexpr std::string_view kRandom = "random";
constexpr int64_t kDefaultLength = 16, kDefaultWidth = 32;
constexpr int64_t kMostRowsByDefault = 512;  // of a model or a file

/// "marian" of "sinusoidal:marian", which --positions takes; other names as they are.
std::string_view layout_of(std::string_view name) {
  constexpr std::string_view kKind = "sinusoidal:";
  return name.starts_with(kKind) ? name.substr(kKind.size()) : name;
}

void set_formula(NamedTable& table, phasor::SinusoidalLayout layout, double base) {
  table.kind = "sinusoidal";
  table.description = fmt::format("sinusoidal ({}), base {:g}", phasor::to_string(layout), base);
  table.layout = layout;
  table.base = base;
  table.pairs = phasor::column_pairs(layout, table.width(), base);
}

NamedTable computed(const std::string& name, const TableSize& size) {
  const int64_t rows = size.length.value_or(kDefaultLength);
  const int64_t width = size.width.value_or(kDefaultWidth);
  NamedTable table{.name = name,
                   .description = "random, uniform in −1 … 1",
                   .kind = name,
                   .values = {.values = {}, .rows = rows, .columns = width}};
  if (name == kRandom) {
    if (size.base) throw UsageError("--base is for sinusoidal tables, not for random ones");
    table.values.values = phasor::uniform_table(rows, width);
    return table;
  }
  const double base = size.base.value_or(10000);
  if (!(base > 1) || !std::isfinite(base))
    throw UsageError(fmt::format("--base is {}; it must be above 1, like 10000", base));
  const auto layout = phasor::parse<phasor::SinusoidalLayout>(layout_of(name));
  table.first_position = usual_first_position(layout);
  table.values.values = phasor::sinusoidal_table(layout, rows, width, base, table.first_position);
  set_formula(table, layout, base);
  return table;
}

/// How many rows are shown of those that `what` has, like "the table FILE has 3 rows"; the
/// description says where these are not all, unasked.
int64_t shown_rows(const TableSize& size, int64_t available, const std::string& what,
                   std::string& description) {
  if (size.length.value_or(0) > available)
    throw phasor::InvalidArgument(fmt::format("--length is {}; {}", *size.length, what));
  const int64_t rows = size.length.value_or(std::min(available, kMostRowsByDefault));
  if (!size.length && rows < available)
    description += fmt::format(", the first {} of {}", rows, available);
  return rows;
}

NamedTable from_file(const std::string& name, const TableSize& size) {
  NamedTable table{.name = std::filesystem::path(name).filename().string(),
                   .description = name,
                   .kind = "file",
                   .values = phasor::internal::read_table(name, "the table ")};
  const std::string what = fmt::format("the table {} has {} rows", name, table.rows());
  const int64_t rows = shown_rows(size, table.rows(), what, table.description);
  return first_rows(std::move(table), rows);
}

NamedTable from_model(const std::string& name, const TableSize& size,
                      const phasor::LoadOptions& options) {
  const std::string hint = phasor::internal::did_you_mean(
      layout_of(name), phasor::names<phasor::SinusoidalLayout>().all);
  std::error_code ignored;
  if (!hint.empty() && !std::filesystem::exists(name, ignored))
    throw UsageError(fmt::format("there is no table '{}'{}", name, hint));
  const auto model = phasor::Model::load(name, options);
  const phasor::PositionConfig& own = model->config().position;
  if (own.kind == phasor::PositionKind::kNone) {
    const std::string kind = describe(own);
    throw phasor::InvalidArgument(
        kind == "none"
            ? fmt::format("the model {} has no positions to show; it sees its tokens as a set",
                          name)
            : fmt::format("the model {} has no position vectors: its positions are {}, which act "
                          "within attention; infer observe -m {} --only relative TEXT shows them "
                          "by offset",
                          name, kind, name));
  }
  const int64_t trained = model->config().max_positions;
  const int64_t unlimited =
      std::min(trained > 0 ? trained : kMostRowsByDefault, kMostRowsByDefault);
  const int64_t available = model->max_tokens().value_or(size.length.value_or(unlimited));
  std::string description = ", of the model " + name;
  const int64_t rows = shown_rows(
      size, available, fmt::format("the model {} has {} positions", name, available), description);
  const std::vector<float> values = model->position_vectors(rows);
  NamedTable table{.name = phasor::internal::short_name(name),
                   .description = "learned",
                   .kind = "learned",
                   .values = {{values.begin(), values.end()}, rows, std::ssize(values) / rows},
                   .first_position = own.first_position};
  if (own.kind == phasor::PositionKind::kSinusoidal) set_formula(table, own.layout, own.base);
  table.description += description;
  return table;
}

}  // namespace

bool is_computed(const std::string& name) {
  const auto layouts = phasor::names<phasor::SinusoidalLayout>().all;
  return name == kRandom || std::ranges::find(layouts, layout_of(name)) != layouts.end();
}

NamedTable find_table(const std::string& name, const TableSize& size,
                      const phasor::LoadOptions& options) {
  std::error_code ignored;
  const bool is_file =
      phasor::internal::is_table_file(name) || std::filesystem::is_regular_file(name, ignored);
  NamedTable table = is_computed(name) ? computed(name, size)
                     : is_file         ? from_file(name, size)
                                       : from_model(name, size, options);
  if (!table.layout) {  // no formula says which columns turn together
    for (int64_t i = 0; i + 1 < table.width(); i += 2)
      table.pairs.push_back({.sine = i, .cosine = i + 1, .frequency = 0});
  }
  return table;
}

NamedTable first_rows(NamedTable table, int64_t rows) {
  table.values.rows = std::min(rows, table.values.rows);
  table.values.values.resize(table.values.rows * table.values.columns);
  return table;
}

}  // namespace infer
