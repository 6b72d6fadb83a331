#include "infer/cli/interventions.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "infer/commands.h"
#include "infer/files/table_file.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Positions;

[[noreturn]] void fail(const std::string& edit, std::string_view expected) {
  throw UsageError(fmt::format("--edit {}: {}", edit, expected));
}

Positions edited(const Positions& positions, const std::string& edit) {
  const size_t equals = edit.find('=');
  const std::string_view kind = std::string_view(edit).substr(0, equals);
  const std::string_view value =
      equals == edit.npos ? "" : std::string_view(edit).substr(equals + 1);
  if (edit == "zero") return positions.scaled(0);
  if (edit == "reverse") return positions.reversed();
  if (edit == "repeat") return positions.repeated();
  if (kind == "scale") {
    const auto factor = parse_number<float>(value);
    if (!factor || !std::isfinite(*factor)) fail(edit, "write a factor, like scale=0.5");
    return positions.scaled(*factor);
  }
  if (kind == "shift") {
    const auto offset = parse_number<int64_t>(value);
    if (!offset) fail(edit, "write a whole number, like shift=3 or shift=-1");
    return positions.shifted(*offset);
  }
  if (kind == "swap") {
    const size_t comma = value.find(',');
    const auto i = parse_number<int64_t>(value.substr(0, comma));
    const auto j = parse_number<int64_t>(comma == value.npos ? "" : value.substr(comma + 1));
    if (!i || !j) fail(edit, "write two tokens, counted from 0, like swap=2,5");
    return positions.swapped(*i, *j);
  }
  if (kind == "shuffle") {
    const auto seed = parse_number<uint64_t>(value);
    if (!seed) fail(edit, "write a seed, like shuffle=7");
    return positions.shuffled(*seed);
  }
  fail(edit,
       "there are zero, scale=X, shift=N, swap=I,J, reverse, shuffle=SEED, repeat and table=FILE");
}

constexpr std::string_view kTable = "table=";

phasor::ResidualCut parse_cut(const std::string& cut, int64_t num_layers) {
  using Site = phasor::ResidualCut::Site;
  const size_t dot = cut.find('.');
  const std::string site = dot == cut.npos ? "" : cut.substr(dot + 1);
  const auto layer = parse_number<int64_t>(std::string_view(cut).substr(0, dot));
  const bool known = dot == cut.npos || site == "attn" || site == "mlp";
  if (!layer || !known) {
    throw UsageError(fmt::format(
        "--cut-residual: '{}' is no layer; write 1, 1.attn or 1.mlp for the first", cut));
  }
  if (*layer < 1 || *layer > num_layers) {
    throw phasor::InvalidArgument(
        fmt::format("--cut-residual: there is no layer {}; this model's are 1 to {}",
                    cut.substr(0, dot), num_layers));
  }
  return {.layer = *layer - 1,
          .site = site.empty() ? Site::kBoth : (site == "attn" ? Site::kAttention : Site::kMlp)};
}

}  // namespace

void add_interventions(CommandLine& line, Interventions& interventions) {
  line.list("--edit", "EDIT",
            "change the positions, and show before and after: zero, scale=X, shift=N, swap=I,J "
            "(tokens, from 0), reverse, shuffle=SEED, repeat (the first for all) or table=FILE "
            "(.npy, .npz, .safetensors); repeatable, in order",
            interventions.edits);
  line.list("--cut-residual", "LAYER",
            "run without a residual connection, and show before and after: LAYER, LAYER.attn or "
            "LAYER.mlp, from 1; repeatable",
            interventions.cuts);
}

phasor::RunOptions intervened(const phasor::RunOptions& run, const Interventions& interventions,
                              const phasor::ModelConfig& config) {
  phasor::RunOptions options = run;
  // The table is what the other edits choose rows from, wherever it stands among them.
  for (const std::string& edit : interventions.edits) {
    if (!edit.starts_with(kTable)) continue;
    const Matrix table = read_table(edit.substr(kTable.size()));
    options.positions = Positions::table({.rows = table.rows,
                                          .d_model = table.columns,
                                          .values = {table.values.begin(), table.values.end()}});
  }
  for (const std::string& edit : interventions.edits) {
    if (!edit.starts_with(kTable)) options.positions = edited(options.positions, edit);
  }
  for (const std::string& cut : interventions.cuts) {
    options.cut_residuals.push_back(parse_cut(cut, config.num_layers));
  }
  return options;
}

}  // namespace infer
