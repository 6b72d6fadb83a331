#include "infer/serve/live.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "files/json_writer.h"
#include "infer/render/page.h"
#include "lens/study/batch.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// Of two texts' vectors, as Encoder::embed() makes them; NaN where it makes none.
double cosine_of(std::span<const std::string> texts, const lens::Run& run,
                 const lens::ObserveOptions& options) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!run.options.cut_residuals.empty() || !run.model().has_sentence()) return kNone;
  const std::vector<std::string_view> both(texts.begin(), texts.end());
  const phasor::Vectors vectors =
      run.encoder->embed(both, {.max_tokens = options.tokenize.max_tokens,
                                .positions = run.options.positions,
                                .stop = options.stop,
                                .parse_special = options.tokenize.parse_special});
  return phasor::cosine(vectors[0], vectors[1]);
}

lens::Run run_of(const ObservedModel& model) {
  const ModelQueue& queue = *model.queue;
  lens::Run run{.encoder = &queue.encoder(), .name = queue.name()};
  run.options.positions = parse_positions(model.positions, queue.model().config().position);
  return run;
}

std::vector<lens::Run> runs_of(const Observation& observation) {
  lens::Run run = run_of(observation.model);
  if (!observation.beside) return before_and_after(std::move(run), observation.interventions);
  const bool one_model = observation.beside->queue == observation.model.queue;
  const auto label = [&](const ObservedModel& model) {
    if (model.positions == "own") return model.queue->name();
    return one_model ? model.positions : model.queue->name() + " " + model.positions;
  };
  lens::Run beside = run_of(*observation.beside);
  run.label = label(observation.model);
  beside.label = label(*observation.beside);
  return {std::move(run), std::move(beside)};
}

/// The page's JSON and the number of tokens.
std::pair<std::string, int64_t> observe(const Observation& observation, std::stop_token stop) {
  const std::vector<lens::Run> runs = runs_of(observation);
  const int64_t trained = trained_length(runs);  // 0: any
  const int64_t most =
      trained > 0 ? std::min(trained, Observation::kMostTokens) : Observation::kMostTokens;
  const std::vector<lens::Text> texts = make_texts({}, observation.texts);
  const lens::ObserveOptions options{
      .tokenize = {.parse_special = observation.parse_special, .max_tokens = most},
      .stop = std::move(stop)};
  const auto request = phasor::internal::request_of(runs, options, false);
  int64_t bytes = 0;
  for (const lens::Run& run : runs) {
    for (const lens::Text& text : texts) {
      const auto length =
          std::ssize(phasor::internal::read_text(run.model(), text, options.tokenize).tokens.ids);
      bytes += phasor::internal::observed_bytes(run.model().config(), request, length, length);
    }
  }
  observation.take(bytes);
  std::vector<std::string> observed;
  int64_t tokens = 0;
  lens::observe(runs, texts, options, [&](std::vector<Observed>&& text) {
    observed.push_back(lens::to_json(text, true));
    tokens += text[0].num_tokens;
    return true;
  });
  std::vector<double> cosines;
  if (texts.size() == 2) {
    for (const lens::Run& run : runs) cosines.push_back(cosine_of(observation.texts, run, options));
  }
  return {report_json(observed, cosines), tokens};
}

}  // namespace

bool ObserveQueue::add(Observation observation) {
  if (size_ >= kMost) return false;
  ++size_;
  boost::asio::post(observer_,
                    [this, observation = std::move(observation)] { answer(observation); });
  return true;
}

/// An observation ends when its time is up, and with the connection of its client.
void ObserveQueue::answer(const Observation& observation) {
  const RunEnd end(clock_, observation.deadline, observation.gone);
  std::pair<std::string, int64_t> observed;
  Failure failure;
  try {
    observed = observe(observation, end.token());
  } catch (...) {
    failure = observation.gone.stop_requested() ? kGone : failure_of(std::current_exception());
    if (end.token().stop_requested()) metrics_.dropped();
  }
  --size_;  // before its answer is sent: the client may send the next at once
  observation.done(std::move(observed.first), observed.second, failure);
}

std::string live_page(std::span<const std::unique_ptr<ModelQueue>> models, bool asks_key) {
  phasor::internal::JsonWriter json;
  json.object([&] {
    json.member("live", true, "key", asks_key, "version", PHASOR_VERSION);
    json.key("views").raw(lens::views_json());
    json.key("models").array(models, [&](const auto& each) {
      json.object("name", each->name(), "num_layers", each->model().config().num_layers);
    });
  });
  std::string page = page_with(json.take());
  // A report asks the network for nothing; this page asks where it came from.
  constexpr std::string_view kNothing = "default-src 'none'";
  const size_t end = page.find(kNothing) + kNothing.size();
  return page.insert(end, "; connect-src 'self'");
}

}  // namespace infer
