// What the layers of encoders do with positions, as JSON.
#include "phasor/lens/observe.h"

#include <fmt/format.h>

#include "capi/boundary.h"
#include "lens/study/run.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostBesideMeans = 16;  // texts with figures

std::string text_of(const char* text, const char* otherwise = "") {
  return text != nullptr ? text : otherwise;
}

phasor_run_options run_options_of(const phasor_run_options* given) {
  const auto c = options_of(given, "phasor_run_options", &phasor_run_options::reserved);
  if (c.num_record != 0 || c.num_hooks != 0 || c.hidden != nullptr || c.token_types != nullptr ||
      c.stop != nullptr) {
    throw InvalidArgument(
        "of the options of a run that is observed, only positions, overflow, cut residual "
        "connections and parse_special count");
  }
  return c;
}

lens::Run run_of(phasor_encoder* encoder, const phasor_run_options* given, const char* name,
                 std::string label) {
  require(encoder, "the encoder");
  const phasor_run_options c = run_options_of(given);
  lens::Run run{.encoder = &encoder->encoder, .label = std::move(label), .name = text_of(name)};
  run.options.positions = positions_of(c.positions, run.model().config().position);
  run.options.overflow = value_of(c.overflow, Overflow::kError);
  run.options.cut_residuals = cuts_of(c);
  if (c.positions == nullptr) return run;
  for (const char* const edit : array_at(c.positions->edits, c.positions->num_edits, "edits"))
    run.edits.emplace_back(edit);
  return run;
}

StageProgress stages_of(phasor_stage_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](std::string_view stage, int64_t done, int64_t total) {
    if (progress(user, std::string(stage).c_str(), done, total) == 0) return;
    throw Error(ErrorCode::kCancelled, "the progress function ended the call");
  };
}

/// Runs the texts, and adds the JSON of each.
void observe_all(std::span<const lens::Run> runs, const phasor_texts* given,
                 const phasor_observe_options& c, bool means, phasor_result& result) {
  std::vector<lens::Text> texts;
  for (const std::string_view text : texts_of(given, "texts")) texts.push_back({std::string(text)});
  if (c.top_k < 0) throw InvalidArgument(fmt::format("top_k is {}; give 1 or more", c.top_k));
  std::vector<std::string> masked;
  if (c.masked != nullptr)
    for (const auto line : texts_of(c.masked, "masked lines")) masked.emplace_back(line);
  lens::ObserveOptions options{
      .without = text_of(c.without, "mean"),
      .seed = c.seed != 0 ? c.seed : 1,
      .top_k = c.top_k != 0 ? c.top_k : 5,
      .baseline = c.baseline != nullptr ? lens::baseline_of(c.baseline) : lens::Baseline(),
      .arrays_of = c.figures == 0 ? 0
                   : means        ? kMostBesideMeans
                                  : std::ssize(texts),
      .masked = masked,
      .progress = stages_of(c.progress, c.user),
      .stop = stop_of(c.stop),
      .allowed_only = c.allowed_only != 0};
  for (const char* const view : array_at(c.views, c.num_views, "views")) {
    require(view, "the name of a view");
    options.views.emplace_back(view);
  }
  options.tokenize.max_tokens = c.max_tokens == 0 && means ? trained_length(runs) : c.max_tokens;
  options.tokenize.parse_special = run_options_of(c.run).parse_special != 0;
  const auto add = [&](std::vector<lens::Observed> runs, bool figures) {
    for (lens::Observed& run : runs) keep_views(run, options.views);
    result.strings["observed"].push_back(lens::to_json(runs, figures));
  };
  const auto take = [&](std::vector<lens::Observed>&& text) {
    add(std::move(text), c.figures != 0);
    return true;
  };
  if (means)
    add(lens::observe_means(runs, texts, options, take), false);
  else
    lens::observe(runs, texts, options, take);
}

}  // namespace
}  // namespace phasor::internal

extern "C" {

using namespace phasor::internal;  // NOLINT

phasor_status phasor_observe(phasor_encoder* encoder, const phasor_texts* texts,
                             const phasor_observe_options* options, phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    const auto c = options_of(options, "phasor_observe_options", &phasor_observe_options::stop);
    const bool two = c.second != nullptr;
    std::vector<phasor::lens::Run> runs = {
        run_of(encoder, c.run, c.name, text_of(c.label, two ? "before" : ""))};
    if (two) runs.push_back(run_of(encoder, c.second, c.name, text_of(c.second_label, "after")));
    observe_all(runs, texts, c, c.means != 0, made);
  });
}

phasor_status phasor_compare(phasor_encoder* first, phasor_encoder* second,
                             const phasor_texts* texts, const phasor_observe_options* options,
                             phasor_result** result) {
  return make_result(result, [&](phasor_result& made) {
    const auto c = options_of(options, "phasor_observe_options", &phasor_observe_options::stop);
    const phasor::lens::Run runs[] = {
        run_of(first, c.run, c.name, text_of(c.label)),
        run_of(second, c.second, c.second_name, text_of(c.second_label))};
    observe_all(runs, texts, c, true, made);
  });
}

}  // extern "C"
