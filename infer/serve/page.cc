// The page at /, a report that is drawn anew as its reader types, and what it asks for.
#include "infer/render/page.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "infer/cli/input_options.h"
#include "infer/serve/exchange.h"
#include "lens/study/batch.h"
#include "phasor/version.h"

namespace infer {
namespace {

constexpr int64_t kMostTokens = 128;            // a text's pattern has the square of its length
constexpr int64_t kMostObservedBytes = 10'000;  // of a text
constexpr int64_t kMostInterventions = 32;

/// A model and its positions.
struct ObservedModel {
  const ModelQueue* queue = nullptr;
  std::string positions = "own";  // as --positions has them

  bool operator==(const ObservedModel&) const = default;
};

/// What is observed: texts in one run of a model, in runs before and after interventions, or in
/// runs of two models.
struct Observation {
  ObservedModel model;
  std::optional<ObservedModel> beside = {};  // then there are no interventions
  std::vector<std::string> texts;  // are cut to kMostTokens, and to what the models were trained on
  bool parse_special = false;      // as TokenizeOptions has it
  Interventions interventions = {};
};

/// Options of the command line in a message become the fields that give them.
Failure in_fields(Failure failure) {
  for (const auto& [option, field] :
       {std::pair("--edit", "`edits`"), std::pair("--cut-residual", "`cut_residuals`"),
        std::pair("--positions", "`positions` or `beside_positions`")}) {
    if (failure.message.starts_with(option)) failure.message.replace(0, std::strlen(option), field);
  }
  constexpr std::string_view kFiles = " (or table=FILE)";  // which the server does not read
  if (const size_t at = failure.message.find(kFiles); at != std::string::npos)
    failure.message.erase(at, kFiles.size());
  return failure;
}

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

/// The page's JSON. What it takes is counted for the request, and its tokens.
std::string observed(const Observation& observation, std::stop_token stop, Exchange& exchange) {
  const std::vector<lens::Run> runs = runs_of(observation);
  const int64_t trained = trained_length(runs);  // 0: any
  const int64_t most = trained > 0 ? std::min(trained, kMostTokens) : kMostTokens;
  const std::vector<lens::Text> texts = make_texts({}, observation.texts);
  const lens::ObserveOptions options{
      .tokenize = {.parse_special = observation.parse_special, .max_tokens = most},
      .stop = std::move(stop)};
  auto request = phasor::internal::request_of(runs, options, false);
  phasor::internal::FirstText first;
  if (runs.size() == 1 && texts.size() == 2) request.first = &first;  // as observe() does
  int64_t bytes = 0;
  for (const lens::Run& run : runs) {
    for (const lens::Text& text : texts) {
      const auto length =
          std::ssize(phasor::internal::read_text(run.model(), text, options.tokenize).tokens.ids);
      bytes += phasor::internal::observed_bytes(run.model().config(), request, length, length);
    }
  }
  exchange.take(bytes);
  std::vector<std::string> made;
  lens::observe(runs, texts, options, [&](std::vector<Observed>&& text) {
    made.push_back(lens::to_json(text, true));
    exchange.tokens += text[0].num_tokens;
    return true;
  });
  std::vector<double> cosines;
  if (texts.size() == 2) {
    for (const lens::Run& run : runs) cosines.push_back(cosine_of(observation.texts, run, options));
  }
  return report_json(made, cosines);
}

}  // namespace

Observer::Clients::iterator Observer::enter(std::stop_token gone) {
  const std::lock_guard lock(mutex);
  const auto waits = [](const std::stop_token& client) { return !client.stop_requested(); };
  if (std::ranges::count_if(clients, waits) >= kMost)
    refuse(429, "Overloaded", "too many observations wait; try again later");
  return clients.insert(clients.end(), std::move(gone));
}

void Observer::leave(Clients::iterator client) {
  const std::lock_guard lock(mutex);
  clients.erase(client);
}

std::string live_page(std::span<const std::unique_ptr<ModelQueue>> models, bool asks_key) {
  JsonWriter json;
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

void Exchange::get_page() {
  answer(HttpResponse{
      .body = service.page_,
      .content_type = "text/html; charset=utf-8",
      .headers = {{"Content-Security-Policy",
                   "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src "
                   "'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'; "
                   "frame-ancestors 'none'"},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "no-cache"}}});
}

void Exchange::observe() {
  Observation observation{
      .model = {&model(), fields->text("positions", "own")},
      .texts = fields->texts("texts", {2}),
      .parse_special = read_options(*asked, 0, *fields, *fields).parse_special,
      .interventions = {.edits = fields->list("edits", {kMostInterventions}),
                        .cuts = fields->list("cut_residuals", {kMostInterventions})}};
  const std::string beside = fields->text("beside", "");
  const std::string beside_positions = fields->text("beside_positions", "");
  fields->refuse_others();
  if (!beside.empty() || !beside_positions.empty()) {
    observation.beside = {beside.empty() ? observation.model.queue : &model(beside),
                          beside_positions.empty() ? "own" : beside_positions};
    if (observation.interventions.any()) invalid("`beside` and edits or cuts exclude each other");
    if (*observation.beside == observation.model)
      invalid("`beside` is the same model with the same positions");
  }
  has_read(*observation.model.queue, observation.texts.size());
  for (const std::string& text : observation.texts) {
    if (std::ssize(text) > kMostObservedBytes)
      invalid("a text has {} bytes; at most {} are observed", text.size(), kMostObservedBytes);
  }
  for (const std::string& edit : observation.interventions.edits) {
    if (edit.starts_with("table=")) invalid("the server reads no files, so there is no table=");
  }
  Observer& observer = service.observer_;
  const auto place = observer.enter(gone);
  boost::asio::post(observer.thread, [self = shared_from_this(), this, &observer, place,
                                      observation = std::move(observation)] {
    const RunEnd end(observer.time, start + service.options_.timeout, gone);
    std::string page;
    Failure failure;
    try {
      page = observed(observation, end.token(), *this);
    } catch (...) {
      failure = gone.stop_requested() ? kGone : in_fields(failure_of(std::current_exception()));
      if (end.token().stop_requested()) service.metrics_.dropped();
    }
    observer.leave(place);  // before its answer is sent: the client may send the next at once
    attempt([&] { failure.status != 0 ? fail(failure) : answer(std::move(page)); });
  });
}

}  // namespace infer
