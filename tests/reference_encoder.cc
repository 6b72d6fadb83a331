// The oracle's forward pass, top to bottom like the paper: embed, L times attention and MLP, norm.
#include "tests/reference_encoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tests/reference_positions.h"

namespace phasor::reference {
namespace {

using Values = std::vector<double>;

Values values_of(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_float();
  return {values.begin(), values.end()};
}

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kGeluErf:
      return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
    case Activation::kGeluTanh:
      return 0.5 * x *
             (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
  }
  return std::nan("");
}

Values add(const Values& a, const Values& b) {
  Values sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}

/// x Wᵀ + b for x [T, in]: [T, out]
Values linear(const LinearWeights& weights, const Values& x) {
  const Values w = values_of(weights.weight);  // [out, in]
  const Values b = values_of(weights.bias);    // [out]
  const int64_t num_out = weights.weight.shape[0], num_in = weights.weight.shape[1];
  const auto num_tokens = static_cast<int64_t>(x.size()) / num_in;
  Values y(num_tokens * num_out);
  for (int64_t t = 0; t < num_tokens; ++t) {
    for (int64_t o = 0; o < num_out; ++o) {
      double sum = b[o];
      for (int64_t i = 0; i < num_in; ++i) sum += x[t * num_in + i] * w[o * num_in + i];
      y[t * num_out + o] = sum;
    }
  }
  return y;
}

/// (x − mean) / √(variance + ε) · γ + β over each row of x [T, C]
Values layer_norm(const NormWeights& weights, double eps, const Values& x) {
  const Values gamma = values_of(weights.weight), beta = values_of(weights.bias);  // [C]
  const size_t width = gamma.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < width; ++c) mean += x[row + c] / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c) {
      variance += (x[row + c] - mean) * (x[row + c] - mean) / static_cast<double>(width);
    }
    for (size_t c = 0; c < width; ++c) {
      y[row + c] = (x[row + c] - mean) / std::sqrt(variance + eps) * gamma[c] + beta[c];
    }
  }
  return y;
}

/// One run of the network over one window.
class Run {
 public:
  Run(const Model& model, const RunOptions& options, const PositionSource& source,
      const Window& window)
      : config_(model.config()),
        weights_(model.weights()),
        options_(options),
        source_(source),
        window_(window),
        num_tokens_(static_cast<int64_t>(window.token_ids.size())) {}

