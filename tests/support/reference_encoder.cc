// The oracle's forward pass, top to bottom like the paper: embed, L times attention and MLP, norm.
#include "tests/support/reference_encoder.h"

namespace phasor::reference {
double activate(Activation activation, double x) {
  using enum Activation;
  if (activation == kGeluErf) return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2));
  if (activation == kGeluTanh)
    return 0.5 * x *
           (1.0 + std::tanh(std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  if (activation == kRelu) return std::max(x, 0.0);
  if (activation == kSilu) return x / (1.0 + std::exp(-x));
  if (activation == kTanh) return std::tanh(x);
  if (activation == kIdentity) return x;
  if (activation == kSigmoid) return 1.0 / (1.0 + std::exp(-x));
  if (activation == kQuickGelu) return x / (1.0 + std::exp(-1.702 * x));
  if (activation == kGelu10) return std::min(activate(kGeluErf, x), 10.0);
  if (activation == kRelu2) return std::pow(std::max(x, 0.0), 2.0);
  if (activation == kRelu6) return std::min(std::max(x, 0.0), 6.0);
  if (activation == kLeakyRelu) return x > 0.0 ? x : 0.01 * x;
  if (activation == kHardswish) return x < -3.0 ? 0.0 : x > 3.0 ? x : x * (x + 3.0) / 6.0;
  if (activation == kMish) return x > 30.0 ? x : x * std::tanh(std::log(1.0 + std::exp(x)));
  if (activation == kLaplace)
    return 0.5 * (1.0 + std::erf((x - 0.707107) / (0.282095 * std::numbers::sqrt2)));
  return std::nan("");
}

namespace {

using Values = std::vector<double>;

/// Empty where the tensor is absent.
Values values_of(const Tensor& tensor) {
  if (!tensor.present()) return {};
  const std::vector<float> values = tensor.to_float();
  return {values.begin(), values.end()};
}

Values add(const Values& a, const Values& b) {
  Values sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}

/// Each row of x to the nearest multiples of a step, of which so many lie between its least value
/// and its largest: the nearest in float32, so that values known exactly fall to the engine's side.
void round_rows(Values& x, int64_t width, int steps, bool symmetric) {
  for (size_t row = 0; row < x.size(); row += width) {
    float least = 0, largest = 0;
    for (int64_t i = 0; i < width; ++i) {
      const auto value = static_cast<float>(x[row + i]);
      largest = std::max(largest, symmetric ? std::abs(value) : value);
      least = std::min(least, symmetric ? -std::abs(value) : value);
    }
    const float range = largest - least, inverse = static_cast<float>(steps) / range;
    if (!std::isfinite(inverse)) {  // too small to divide by
      std::fill_n(x.begin() + static_cast<int64_t>(row), width, 0.0);
      continue;
    }
    for (int64_t i = 0; i < width; ++i)
      x[row + i] = double{std::nearbyint(static_cast<float>(x[row + i]) * inverse)} / steps * range;
  }
}

void round_to(const Rounding& rounding, int64_t width, Values& x) {
  if (rounding.precision == Precision::kInt8)
    round_rows(x, width, rounding.steps, rounding.symmetric);
  if (rounding.precision == Precision::kBfloat16)
    std::transform(x.begin(), x.end(), x.begin(), to_bfloat16);
}

}  // namespace

double to_bfloat16(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // 0.5 … 1: eight bits of it stay
  return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
}

Values linear(const LinearWeights& weights, std::span<const double> input,
              const Rounding& rounding) {
  Values w = values_of(weights.weight);  // [out, in]
  Values b = values_of(weights.bias);    // [out]
  Values x(input.begin(), input.end());  // [T, in]
  const int64_t num_out = weights.weight.shape[0], num_in = weights.weight.shape[1];
  const auto num_tokens = static_cast<int64_t>(x.size()) / num_in;
  round_to({.precision = rounding.precision, .symmetric = true}, num_in, w);
  round_to(rounding, num_in, x);
  if (b.empty()) b.assign(num_out, 0.0);
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

namespace {

/// (x − mean) / √(variance + ε) · γ + β over each row of x [T, C]
Values layer_norm(const NormWeights& weights, double eps, const Values& x) {
  const Values gamma = values_of(weights.weight);  // [C]
  const size_t width = gamma.size();
  Values beta = values_of(weights.bias);
  beta.resize(width);
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double mean = 0, variance = 0;
    for (size_t c = 0; c < width; ++c) mean += x[row + c] / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c)
      variance += (x[row + c] - mean) * (x[row + c] - mean) / static_cast<double>(width);
    for (size_t c = 0; c < width; ++c)
      y[row + c] =
          (x[row + c] - mean) / std::sqrt(variance + eps) * gamma[c] + (beta.empty() ? 0 : beta[c]);
  }
  return y;
}

/// x / √(mean(x²) + ε) · γ over each row of x [T, C]
Values rms_norm(const NormWeights& weights, double eps, const Values& x) {
  const Values gamma = values_of(weights.weight);  // [C]
  const size_t width = gamma.size();
  Values y(x.size());
  for (size_t row = 0; row < x.size(); row += width) {
    double squares = 0;
    for (size_t c = 0; c < width; ++c) squares += x[row + c] * x[row + c];
    const double length = std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t c = 0; c < width; ++c) y[row + c] = x[row + c] / length * gamma[c];
  }
  return y;
}

