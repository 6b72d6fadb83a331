#include "infer/serve/live.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>

#include "files/json_writer.h"
#include "infer/render/page.h"
#include "lens/study/batch.h"
#include "phasor/errors.h"
#include "phasor/version.h"

namespace infer {

namespace asio = boost::asio;

ObserveQueue::ObserveQueue(Metrics& metrics)
    : metrics_(metrics), thread_([this](const std::stop_token& stop) { work(stop); }) {}

ObserveQueue::~ObserveQueue() {
  thread_.request_stop();
  thread_.join();
}

bool ObserveQueue::add(Observation observation) {
  {
    const std::lock_guard lock(mutex_);
    const auto gone = [](const Observation& each) { return each.gone.stop_requested(); };
    for (size_t dropped = std::erase_if(queue_, gone); dropped > 0; --dropped) metrics_.dropped();
    if (queue_.size() >= kMostWaiting) return false;
    queue_.push_back(std::move(observation));
  }
  ready_.notify_one();
  return true;
}

void ObserveQueue::work(const std::stop_token& stop) {
  while (true) {
    Observation next;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, stop, [&] { return !queue_.empty(); });
      if (stop.stop_requested()) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    // An observation ends when nobody waits for it, when its time is up, and with the server.
    std::stop_source ends;
    const auto end = [&] { ends.request_stop(); };
    const std::stop_callback with_client(next.gone, end), with_server(stop, end);
    asio::steady_timer timer(clock_, next.deadline);
    if (Clock::now() >= next.deadline) end();
    timer.async_wait([ends](boost::system::error_code error) mutable {
      if (!error) ends.request_stop();
    });
    std::pair<std::string, int64_t> observed;
    Failure failure;
    try {
      observed = observe(next, ends.get_token());
    } catch (...) {
      failure = failure_of(std::current_exception());
      if (ends.stop_requested()) {
        failure = next.gone.stop_requested() ? kGone : kLate;
        metrics_.dropped();
      }
    }
    next.done(std::move(observed.first), observed.second, failure);
  }
}

std::pair<std::string, int64_t> ObserveQueue::observe(const Observation& observation,
                                                      std::stop_token stop) {
  const ModelQueue& queue = *observation.model;
  auto found = encoders_.find(&queue);
  if (found == encoders_.end()) found = encoders_.emplace(&queue, queue.encoder().replica()).first;
  phasor::Encoder& encoder = found->second;
  const phasor::Model& model = queue.model();

  lens::Run run{.encoder = &encoder, .name = queue.name()};
  run.options.positions = parse_positions(observation.positions, model.config().position);
  const int64_t trained = trained_length(encoder, run.options).value_or(Observation::kMostTokens);
  const std::vector<lens::Run> runs = before_and_after(run, observation.interventions);
  const std::vector<lens::Text> texts = make_texts({}, observation.texts);
  const lens::ObserveOptions options{
      .tokenize = {.parse_special = observation.parse_special,
                   .max_tokens = std::min(trained, Observation::kMostTokens)},
      .stop = std::move(stop)};
  const auto request = phasor::internal::request_of(runs, options, false);
  int64_t bytes = 0;
  for (const lens::Text& text : texts) {
    const auto length =
        std::ssize(phasor::internal::read_text(model, text, options.tokenize).tokens.ids);
    bytes +=
        phasor::internal::observed_bytes(model.config(), request, length, length, std::ssize(runs));
  }
  observation.take(bytes);
  std::vector<std::string> observed;
  int64_t tokens = 0;
  lens::observe(runs, texts, options, [&](std::vector<Observed>&& text) {
    observed.push_back(lens::to_json(text, true));
    tokens += text[0].num_tokens;
    return true;
  });
  return {report_json(observed), tokens};
}

std::string live_page(std::span<const std::unique_ptr<ModelQueue>> models, bool asks_key) {
  phasor::internal::JsonWriter json;
  json.object([&] {
    json.member("live", true);
    json.member("key", asks_key);
    json.member("version", PHASOR_VERSION);
    json.key("views").raw(lens::views_json());
    json.key("models").array([&] {
      for (const auto& queue : models) {
        json.object([&] {
          json.member("name", queue->name());
          json.member("num_layers", queue->model().config().num_layers);
        });
      }
    });
  });
  std::string page = page_with(json.take());
  // A report asks the network for nothing; this page asks where it came from.
  constexpr std::string_view kNothing = "default-src 'none'";
  const size_t end = page.find(kNothing) + kNothing.size();
  return page.insert(end, "; connect-src 'self'");
}

}  // namespace infer
