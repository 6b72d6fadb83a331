#include "infer/serve/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace infer {
namespace {

double seconds(Metrics::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

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

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::add(double value) {
  ++counts_[std::ranges::lower_bound(bounds_, value) - bounds_.begin()];
  sum_ += value;
}

std::string Histogram::text(std::string_view name, const std::string& labels) const {
  std::string text;
  const std::string comma = labels.empty() ? "" : ",";
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    text +=
        fmt::format("phasor_{}_bucket{{{}{}le=\"{}\"}} {}\n", name, labels, comma, bound, count);
  }
  const std::string braces = labels.empty() ? "" : "{" + labels + "}";
  return text +
         fmt::format("phasor_{0}_sum{1} {2}\nphasor_{0}_count{1} {3}\n", name, braces, sum_, count);
}

void Metrics::request(std::string_view route, std::string_view model, int status,
                      Duration duration) {
  const std::string labels =
      fmt::format("route=\"{}\",model=\"{}\"", escaped(route), escaped(model));
  const std::lock_guard lock(mutex_);
  ++requests_[{labels, status}];
  durations_
      .try_emplace(labels,
                   std::vector<double>{.0003, .001, .003, .01, .03, .1, .3, 1, 3, 10, 30, 100})
      .first->second.add(seconds(duration));
}

std::string Metrics::text(const std::vector<std::pair<std::string, int64_t>>& waiting) const {
  const std::lock_guard lock(mutex_);
  std::string text = head("requests_total", "counter", "Requests by route, model and status.");
  for (const auto& [key, count] : requests_) {
    text +=
        fmt::format("phasor_requests_total{{{},status=\"{}\"}} {}\n", key.first, key.second, count);
  }
  text += head("request_seconds", "histogram", "From a request's arrival to its answer.");
  for (const auto& [labels, histogram] : durations_)
    text += histogram.text("request_seconds", labels);
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
