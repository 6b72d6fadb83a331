#include "lens/study/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "lens/study/measures.h"
#include "phasor/errors.h"

namespace phasor::internal {
namespace {

Trace traced(const Request& request) {
  if (request.measures(measure_direct)) return residual_trace();
  return Trace{Hook::kPosEmbed, Hook::kFullEmbed, Hook::kResidPost, Hook::kNormalizedResidPost,
               Hook::kFinalNorm};
}

/// The inputs' ids, if observing them takes little enough memory.
std::vector<std::vector<int32_t>> checked_tokens(const lens::Run& subject,
                                                 std::span<const Input> inputs,
                                                 const Request& request) {
  constexpr int64_t kMostBytes = 400'000'000;
  const Model& model = subject.model();
  const int64_t most = kMostBytes + 8 * model.num_parameters();
  const auto fits = [&](int64_t tokens) {
    const bool windows = subject.options.overflow == Overflow::kWindow;
    const int64_t window =
        windows ? model.max_tokens(subject.options.positions).value_or(tokens) : tokens;
    return observed_bytes(model.config(), request, tokens, std::min(tokens, window)) <= most;
  };
  std::vector<std::vector<int32_t>> sequences;
  for (const Input& input : inputs) {
    auto tokens = std::ssize(sequences.emplace_back(input.tokens.ids));
    if (fits(tokens)) continue;
    while (tokens > 1 && !fits(tokens)) tokens -= tokens / 8 + 1;
    throw InvalidArgument(
        fmt::format("a text has {} tokens; to observe them would take more than {} MB: cut it to "
                    "about {} (max_tokens; infer observe --max-tokens {})",
                    input.tokens.ids.size(), most / 1'000'000, tokens, tokens));
  }
  return sequences;
}

}  // namespace

int64_t observed_bytes(const ModelConfig& config, const Request& request, int64_t tokens,
                       int64_t window, int64_t runs) {
  int64_t place_bytes = request.measures(measure_direct) ? 48 : 16;  // of all places, or few
  if (request.first != nullptr) place_bytes += 8;
  constexpr int64_t kHeadBytes = 16384;  // a head's rows of all tables, and their JSON
  const int64_t heads = config.num_layers * config.num_heads;
  // A pattern that is kept: traced and kept, then kept, in 8 bits, and as text.
  int64_t patterns = request.measures(measure_attention) ? 8 * config.num_heads : 0;
  if (request.patterns || request.arrays) patterns = 8 * heads;  // arrays: all are saved
  return place_bytes * (config.num_layers + 1) * tokens * config.d_model +
         runs * (kHeadBytes * heads + patterns * window * window);
}

bool Request::asks(std::string_view view) const {
  return std::ranges::any_of(views, [&](const View* asked) { return asked->name == view; });
}

bool Request::measures(void (*measure)(Batch&)) const {
  return std::ranges::any_of(
      views, [&](const View* asked) { return measure_of(*asked) == Measure(measure); });
}

Request request_of(std::span<const lens::Run> runs, const lens::ObserveOptions& options,
                   bool means) {
  Request request{.without = options.without,
                  .seed = options.seed,
                  .top_k = options.top_k,
                  .lines = options.masked,
                  .max_tokens = options.tokenize.max_tokens};
  const auto named = [&](std::string_view name) {
    return std::ranges::count(options.views, name) > 0;
  };
  for (const std::string& name : options.views) {
    if (name != "all" && std::ranges::count(lens::views(), name, &View::name) == 0)
      throw InvalidArgument(fmt::format("there is no view '{}'; views() lists them", name));
  }
  const Lacks lacks{.text = means ? "a text by itself" : nullptr,
                    .second_run = runs.size() == 2 ? nullptr : "two runs",
                    .texts = means ? nullptr : "many texts as one",
                    .lines = options.masked.empty() ? "lines whose tokens are masked" : nullptr};
  for (const View& view : lens::views()) {
    const bool unnamed = options.views.empty() ? !view.slow : named("all");
    const char* const lack = lacking(view.needs, lacks);
    if (named(view.name) && lack != nullptr && !options.allowed_only)
      throw InvalidArgument(fmt::format("the view '{}' needs {}", view.name, lack));
    if (lack == nullptr && (unnamed || named(view.name))) request.views.push_back(&view);
  }
  request.patterns = request.asks("pattern");
  return request;
}

Batch::Batch(const lens::Run& subject, std::span<const Input> inputs, const Request& request,
             const Stages& stages)
    : subject_(subject),
      request_(request),
      stages_(stages),
      sequences_(checked_tokens(subject, inputs, request)),
      observer_(traced(request),
                {.attention = request.measures(measure_attention), .patterns = request.patterns},
                special_places(subject.model(), inputs)),
      encoding_(encode(subject, sequences_, observer_)) {
  for (int64_t i = 0; i < std::ssize(inputs); ++i) begin_text(inputs[i], i);
  std::set<Measure> done;
  for (const View* view : request.views) {
    stages.check();
    const Measure measure = measure_of(*view);
    const auto* const run = std::get_if<void (*)(Batch&)>(&measure);
    if (done.insert(measure).second && run != nullptr) (*run)(*this);
  }
}

std::span<const float> Batch::state(int64_t l, int64_t i) const {
  return observer_.trace().hidden_state(l, i).values;
}

bool Batch::in_windows(const Observed& text) const {
  return subject_.options.overflow == Overflow::kWindow &&
         text.num_tokens >
             subject_.model().max_tokens(subject_.options.positions).value_or(text.num_tokens);
}

bool Batch::missed_by_windows(int64_t i, std::string_view view) {
  if (!in_windows(texts_[i])) return false;
  texts_[i].missing[std::string(view)] = "the text was run in overlapping windows";
  return true;
}

void Batch::miss(std::string_view view, const std::string& why) {
  for (Observed& text : texts_) text.missing[std::string(view)] = why;
}

void Batch::begin_text(const Input& input, int64_t i) {
  const ModelConfig& config = subject_.model().config();
  Observed& text = texts_.emplace_back(described(subject_));
  text.text = input.text;
  text.tokens = input.tokens;
  text.mask_as_text = input.mask_as_text;
  keep_leading_tokens(text.tokens, encoding_[i].num_tokens());
  text.num_tokens = encoding_[i].num_tokens();
  text.num_cut = text.tokens.dropped > 0 ? 1 : 0;
  text.position_ids = {encoding_[i].positions.begin(), encoding_[i].positions.end()};
  sequences_[i] = text.tokens.ids;
  text.text_tokens = text_places(subject_.model(), text.tokens.ids);
  text.fillers = likely_fillers(*subject_.encoder, encoding_, i, request_.top_k);
  const Trace& trace = observer_.trace();
  if (trace.has(Hook::kPosEmbed, -1, i) && !in_windows(text)) {
    text.position_vectors = trace.at(Hook::kPosEmbed, -1, i).values;
  }
  for (int64_t l = 0; l <= config.num_layers; ++l) {
    const std::vector<float>& values = trace.hidden_state(l, i).values;
    add_row(text, "norm", {.layer = l, .cells = {mean_norm(values, config.d_model)}});
  }
  for (int64_t l = 0; request_.patterns && l < config.num_layers; ++l) {
    text.patterns.push_back(trace.at(Hook::kPattern, l, i).values);
  }
}

bool RunObserver::wants(Hook hook, int64_t layer) const {
  if (hook == Hook::kPattern) return wants_.attention || wants_.patterns;
  return trace_.wants(hook, layer);
}

void RunObserver::observe(const HookEvent& event) {
  if (event.hook != Hook::kPattern || wants_.patterns) trace_.observe(event);
  if (event.hook != Hook::kPattern || !wants_.attention) return;
  const int64_t num_heads = event.shape[0], tokens = event.shape[1];
  std::vector<int64_t> special;  // of this window
  for (const int64_t place : special_.at(event.sequence)) {
    const int64_t t = place - event.first_token;
    if (t >= 0 && t < tokens) special.push_back(t);
  }
  Sum& sum = sums_[{event.layer, event.sequence}];
  sum.heads = head_profiles(event.values, num_heads, tokens, special);
  const auto rows = static_cast<double>(tokens);
  for (const HeadProfile& head : sum.heads) {
    for (int64_t d = 1 - tokens; d < tokens; ++d) {
      Sum::Offset& at = sum.by_offset[d];
      const auto having = static_cast<double>(tokens - std::abs(d));
      at.weight += head.by_offset[d + tokens - 1] * having;
      at.rows += having;
    }
    sum.distance += head.mean_distance * rows;
    sum.entropy_share += head.entropy_share * rows;
    sum.rows += rows;
  }
  ++sum.windows;
}

ObservedAttention RunObserver::attention(int64_t layer, int64_t sequence) const {
  const Sum& sum = sums_.at({layer, sequence});
  ObservedAttention attention{.by_offset = {},
                              .distance = sum.distance / sum.rows,
                              .entropy_share = sum.entropy_share / sum.rows};
  if (sum.windows == 1) attention.heads = sum.heads;
  for (const auto& [offset, at] : sum.by_offset) attention.by_offset[offset] = at.weight / at.rows;
  return attention;
}

}  // namespace phasor::internal
