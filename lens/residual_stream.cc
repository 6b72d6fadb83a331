#include "lens/residual_stream.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cmath>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

// Empty if the tensor is absent.
std::vector<float> values_of(const Tensor& tensor) {
  return tensor.present() ? tensor.to_float() : std::vector<float>();
}

// 0 in an RMS norm, which subtracts no mean.
double subtracted_mean(const ModelConfig& config, std::span<const double> row) {
  if (config.norm == NormKind::kRmsNorm) return 0;
  return Eigen::Map<const Eigen::ArrayXd>(row.data(), std::ssize(row)).mean();
}

}  // namespace

double deviation(const ModelConfig& config, std::span<const double> row) {
  const double middle = subtracted_mean(config, row);
  double squares = 0;
  for (const double value : row) squares += (value - middle) * (value - middle);
  return std::sqrt(squares / static_cast<double>(row.size()) + config.norm_eps);
}

std::string why_no_score_terms(const ModelConfig& config) {
  if (config.qk_norm) return "the model norms its queries and keys";
  if (config.score_cap > 0) return "the model caps its scores";
  return {};
}

void check_score_terms(const ModelConfig& config) {
  if (const std::string why = why_no_score_terms(config); !why.empty())
    throw InvalidArgument("scores are no sum of terms: " + why);
}

void normalize_row(const ModelConfig& config, std::span<double> row, double scale,
                   std::span<const float> weight) {
  const double middle = subtracted_mean(config, row);
  Eigen::Map<Eigen::ArrayXd> values(row.data(), std::ssize(row));
  const Eigen::Map<const Eigen::ArrayXf> weights(weight.data(), std::ssize(weight));
  values = (values - middle) * scale * weights.cast<double>();
}

ResidualStream::ResidualStream(const Model& model, const Trace& trace, int64_t sequence)
    : model_(model), config_(model.config()), trace_(trace), sequence_(sequence) {
  const auto num_values = std::ssize(values(Hook::kFullEmbed, -1));
  num_tokens_ = num_values / config_.d_model;
  if (num_values % config_.d_model != 0) {
    throw InvalidArgument(
        fmt::format("the trace's states have {} values, which are no rows of the model's "
                    "d_model {}; give the model that was run",
                    num_values, config_.d_model));
  }
  start(config_.embedding_width());
}

void ResidualStream::embed(std::span<const float> share) {
  add(ResidualSource::kToken, Hook::kTokenEmbed, -1);
  add_if_there(ResidualSource::kPosition, Hook::kPosEmbed);
  if (!share.empty()) split_last({{share.begin(), share.end()}});
  add_if_there(ResidualSource::kTokenType, Hook::kTokenTypeEmbed);
  if (config_.embedding_norm) normalize(model_.weights().embedding_norm, sum());
  if (config_.d_embedding > 0) map(model_.weights().embedding_map);
}

void ResidualStream::add(ResidualSource source, Hook hook, int64_t layer) {
  const std::span<const float> added = values(hook, layer);
  parts_.push_back({source, layer, {added.begin(), added.end()}});
}

void ResidualStream::add_if_there(ResidualSource source, Hook hook) {
  if (trace_.has(hook, -1, sequence_)) add(source, hook, -1);
}

void ResidualStream::split_last(const std::vector<std::vector<float>>& heads) {
  const size_t whole = parts_.size() - 1;
  for (const std::vector<float>& head : heads) {
    for (size_t i = 0; i < head.size(); ++i) parts_[whole].values[i] -= head[i];
    parts_.push_back({parts_[whole].source,
                      parts_[whole].layer,
                      {head.begin(), head.end()},
                      static_cast<int64_t>(parts_.size() - whole - 1)});
  }
}

void ResidualStream::cut() {
  parts_.clear();
  start(config_.d_model);
}

void ResidualStream::start(int64_t width) {
  parts_.push_back({ResidualSource::kBiases, -1, std::vector<double>(num_tokens_ * width)});
}

void ResidualStream::normalize(const NormWeights& norm, std::span<const double> run) {
  if (!norm.weight.present()) return;
  const std::vector<float> weight = values_of(norm.weight);  // [width]
  const size_t width = weight.size();
  for (size_t first = 0; first < run.size(); first += width) {
    const double scale = 1 / deviation(config_, run.subspan(first, width));
    for (ResidualPart& part : parts_) {
      normalize_row(config_, std::span(part.values).subspan(first, width), scale, weight);
    }
  }
  add_bias(norm.bias);
}

void ResidualStream::normalize(const NormWeights& norm, std::span<const float> run) {
  normalize(norm, std::vector<double>(run.begin(), run.end()));
}

void ResidualStream::map(const LinearWeights& weights) {
  const std::vector<float> weight = values_of(weights.weight);  // [C, E]
  const int64_t C = config_.d_model, E = config_.embedding_width();
  for (ResidualPart& part : parts_) {
    std::vector<double> mapped(num_tokens_ * C);
    for (int64_t t = 0; t < num_tokens_; ++t) {
      for (int64_t c = 0; c < C; ++c) {
        for (int64_t e = 0; e < E; ++e) {
          mapped[t * C + c] += weight[c * E + e] * part.values[t * E + e];
        }
      }
    }
    part.values = std::move(mapped);
  }
  add_bias(weights.bias);
}

void ResidualStream::add_bias(const Tensor& tensor) {
  const std::vector<float> bias = values_of(tensor);  // [width]
  if (bias.empty()) return;
  std::vector<double>& biases = parts_.front().values;
  for (size_t first = 0; first < biases.size(); first += bias.size()) {
    for (size_t i = 0; i < bias.size(); ++i) biases[first + i] += bias[i];
  }
}

std::vector<double> ResidualStream::sum() const {
  std::vector<double> sum(parts_.front().values.size());
  for (const ResidualPart& part : parts_) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part.values[i];
  }
  return sum;
}

}  // namespace phasor::internal
