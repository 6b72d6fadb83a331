#include "infer/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace infer {
namespace {

/// A label's value as the format has it.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
  }
  return text;
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP phasor_{0} {2}\n# TYPE phasor_{0} {1}\n", name, type, help);
}

}  // namespace

void Metrics::request(std::string_view route, std::string_view model, int status, double seconds) {
  const std::string labels =
      fmt::format("route=\"{}\",model=\"{}\"", escaped(route), escaped(model));
  const std::lock_guard lock(mutex_);
  ++requests_[{labels, status}];
  Durations& durations = durations_[labels];
  ++durations.counts[std::ranges::lower_bound(Durations::kBounds, seconds) - Durations::kBounds];
  durations.sum += seconds;
}

std::string Metrics::text(const std::vector<std::pair<std::string, int64_t>>& waiting) const {
  const std::lock_guard lock(mutex_);
  std::string text = head("requests_total", "counter", "Requests by route, model and status.");
  for (const auto& [key, count] : requests_) {
    text +=
        fmt::format("phasor_requests_total{{{},status=\"{}\"}} {}\n", key.first, key.second, count);
  }
  text += head("request_seconds", "histogram", "From a request's arrival to its answer.");
  for (const auto& [labels, durations] : durations_) {
    uint64_t count = 0;
    for (size_t i = 0; i < std::size(durations.counts); ++i) {
      count += durations.counts[i];
      const std::string bound =
          i < std::size(Durations::kBounds) ? fmt::format("{}", Durations::kBounds[i]) : "+Inf";
      text +=
          fmt::format("phasor_request_seconds_bucket{{{},le=\"{}\"}} {}\n", labels, bound, count);
    }
    text += fmt::format(
        "phasor_request_seconds_sum{{{0}}} {1}\nphasor_request_seconds_count{{{0}}} {2}\n", labels,
        durations.sum, count);
  }
  const auto count = [&](const char* name, const char* help, uint64_t value) {
    text += head(name, "counter", help) + fmt::format("phasor_{} {}\n", name, value);
  };
  count("texts_total", "Texts run.", texts_);
  count("tokens_total", "Tokens run.", tokens_);
  count("dropped_total", "Requests that left the queue late or abandoned.", dropped_);
  count("lost_log_lines_total", "Lines of the log that nobody took in time.", lost_lines_);
  text += head("queue_requests", "gauge", "Requests that are not answered yet, by model.");
  for (const auto& [model, requests] : waiting)
    text += fmt::format("phasor_queue_requests{{model=\"{}\"}} {}\n", escaped(model), requests);
  return text;
}

}  // namespace infer
