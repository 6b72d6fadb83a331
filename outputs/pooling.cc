// The six pooling modes and the steps after them, with sums in double.

#include "phasor/pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <utility>

#include "engine/activation.h"
#include "files/refuse.h"

namespace phasor {

using namespace internal;

namespace {

using Vector = std::vector<double>;

Vector row(std::span<const float> hidden, int64_t d_model, int64_t t) {
  const auto values = hidden.subspan(t * d_model, d_model);
  return Vector(values.begin(), values.end());
}

// Σ_t weight(t)·x_t / divisor, t from 0.
template <typename Weight>
Vector weighted_sum(std::span<const float> hidden, int64_t d_model, Weight weight, double divisor) {
  Vector sum(d_model);
  const int64_t num_tokens = std::ssize(hidden) / d_model;
  for (int64_t t = 0; t < num_tokens; ++t) {
    const float* x = &hidden[t * d_model];
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

// The first row is the token at place `first`, counted from 1.
Vector pool(std::span<const float> hidden, int64_t d_model, PoolingMode mode, int64_t first) {
  const int64_t num_tokens = std::ssize(hidden) / d_model;
  const auto T = static_cast<double>(num_tokens);
  const auto one = [](int64_t) { return 1.0; };
  const auto place = [first](int64_t t) { return static_cast<double>(first + t); };
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
      return weighted_sum(hidden, d_model, place, T * (place(0) + place(num_tokens - 1)) / 2);
    case PoolingMode::kLastToken:
      return row(hidden, d_model, num_tokens - 1);
  }
  refuse<InvalidArgument>("no pooling mode has number {}", static_cast<int>(mode));
}

Vector run(const Projection& projection, const Vector& x) {
  const auto [in, out] = std::pair(projection.in, projection.out);
  if (std::ssize(x) != in || std::ssize(projection.weight) != in * out ||
      std::ssize(projection.bias) != out) {
    refuse<InvalidArgument>(
        "a projection from {} to {} with {} weights and {} biases does not fit a pooled vector of "
        "{}",
        in, out, projection.weight.size(), projection.bias.size(), x.size());
  }
  Vector y(out);
  for (int64_t o = 0; o < out; ++o) {
    double sum = projection.bias[o];
    for (int64_t i = 0; i < in; ++i) sum += projection.weight[o * in + i] * x[i];
    y[o] = activated(projection.activation, sum);
  }
  return y;
}

Vector run(const VectorNorm& norm, Vector x) {
  const auto width = static_cast<double>(x.size());
  if (norm.weight.size() != x.size() || norm.bias.size() != x.size()) {
    refuse<InvalidArgument>(
        "a norm with {} weights and {} biases does not fit a pooled vector of {}",
        norm.weight.size(), norm.bias.size(), x.size());
  }
  const double mean = std::accumulate(x.begin(), x.end(), 0.0) / width;
  for (double& value : x) value -= mean;
  const double variance = std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / width;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = x[i] / std::sqrt(variance + 1e-5) * norm.weight[i] + norm.bias[i];
  }
  return x;
}

Vector run(const UnitLength&, Vector x) {
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  for (double& value : x) value /= std::max(std::sqrt(squares), 1e-12);
  return x;
}

Vector run(const FirstNumbers& first, Vector x) {
  const auto count = static_cast<size_t>(first.count);
  if (first.count < 1 || count > x.size()) {
    refuse<InvalidArgument>("the first {} numbers of a pooled vector of {} are not there",
                            first.count, x.size());
  }
  x.resize(count);
  return x;
}

std::string text_of(const Projection& projection) {
  const bool linear = projection.activation == Activation::kIdentity;
  return fmt::format("Dense to {}{}{}", projection.out, linear ? "" : " with ",
                     linear ? "" : to_string(projection.activation));
}
std::string text_of(const VectorNorm&) { return "LayerNorm"; }
std::string text_of(const UnitLength&) { return "normalised"; }
std::string text_of(const FirstNumbers& first) {
  return fmt::format("the first {} numbers", first.count);
}

bool normalizes(const std::vector<PoolingStep>& steps) {
  return std::ranges::any_of(
      steps, [](const PoolingStep& step) { return std::holds_alternative<UnitLength>(step); });
}

std::optional<std::string> first_of(const std::map<std::string, std::string>& prompts,
                                    std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (const auto found = prompts.find(name); found != prompts.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace

Pooling Pooling::with_modes(std::vector<PoolingMode> others) const {
  return {.modes = std::move(others),
          .normalize = normalize || normalizes(steps),
          .include_prompt = include_prompt};
}

int64_t Pooling::width(int64_t d_model) const {
  int64_t width = std::ssize(modes) * d_model;
  for (const PoolingStep& step : steps) {
    if (const auto* const dense = std::get_if<Projection>(&step)) width = dense->out;
    if (const auto* const first = std::get_if<FirstNumbers>(&step)) width = first->count;
  }
  return width;
}

std::vector<float> pool(std::span<const float> hidden, int64_t d_model, const Pooling& pooling,
                        int64_t prompt_tokens) {
  if (d_model < 1 || hidden.empty() || std::ssize(hidden) % d_model != 0) {
    refuse<InvalidArgument>("{} values are no whole hidden states of width {}", hidden.size(),
                            d_model);
  }
  if (pooling.modes.empty()) {
    refuse<InvalidArgument>("no pooling mode is given; there are: {}",
                            fmt::join(names<PoolingMode>().all, ", "));
  }
  const int64_t left_out = pooling.include_prompt ? 0 : prompt_tokens;
  const bool some_left = left_out < std::ssize(hidden) / d_model;
  Vector pooled;
  for (const PoolingMode mode : pooling.modes) {
    const Vector part = some_left
                            ? pool(hidden.subspan(left_out * d_model), d_model, mode, left_out + 1)
                            : Vector(d_model);
    pooled.insert(pooled.end(), part.begin(), part.end());
  }
  for (const PoolingStep& step : pooling.steps) {
    pooled = std::visit([&](const auto& each) { return run(each, pooled); }, step);
  }
  const auto finite = [](auto x) { return std::isfinite(static_cast<float>(x)); };
  if (!std::ranges::all_of(pooled, finite) && std::ranges::all_of(hidden, finite)) {
    throw ModelError(
        "the pooled vector is not finite although the hidden states are: they, or the weights of "
        "a Dense module, are too large");
  }
  if (pooling.normalize) pooled = run(UnitLength(), std::move(pooled));
  return std::vector<float>(pooled.begin(), pooled.end());
}

std::string to_string(const Pooling& pooling) {
  std::string text = to_string(pooling.modes);
  if (!pooling.include_prompt) text += " after the prompt";
  for (const PoolingStep& step : pooling.steps) {
    text += ", " + std::visit([](const auto& each) { return text_of(each); }, step);
  }
  if (pooling.normalize) return text + ", normalised";
  return normalizes(pooling.steps) ? text : text + ", not normalised";
}

double similarity(std::span<const float> a, std::span<const float> b, Similarity kind) {
  check_value(names<Similarity>(), static_cast<size_t>(kind));
  if (a.size() != b.size()) {
    refuse<InvalidArgument>(
        "vectors of widths {} and {} cannot be compared; give two of the same width", a.size(),
        b.size());
  }
  double ab = 0, aa = 0, bb = 0, squares = 0, sizes = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    ab += x * y;
    aa += x * x;
    bb += y * y;
    squares += (x - y) * (x - y);
    sizes += std::abs(x - y);
  }
  if (kind == Similarity::kDot) return ab;
  if (kind == Similarity::kEuclidean) return -std::sqrt(squares);
  if (kind == Similarity::kManhattan) return -sizes;
  const double lengths = std::sqrt(aa * bb);
  return lengths > 0 ? ab / lengths : 0;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  return similarity(a, b, Similarity::kCosine);
}

std::optional<std::string> TextConfig::query_prompt() const { return first_of(prompts, {"query"}); }

std::optional<std::string> TextConfig::document_prompt() const {
  return first_of(prompts, {"document", "passage", "corpus"});
}

std::string TextConfig::prompt_for(bool is_query) const {
  return (is_query ? query_prompt() : document_prompt()).value_or(prompt);
}

}  // namespace phasor