Values norm(const ModelConfig& config, const NormWeights& weights, const Values& x) {
  return config.norm == NormKind::kRmsNorm ? rms_norm(weights, config.norm_eps, x)
                                           : layer_norm(weights, config.norm_eps, x);
}

/// One run of the network over one window.
class Run {
 public:
  Run(const Model& model, const RunOptions& options, const PositionSource& source,
      const Window& window, const Rounding& rounding, int64_t num_keys)
      : model_(model),
        config_(model.config()),
        weights_(model.weights()),
        options_(options),
        source_(source),
        window_(window),
        rounding_(rounding),
        num_tokens_(static_cast<int64_t>(window.token_ids.size())),
        num_keys_(num_keys > 0 ? num_keys : num_tokens_) {}

  WindowResult forward() {
    Values x = embed();  // [T, C]
    for (int64_t layer = 0; layer < config_.num_layers; ++layer) x = block(layer, std::move(x));
    if (config_.final_norm) x = record(Hook::kFinalNorm, -1, norm(config_, weights_.final_norm, x));
    return {window_.first_token, window_.positions, std::move(x), std::move(activations_)};
  }

 private:
  /// s·Emb[id] + P[pos] (+ Type[type]), then norm and map to d_model, where there are such. [T, C]
  Values embed() {
    const Values table = values_of(weights_.token_embedding);  // [V, E]
    const int64_t width = table.size() / config_.vocab_size;
    Values tokens, positions;  // [T, E]
    for (int64_t t = 0; t < num_tokens_; ++t) {
      for (int64_t c = 0; c < width; ++c)
        tokens.push_back(static_cast<double>(config_.embedding_scale) *
                         table[window_.token_ids[t] * width + c]);
      if (!source_.present) continue;
      const Values row = options_.positions.is_averaged()
                             ? mean_row(source_, config_, width)
                             : source_.row(window_.positions[t], width);
      for (const double value : row)
        positions.push_back(static_cast<double>(options_.positions.scale()) * value);
    }
    Values x = record(Hook::kTokenEmbed, -1, tokens);
    if (source_.present) x = add(x, record(Hook::kPosEmbed, -1, positions));
    if (weights_.token_type_embedding.present()) {
      const Values types = values_of(weights_.token_type_embedding);
      Values rows;  // [T, E]
      for (int64_t t = 0; t < num_tokens_; ++t) {
        const auto& given = options_.token_types;  // of the whole sequence
        const int64_t type = given.empty() ? 0 : given[window_.first_token + t];
        const auto row = types.begin() + type * width;
        rows.insert(rows.end(), row, row + width);
      }
      x = add(x, record(Hook::kTokenTypeEmbed, -1, rows));
    }
    if (config_.embedding_norm) x = norm(config_, weights_.embedding_norm, x);
    if (config_.d_embedding > 0) x = map(weights_.embedding_map, x);
    return record(Hook::kFullEmbed, -1, x);
  }

