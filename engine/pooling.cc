// The six pooling modes, projections and normalisation, with sums in double.

#include "phasor/pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "phasor/errors.h"

namespace phasor {
namespace {

using Vector = std::vector<double>;

Vector row(std::span<const float> hidden, int64_t d_model, int64_t t) {
  const auto values = hidden.subspan(t * d_model, d_model);
  return Vector(values.begin(), values.end());
}

// Σ_t weight(t)·x_t / divisor, t from 1.
template <typename Weight>
Vector weighted_sum(std::span<const float> hidden, int64_t d_model, Weight weight, double divisor) {
  Vector sum(d_model);
  const int64_t num_tokens = std::ssize(hidden) / d_model;
  for (int64_t t = 1; t <= num_tokens; ++t) {
    const float* x = &hidden[(t - 1) * d_model];
    const double w = weight(t);
    for (int64_t c = 0; c < d_model; ++c) sum[c] += w * x[c];
  }
  for (double& value : sum) value /= divisor;
  return sum;
}

Vector largest(std::span<const float> hidden, int64_t d_model) {
  Vector best = row(hidden, d_model, 0);
  for (size_t i = 0; i < hidden.size(); i += d_model) {
    for (int64_t c = 0; c < d_model; ++c) best[c] = std::max<double>(best[c], hidden[i + c]);
  }
  return best;
}

Vector pool(std::span<const float> hidden, int64_t d_model, PoolingMode mode) {
  const int64_t num_tokens = std::ssize(hidden) / d_model;
  const auto T = static_cast<double>(num_tokens);
  const auto one = [](int64_t) { return 1.0; };
  const auto place = [](int64_t t) { return static_cast<double>(t); };
  switch (mode) {
    case PoolingMode::kCls:
      return row(hidden, d_model, 0);
    case PoolingMode::kMax:
      return largest(hidden, d_model);
    case PoolingMode::kMean:
      return weighted_sum(hidden, d_model, one, T);
    case PoolingMode::kMeanSqrtLen:
      return weighted_sum(hidden, d_model, one, std::sqrt(T));
    case PoolingMode::kWeightedMean:
      return weighted_sum(hidden, d_model, place, T * (T + 1) / 2);
    case PoolingMode::kLastToken:
      return row(hidden, d_model, num_tokens - 1);
  }
  throw InvalidArgument(fmt::format("no pooling mode has number {}", static_cast<int>(mode)));
}

Vector project(const Vector& x, const Projection& projection) {
  const auto [in, out] = std::pair(projection.in, projection.out);
  if (std::ssize(x) != in || std::ssize(projection.weight) != in * out ||
      std::ssize(projection.bias) != out) {
    throw InvalidArgument(fmt::format(
        "a projection from {} to {} with {} weights and {} biases does not fit a pooled "
        "vector of {}",
        in, out, projection.weight.size(), projection.bias.size(), x.size()));
  }
  Vector y(out);
  for (int64_t o = 0; o < out; ++o) {
    double sum = projection.bias[o];
    for (int64_t i = 0; i < in; ++i) sum += projection.weight[o * in + i] * x[i];
    y[o] = projection.tanh ? std::tanh(sum) : sum;
  }
  return y;
}

void normalize(Vector& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  const double norm = std::max(std::sqrt(sum), 1e-12);
  for (double& value : x) value /= norm;
}

bool has(const std::vector<PoolingMode>& modes, PoolingMode mode) {
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

// The modes in the enum's order, each once.
std::vector<PoolingMode> in_order(const std::vector<PoolingMode>& modes) {
  std::vector<PoolingMode> ordered;
  for (size_t i = 0; i < names<PoolingMode>().all.size(); ++i) {
    const auto mode = static_cast<PoolingMode>(i);
    if (has(modes, mode)) ordered.push_back(mode);
  }
  return ordered;
}

std::optional<std::string> first_of(const std::map<std::string, std::string>& prompts,
                                    std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const auto found = prompts.find(name); found != prompts.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

int64_t Pooling::width(int64_t d_model) const {
  return projections.empty() ? std::ssize(in_order(modes)) * d_model : projections.back().out;
}

std::vector<float> pool(std::span<const float> hidden, int64_t d_model, const Pooling& pooling) {
  if (d_model < 1 || hidden.empty() || std::ssize(hidden) % d_model != 0) {
    throw InvalidArgument(
        fmt::format("{} values are no whole hidden states of width {}", hidden.size(), d_model));
  }
  if (pooling.modes.empty()) {
    throw InvalidArgument(fmt::format("no pooling mode is given; there are: {}",
                                      fmt::join(names<PoolingMode>().all, ", ")));
  }
  Vector pooled;
  for (const PoolingMode mode : in_order(pooling.modes)) {
    const Vector part = pool(hidden, d_model, mode);
    pooled.insert(pooled.end(), part.begin(), part.end());
  }
  for (const Projection& projection : pooling.projections) pooled = project(pooled, projection);
  const auto finite = [](auto x) { return std::isfinite(static_cast<float>(x)); };
  if (!std::ranges::all_of(pooled, finite) && std::ranges::all_of(hidden, finite)) {
    throw ModelError(
        "the pooled vector is not finite although the hidden states are: they, or the weights of "
        "a Dense module, are too large");
  }
  if (pooling.normalize) normalize(pooled);
  return std::vector<float>(pooled.begin(), pooled.end());
}

std::string to_string(const std::vector<PoolingMode>& modes) {
  std::vector<std::string_view> ordered;
  for (const PoolingMode mode : in_order(modes)) ordered.push_back(to_string(mode));
  return fmt::format("{}", fmt::join(ordered, ","));
}

std::string to_string(const Pooling& pooling) {
  std::string text = to_string(pooling.modes);
  for (const Projection& projection : pooling.projections) {
    text += fmt::format(", Dense to {}{}", projection.out, projection.tanh ? " with tanh" : "");
  }
  return text + (pooling.normalize ? ", normalised" : ", not normalised");
}

std::vector<PoolingMode> parse_pooling_modes(std::string_view text) {
  std::vector<PoolingMode> modes;
  for (;;) {
    const std::string_view name = text.substr(0, text.find(','));
    modes.push_back(parse<PoolingMode>(name));
    if (name.size() == text.size()) return in_order(modes);
    text.remove_prefix(name.size() + 1);
  }
}

double cosine(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    throw InvalidArgument(
        fmt::format("vectors of widths {} and {} have no cosine; give two of the "
                    "same width",
                    a.size(), b.size()));
  }
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  const double lengths = std::sqrt(aa * bb);
  return lengths > 0 ? ab / lengths : 0;
}

std::optional<std::string> TextConfig::query_prompt() const {
  return first_of(prompts, {"query"});
}

std::optional<std::string> TextConfig::document_prompt() const {
  return first_of(prompts, {"document", "passage", "corpus"});
}

}  // namespace phasor
