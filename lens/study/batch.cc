#include "lens/study/batch.h"

#include <fmt/format.h>

#include <algorithm>
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

std::vector<std::vector<int32_t>> checked_tokens(const Subject& subject,
                                                 std::span<const Input> inputs,
                                                 const Request& request) {
  check_lengths(subject, inputs, request);
  return token_ids_of(inputs);
}

}  // namespace

int64_t observed_bytes(const ModelConfig& config, const Request& request, int64_t tokens,
                       int64_t window, int64_t runs) {
  const int64_t place_bytes = request.measures(measure_direct) ? 48 : 16;  // of all places, or few
  constexpr int64_t kHeadBytes = 16384;  // a head's rows of all tables, and their JSON
  const int64_t heads = config.num_layers * config.num_heads;
  // A pattern that is kept: traced and kept, then kept, in 8 bits, and as text.
  int64_t patterns = request.measures(measure_attention) ? 8 * config.num_heads : 0;
  if (request.patterns || request.arrays) patterns = 8 * heads;  // arrays: all are saved
  return place_bytes * (config.num_layers + 1) * tokens * config.d_model +
         runs * (kHeadBytes * heads + patterns * window * window);
}

void check_lengths(const Subject& subject, std::span<const Input> inputs, const Request& request) {
  constexpr int64_t kMostBytes = 400'000'000;
  const Model& model = subject.model();
  const int64_t most = kMostBytes + 8 * model.num_parameters();
  const auto fits = [&](int64_t tokens) {
    const bool windows = subject.options.overflow == Overflow::kWindow;
    const int64_t window =
        windows ? model.max_tokens(subject.options.positions).value_or(tokens) : tokens;
    return observed_bytes(model.config(), request, tokens, std::min(tokens, window)) <= most;
  };
  for (const Input& input : inputs) {
    auto tokens = std::ssize(input.token_ids);
    if (fits(tokens)) continue;
    while (tokens > 1 && !fits(tokens)) tokens -= tokens / 8 + 1;
    throw InvalidArgument(
        fmt::format("a text has {} tokens; to observe them would take more than {} MB: cut it to "
                    "about {} (infer observe --max-tokens {})",
                    input.token_ids.size(), most / 1'000'000, tokens, tokens));
  }
}

bool Request::asks(std::string_view view) const {
  return std::ranges::any_of(views, [&](const View* asked) { return asked->name == view; });
}

bool Request::measures(void (*measure)(Batch&)) const {
  return std::ranges::any_of(views, [&](const View* asked) { return asked->of_texts == measure; });
}

Batch::Batch(const Subject& subject, std::span<const Input> inputs, const Request& request,
             const Stages& stages)
    : subject_(subject),
      request_(request),
      stages_(stages),
      sequences_(checked_tokens(subject, inputs, request)),
      listener_(traced(request),
                {.attention = request.measures(measure_attention),
                 .mean_patterns = request.asks("rollout"),
                 .patterns = request.patterns},
                special_places(subject.model(), inputs)),
      encoding_(subject.run(sequences_, listener_)) {
  for (int64_t i = 0; i < std::ssize(inputs); ++i) begin_text(inputs[i], i);
}

std::span<const float> Batch::state(int64_t l, int64_t i) const {
  return listener_.trace().hidden_state(l, i).values;
}

bool Batch::in_windows(const Observed& text) const {
  return subject_.options.overflow == Overflow::kWindow &&
         text.num_tokens() >
             subject_.model().max_tokens(subject_.options.positions).value_or(text.num_tokens());
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
  text.input = input;
  text.position_ids = {encoding_.positions(i).begin(), encoding_.positions(i).end()};
  keep_leading_tokens(text.input, encoding_.num_tokens(i));
  sequences_[i] = text.input.token_ids;
  text.text_tokens = text_places(subject_.model(), text.input.token_ids);
  text.masks = mask_reports(subject_.encoder, encoding_, i, request_.top_k);
  const Trace& trace = listener_.trace();
  if (trace.has(Hook::kPosEmbed, -1, i) && !in_windows(text)) {
    text.position_vectors = trace.at(Hook::kPosEmbed, -1, i).values;
  }
  for (int64_t l = 0; l <= config.num_layers; ++l) {
    const std::vector<float>& values = trace.hidden_state(l, i).values;
    text.add("norm", {.layer = l, .cells = {mean_norm(values, config.d_model)}});
    if (request_.states) text.states.push_back(values);
  }
  for (int64_t l = 0; request_.patterns && l < config.num_layers; ++l) {
    text.patterns.push_back(trace.at(Hook::kPattern, l, i).values);
  }
}

std::vector<Observed> observe_texts(const Subject& subject, std::span<const Input> inputs,
                                    const Request& request, const Stages& stages) {
  Batch batch(subject, inputs, request, stages);
  std::set<void (*)(Batch&)> done = {nullptr};
  for (const View* view : request.views) {
    if (subject.options.stop.stop_requested())
      throw Error(ErrorCode::kCancelled, "the observation was cancelled");
    if (done.insert(view->of_texts).second) view->of_texts(batch);
  }
  return std::move(batch.texts());
}

std::vector<std::vector<Observed>> observe_texts(std::span<const Subject> subjects,
                                                 std::span<const Input> inputs, Request request,
                                                 const Stages& stages) {
  request.states = subjects.size() == 2;
  std::vector<std::vector<Observed>> texts(inputs.size());
  for (const Subject& subject : subjects) {
    size_t i = 0;
    for (Observed& text : observe_texts(subject, inputs, request, stages)) {
      texts[i++].push_back(std::move(text));
    }
  }
  for (std::vector<Observed>& runs : texts) {
    if (runs.size() == 2) measure_moved(runs[0], runs[1]);
    for (Observed& run : runs) run.states.clear();
  }
  return texts;
}

}  // namespace phasor::internal