  Values block(int64_t layer, Values x) {
    const BlockWeights& weights = block_weights(layer);
    const bool pre_norm = config_.norm_order == NormOrder::kPreNorm;
    record(Hook::kResidPre, layer, x);
    const bool norm_first = pre_norm && weights.attn_norm.weight.present();
    const Values attn_out = attention(layer, norm_first ? norm(config_, weights.attn_norm, x) : x);
    x = is_cut(layer, ResidualCut::Site::kAttention) ? attn_out : add(x, attn_out);
    record(Hook::kResidMid, layer, x);
    if (!pre_norm)
      x = record(Hook::kNormalizedResidMid, layer, norm(config_, weights.attn_norm, x));
    const Values mlp_out = mlp(layer, pre_norm ? norm(config_, weights.mlp_norm, x) : x);
    x = is_cut(layer, ResidualCut::Site::kMlp) ? mlp_out : add(x, mlp_out);
    record(Hook::kResidPost, layer, x);
    if (pre_norm) return x;
    return record(Hook::kNormalizedResidPost, layer, norm(config_, weights.mlp_norm, x));
  }

  /// softmax(scores) V for each head, then the output matrix. [T, C]
  Values attention(int64_t layer, const Values& x) {
    const BlockWeights& weights = block_weights(layer);
    const int64_t num_heads = config_.num_heads, head_dim = config_.head_dim();
    Values q = record(Hook::kQ, layer, map(weights.q, x));  // [T, H, D]
    Values k = record(Hook::kK, layer, map(weights.k, x));  // [T, G, D]
    const Values v = record(Hook::kV, layer, map(weights.v, x));
    if (config_.qk_norm) {
      q = rms_norm(weights.q_norm, config_.norm_eps, q);
      k = rms_norm(weights.k_norm, config_.norm_eps, k);
    }
    const Values scores = record(Hook::kAttnScores, layer, attention_scores(layer, q, k));
    Values pattern = scores;  // [H, T, T]
    Values z(q.size());       // [T, H, D]
    for (int64_t head = 0; head < num_heads; ++head) {
      for (int64_t i = 0; i < num_tokens_; ++i) {
        const std::span row(&pattern[(head * num_tokens_ + i) * num_tokens_], num_tokens_);
        const double largest = *std::max_element(row.begin(), row.end());
        double total = 0;
        for (double& s : row) total += s = std::exp(s - largest);
        for (int64_t j = 0; j < num_tokens_; ++j) {
          for (int64_t d = 0; d < head_dim; ++d)
            z[(i * num_heads + head) * head_dim + d] +=
                weight(row[j], total) * factor(v[kv_row(j, head) * head_dim + d]);
        }
        for (double& s : row) s /= total;
      }
    }
    record(Hook::kPattern, layer, pattern);
    Values out = map(weights.out, record(Hook::kZ, layer, z));
    if (config_.branch_norms) out = norm(config_, weights.attn_branch_norm, out);
    return record(Hook::kAttnOut, layer, out);
  }

  /// Where token j's key or value for a head of queries stands: heads in equal groups share one.
  int64_t kv_row(int64_t j, int64_t head) const {
    const int64_t kv_heads = config_.num_kv_heads > 0 ? config_.num_kv_heads : config_.num_heads;
    return j * kv_heads + head * kv_heads / config_.num_heads;
  }

  bool is_causal() const {
    const AttentionMask mask = options_.positions.mask();
    return mask == AttentionMask::kCausal || (mask == AttentionMask::kModel && config_.causal);
  }