  WindowResult forward() {
    Values x = embed();  // [T, C]
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) x = block(layer, std::move(x));
    if (config_.final_norm) {
      x = record(Hook::kFinalNorm, -1, layer_norm(weights_.final_norm, config_.norm_eps, x));
    }
    return {window_.first_token, window_.positions, std::move(x), std::move(activations_)};
  }

 private:
  /// s·E[id] + P[pos] (+ type row 0), then LayerNorm where there is one. [T, C]
  Values embed() {
    const Values table = values_of(weights_.token_embedding);  // [V, C]
    const int64_t width = config_.d_model;
    Values tokens, positions;  // [T, C]
    for (int64_t t = 0; t < num_tokens_; ++t) {
      for (int64_t c = 0; c < width; ++c) {
        tokens.push_back(static_cast<double>(config_.embedding_scale) *
                         table[window_.token_ids[t] * width + c]);
      }
      if (!source_.present) continue;
      for (const double value : source_.row(window_.positions[t], width)) {
        positions.push_back(static_cast<double>(options_.positions.scale()) * value);
      }
    }
    Values x = record(Hook::kTokenEmbed, -1, tokens);
    if (source_.present) x = add(x, record(Hook::kPosEmbed, -1, positions));
    if (weights_.token_type_embedding.present()) {
      const Values types = values_of(weights_.token_type_embedding);
      Values rows;  // [T, C]
      for (int64_t t = 0; t < num_tokens_; ++t) {
        rows.insert(rows.end(), types.begin(), types.begin() + width);
      }
      x = add(x, record(Hook::kTokenTypeEmbed, -1, rows));
    }
    if (config_.embedding_norm) x = layer_norm(weights_.embedding_norm, config_.norm_eps, x);
    return record(Hook::kFullEmbed, -1, x);
  }

  Values block(int64_t layer, Values x) {
    const BlockWeights& weights = weights_.blocks[layer];
    const bool pre_norm = config_.norm_order == NormOrder::kPreNorm;
    const double eps = config_.norm_eps;
    record(Hook::kResidPre, layer, x);

    const Values attn_out = attention(layer, pre_norm ? layer_norm(weights.attn_norm, eps, x) : x);
    x = is_cut(layer, ResidualCut::Site::kAttention) ? attn_out : add(x, attn_out);
    record(Hook::kResidMid, layer, x);
    if (!pre_norm) x = layer_norm(weights.attn_norm, eps, x);

    const Values mlp_out = mlp(layer, pre_norm ? layer_norm(weights.mlp_norm, eps, x) : x);
    x = is_cut(layer, ResidualCut::Site::kMlp) ? mlp_out : add(x, mlp_out);
    record(Hook::kResidPost, layer, x);
    if (pre_norm) return x;
    return record(Hook::kNormalizedResidPost, layer, layer_norm(weights.mlp_norm, eps, x));
  }

  /// softmax(Q Kᵀ / √D) V for each head, then the output matrix. [T, C]
  Values attention(int64_t layer, const Values& x) {
    const BlockWeights& weights = weights_.blocks[layer];
    const int64_t num_heads = config_.num_heads, head_dim = config_.head_dim();
    const Values q = record(Hook::kQ, layer, linear(weights.q, x));  // [T, H, D]
    const Values k = record(Hook::kK, layer, linear(weights.k, x));
    const Values v = record(Hook::kV, layer, linear(weights.v, x));
    const auto at = [&](int64_t t, int64_t head, int64_t d) {
      return (t * num_heads + head) * head_dim + d;
    };
    Values scores, pattern;                   // [H, T, T]
    Values z(num_tokens_ * config_.d_model);  // [T, H, D]
    for (int64_t head = 0; head < num_heads; ++head) {
      for (int64_t i = 0; i < num_tokens_; ++i) {
        Values row(num_tokens_);  // of the scores
        for (int64_t j = 0; j < num_tokens_; ++j) {
          for (int64_t d = 0; d < head_dim; ++d) row[j] += q[at(i, head, d)] * k[at(j, head, d)];
          row[j] /= std::sqrt(static_cast<double>(head_dim));
        }
        scores.insert(scores.end(), row.begin(), row.end());
        const double largest = *std::max_element(row.begin(), row.end());
        double total = 0;
        for (double& s : row) total += s = std::exp(s - largest);
        for (double& s : row) s /= total;
        pattern.insert(pattern.end(), row.begin(), row.end());
        for (int64_t j = 0; j < num_tokens_; ++j) {
          for (int64_t d = 0; d < head_dim; ++d) z[at(i, head, d)] += row[j] * v[at(j, head, d)];
        }
      }
    }
    record(Hook::kAttnScores, layer, scores);
    record(Hook::kPattern, layer, pattern);
    return record(Hook::kAttnOut, layer, linear(weights.out, record(Hook::kZ, layer, z)));
  }

  Values mlp(int64_t layer, const Values& x) {
    const BlockWeights& weights = weights_.blocks[layer];
    Values hidden = record(Hook::kMlpPre, layer, linear(weights.up, x));  // [T, F]
    for (double& value : hidden) value = activate(config_.activation, value);
    record(Hook::kMlpPost, layer, hidden);
    return record(Hook::kMlpOut, layer, linear(weights.down, hidden));
  }

  bool is_cut(int64_t layer, ResidualCut::Site site) const {
    return std::any_of(
        options_.cut_residuals.begin(), options_.cut_residuals.end(), [&](const ResidualCut& cut) {
          return cut.layer == layer && (cut.site == site || cut.site == ResidualCut::Site::kBoth);
        });
  }

  Values record(Hook hook, int64_t layer, Values values) {
    activations_[{hook, layer}] = {shape_of(hook), values};
    return values;
  }

  std::vector<int64_t> shape_of(Hook hook) const {
    switch (hook) {
      case Hook::kQ:
      case Hook::kK:
      case Hook::kV:
      case Hook::kZ:
        return {num_tokens_, config_.num_heads, config_.head_dim()};
      case Hook::kAttnScores:
      case Hook::kPattern:
        return {config_.num_heads, num_tokens_, num_tokens_};
      case Hook::kMlpPre:
      case Hook::kMlpPost:
        return {num_tokens_, config_.d_ff};
      default:
        return {num_tokens_, config_.d_model};
    }
  }

  const ModelConfig& config_;
  const Weights& weights_;
  const RunOptions& options_;
  const PositionSource& source_;
  const Window& window_;
  const int64_t num_tokens_;
  Activations activations_;
};

}  // namespace

Result encode(const Model& model, std::span<const int32_t> token_ids, const RunOptions& options) {
  const PositionSource source = position_source(model, options.positions);
  const int64_t width = model.config().d_model;
  Result result;
  Values coverage;  // windows over each token [T]
  for (const Window& window : plan_windows(source, token_ids, options)) {
    const auto end = window.first_token + static_cast<int64_t>(window.token_ids.size());
    result.token_ids.assign(token_ids.begin(), token_ids.begin() + end);
    result.hidden.resize(end * width);
    coverage.resize(end);
    result.windows.push_back(Run(model, options, source, window).forward());
    const Values& hidden = result.windows.back().hidden;
    for (size_t i = 0; i < hidden.size(); ++i) {
      result.hidden[window.first_token * width + i] += hidden[i];
    }
    for (int64_t t = window.first_token; t < end; ++t) coverage[t] += 1;
  }
  result.embedding.assign(width, 0.0);
  for (size_t i = 0; i < result.hidden.size(); ++i) {
    result.hidden[i] /= coverage[i / width];
    result.embedding[i % width] += result.hidden[i] / static_cast<double>(coverage.size());
  }
  return result;
}

std::vector<double> mlm_logits(const Model& model, std::span<const double> hidden) {
  const MlmHead& head = model.weights().mlm_head.value();
  Values x = linear(head.dense, {hidden.begin(), hidden.end()});  // [n, C]
  for (double& value : x) value = activate(head.activation, value);
  x = layer_norm(head.norm, model.config().norm_eps, x);
  return linear({.weight = head.decoder, .bias = head.bias}, x);
}

}  // namespace phasor::reference