  /// (Q Kᵀ + terms of disentangled attention) / √(terms · D) + bias, with Q and K rotated in the
  /// first product only: the others are with rows of a table, which stand at no position. −∞ where
  /// a query does not see a key. [H, T, T]
  Values attention_scores(int64_t layer, const Values& q, const Values& k) {
    const BlockWeights& weights = block_weights(layer);
    const int64_t num_heads = config_.num_heads, head_dim = config_.head_dim();
    const auto dot = [&](double scale, const Values& a, int64_t i, const Values& b, int64_t j,
                         int64_t head, bool late = false) {
      double sum = 0;
      for (int64_t d = 0; d < head_dim; ++d) {
        const double x = a[(i * num_heads + head) * head_dim + d];
        sum += (late ? scale * factor(x) : factor(scale * x)) *
               factor(b[kv_row(j, head) * head_dim + d]);
      }
      return sum;
    };
    Values rotated_q = q, rotated_k = k;
    if (const auto rotary = rotation(config_, options_.positions, layer)) {
      rotated_q = record(Hook::kRotQ, layer, rotated(*rotary, config_.num_heads, q));
      rotated_k = record(Hook::kRotK, layer, rotated(*rotary, kv_row(1, 0), k));
    }
    const std::optional<DisentangledConfig>& disentangled = config_.position.disentangled;
    const bool own = options_.positions.source() == Positions::Source::kModel;
    int64_t num_terms = 1;  // counted even where a run leaves them out
    Values table_q, table_k;
    if (disentangled) {
      num_terms +=
          (disentangled->content_to_position ? 1 : 0) + (disentangled->position_to_content ? 1 : 0);
      const Values table = relative_table(model_);
      // Not rounded, whatever precision is asked for: these rows are constants of the model.
      table_q = linear(weights.q, table);  // [rows, H, D]
      table_k = linear(weights.k, table);
    }
    const double width =
        config_.score_width > 0 ? config_.score_width : static_cast<double>(num_terms * head_dim);
    const double scale = config_.scale_scores ? 1 / std::sqrt(width) : 1;
    const double relative_scale = attention_scale(options_.positions) * scale;
    Values scores;
    for (int64_t head = 0; head < num_heads; ++head) {
      for (int64_t i = 0; i < num_tokens_; ++i) {
        for (int64_t j = 0; j < num_tokens_; ++j) {
          const double offset = window_.positions[j] - window_.positions[i];
          if (!sees(config_, options_.positions, layer, offset) || (is_causal() && j > i) ||
              j >= num_keys_) {
            scores.push_back(-std::numeric_limits<double>::infinity());
            continue;
          }
          double score = dot(scale, rotated_q, i, rotated_k, j, head, rounding_.late);
          const double cap = config_.score_cap;
          if (cap > 0) score = cap * std::tanh(score / cap);
          if (disentangled && own) {
            const int64_t row = disentangled_row(*disentangled, -offset);
            if (disentangled->content_to_position)
              score += dot(relative_scale, q, i, table_k, row, head);
            if (disentangled->position_to_content)
              score += dot(relative_scale, k, j, table_q, row, head);
          }
          scores.push_back(score + score_bias(model_, options_.positions, head, offset));
        }
      }
    }
    return scores;
  }

  /// Each head's row of x [T, heads, D], turned by its token's position; in full precision.
  Values rotated(const RotaryConfig& rotary, int64_t heads, Values x) const {
    const int64_t head_dim = config_.head_dim(), width = heads * head_dim;
    for (int64_t at = 0; at < std::ssize(x); at += head_dim) {
      const double position = window_.positions[at / width];
      rotate(rotary, num_tokens_, attention_scale(options_.positions) * position,
             std::span(x).subspan(at, head_dim));
    }
    return x;
  }

  Values mlp(int64_t layer, const Values& x) {
    const BlockWeights& weights = block_weights(layer);
    const LinearWeights& first = config_.gated_mlp ? weights.gate : weights.up;
    Values hidden = record(Hook::kMlpPre, layer, map(first, x));  // [T, F]
    for (double& value : hidden) value = activate(config_.activation, value);
    if (config_.gated_mlp) {
      const Values factors = map(weights.up, x);  // [T, F]
      for (size_t i = 0; i < hidden.size(); ++i) hidden[i] *= factors[i];
    }
    record(Hook::kMlpPost, layer, hidden);
    Values out = map(weights.down, hidden);
    if (config_.branch_norms) out = norm(config_, weights.mlp_branch_norm, out);
    return record(Hook::kMlpOut, layer, out);
  }

  Values map(const LinearWeights& weights, const Values& x) const {
    return linear(weights, x, rounding_);
  }

  /// x as attention's products have it.
  double factor(double x) const { return rounding_.attention ? to_bfloat16(x) : x; }
  double weight(double exponential, double sum) const {
    return rounding_.late ? factor(exponential / sum) : factor(exponential) / sum;
  }

  /// Layers in groups of equal size share a block.
  const BlockWeights& block_weights(int64_t layer) const {
    if (config_.num_layer_groups == 0) return weights_.blocks[layer];
    const double group_size =
        static_cast<double>(config_.num_layers) / static_cast<double>(config_.num_layer_groups);
    return weights_.blocks[static_cast<size_t>(static_cast<double>(layer) / group_size)];
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
      case Hook::kK:
      case Hook::kV:
      case Hook::kRotK:
        return {num_tokens_, kv_row(1, 0), config_.head_dim()};
      case Hook::kQ:
      case Hook::kRotQ:
      case Hook::kZ:
        return {num_tokens_, config_.num_heads, config_.head_dim()};
      case Hook::kAttnScores:
      case Hook::kPattern:
        return {config_.num_heads, num_tokens_, num_tokens_};
      case Hook::kMlpPre:
      case Hook::kMlpPost:
        return {num_tokens_, config_.d_ff};
      case Hook::kTokenEmbed:
      case Hook::kPosEmbed:
      case Hook::kTokenTypeEmbed:
        return {num_tokens_, config_.embedding_width()};
      default:
        return {num_tokens_, config_.d_model};
    }
  }

  const Model& model_;
  const ModelConfig& config_;
  const Weights& weights_;
  const RunOptions& options_;
  const PositionSource& source_;
  const Window& window_;
  const Rounding& rounding_;
  const int64_t num_tokens_, num_keys_;
  Activations activations_;
};

}  // namespace

Result encode(const Model& model, std::span<const int32_t> token_ids, const RunOptions& options,
              const Rounding& rounding, int64_t num_keys) {
  const PositionSource source = position_source(model, options.positions);
  const int64_t width = model.config().d_model;
  Result result;
  Values coverage;  // windows over each token [T]
  for (const Window& window : plan_windows(source, token_ids, options)) {
    const auto end = window.first_token + static_cast<int64_t>(window.token_ids.size());
    result.token_ids.assign(token_ids.begin(), token_ids.begin() + end);
    result.hidden.resize(end * width);
    coverage.resize(end);
    result.windows.push_back(Run(model, options, source, window, rounding, num_keys).forward());
    const Values& hidden = result.windows.back().hidden;
    for (size_t i = 0; i < hidden.size(); ++i)
      result.hidden[window.first_token * width + i] += hidden[i];
    for (int64_t t = window.first_token; t < end; ++t) coverage[t] += 1;
  }
  for (size_t i = 0; i < result.hidden.size(); ++i) result.hidden[i] /= coverage[i / width];
  return result;
}

std::vector<double> relative_table(const Model& model) {
  const Values table = values_of(model.weights().relative_table);
  return model.config().position.disentangled->norm
             ? norm(model.config(), model.weights().relative_norm, table)
             : table;
}

std::vector<double> mlm_logits(const Model& model, std::span<const double> hidden) {
  const MlmHead& head = model.weights().mlm_head.value();
  Values x(hidden.begin(), hidden.end());  // [n, C]
  if (head.dense.weight.present()) {
    x = linear(head.dense, x);
    for (double& value : x) value = activate(head.activation, value);
    x = norm(model.config(), head.norm, x);
  }
  return linear({.weight = head.decoder, .bias = head.bias}, x);
}

std::vector<double> classifier_logits(const Model& model, std::span<const double> hidden) {
  const ClassifierHead& head = model.weights().classifier.value();
  const size_t width = head.out.weight.shape[1], num_tokens = hidden.size() / width;
  if (head.mean_of_logits && num_tokens > 1) {
    Values sum(head.labels.size());
    for (size_t t = 0; t < num_tokens; ++t) {
      const Values one = classifier_logits(model, hidden.subspan(t * width, width));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i] / static_cast<double>(num_tokens);
    }
    return sum;
  }
  Values x(hidden.begin(), hidden.begin() + static_cast<int64_t>(width));  // the first token's
  for (size_t t = 1; t < num_tokens && head.pooling == PoolingMode::kMean; ++t)
    for (size_t c = 0; c < width; ++c) x[c] += hidden[t * width + c];
  if (head.pooling == PoolingMode::kMean)
    for (double& value : x) value /= static_cast<double>(num_tokens);
  if (head.dense.weight.present()) {
    x = linear(head.dense, x);
    for (double& value : x) value = activate(head.activation, value);
  }
  if (head.norm.weight.present()) x = norm(model.config(), head.norm, x);
  return linear(head.out, x);
}

}  // namespace phasor::reference
