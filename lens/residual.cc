// Taking hidden states apart into what was added to the residual stream, with frozen norms.

#include "phasor/lens/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor {
namespace {

// Empty where the tensor is absent.
std::vector<float> values_of(const Tensor& tensor) {
  return tensor.present() ? tensor.to_float() : std::vector<float>();
}

// A residual stream [T, C] as the list of parts that it is the sum of; [T, E] until the embedding
// map.
class Stream {
 public:
  Stream(const Model& model, const Trace& trace, int64_t sequence)
      : config_(model.config()), trace_(trace), sequence_(sequence) {
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

  std::span<const float> values(Hook hook, int64_t layer) const {
    return trace_.at(hook, layer, sequence_).values;
  }

  // Joins the stream.
  void add(ResidualSource source, Hook hook, int64_t layer) {
    const std::span<const float> added = values(hook, layer);
    parts_.push_back({source, layer, {added.begin(), added.end()}});
  }
  void add_if_there(ResidualSource source, Hook hook) {
    if (trace_.has(hook, -1, sequence_)) add(source, hook, -1);
  }

  // Forgets all that came before: a residual connection was cut.
  void cut() {
    parts_.clear();
    start(config_.d_model);
  }

  // The norm with the statistics of `run`, the input it had in the run: [T, width].
  void normalize(const NormWeights& norm, std::span<const double> run) {
    const std::vector<float> weight = values_of(norm.weight);  // [width]
    const size_t width = weight.size();
    for (size_t first = 0; first < run.size(); first += width) {
      const double scale = 1 / deviation(run.subspan(first, width));
      for (ResidualPart& part : parts_) {
        normalize_row(std::span(part.values).subspan(first, width), scale, weight);
      }
    }
    add_bias(norm.bias);
  }
  void normalize(const NormWeights& norm, std::span<const float> run) {
    normalize(norm, std::vector<double>(run.begin(), run.end()));
  }

  // [T, E] to [T, C].
  void map(const LinearWeights& weights) {
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

  std::vector<double> sum() const {
    std::vector<double> sum(parts_.front().values.size());
    for (const ResidualPart& part : parts_) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += part.values[i];
    }
    return sum;
  }

  std::span<const ResidualPart> parts() const { return parts_; }

 private:
  void start(int64_t width) {
    parts_.push_back({ResidualSource::kBiases, -1, std::vector<double>(num_tokens_ * width)});
  }

  void add_bias(const Tensor& tensor) {
    const std::vector<float> bias = values_of(tensor);  // [width]
    if (bias.empty()) return;
    std::vector<double>& biases = parts_.front().values;
    for (size_t i = 0; i < biases.size(); ++i) biases[i] += bias[i % bias.size()];
  }

  // 0 in an RMS norm, which takes no mean away.
  double mean(std::span<const double> row) const {
    if (config_.norm == NormKind::kRmsNorm) return 0;
    return std::accumulate(row.begin(), row.end(), 0.0) / static_cast<double>(row.size());
  }

  // √(variance + ε)
  double deviation(std::span<const double> row) const {
    const double middle = mean(row);
    double squares = 0;
    for (const double value : row) squares += (value - middle) * (value - middle);
    return std::sqrt(squares / static_cast<double>(row.size()) + config_.norm_eps);
  }

  void normalize_row(std::span<double> row, double scale, std::span<const float> weight) const {
    const double middle = mean(row);
    for (size_t c = 0; c < row.size(); ++c) row[c] = weight[c] * (row[c] - middle) * scale;
  }

  const ModelConfig& config_;
  const Trace& trace_;
  int64_t sequence_;
  int64_t num_tokens_ = 0;
  std::vector<ResidualPart> parts_;  // the biases first
};

bool is_cut(std::span<const ResidualCut> cuts, int64_t layer, ResidualCut::Site site) {
  return std::any_of(cuts.begin(), cuts.end(), [&](const ResidualCut& cut) {
    return cut.layer == layer && (cut.site == site || cut.site == ResidualCut::Site::kBoth);
  });
}

}  // namespace

Trace residual_trace() {
  return Trace{Hook::kTokenEmbed, Hook::kPosEmbed,  Hook::kTokenTypeEmbed,
               Hook::kFullEmbed,  Hook::kAttnOut,   Hook::kResidMid,
               Hook::kMlpOut,     Hook::kResidPost, Hook::kNormalizedResidPost,
               Hook::kFinalNorm};
}

void for_each_residual_state(
    const Model& model, const Trace& trace, int64_t sequence,
    const std::function<void(int64_t l, std::span<const ResidualPart> parts)>& visit,
    std::span<const ResidualCut> cuts) {
  const Weights& weights = model.weights();
  const int64_t num_layers = model.config().num_layers;
  const bool post_norm = model.config().norm_order == NormOrder::kPostNorm;
  Stream stream(model, trace, sequence);

  stream.add(ResidualSource::kToken, Hook::kTokenEmbed, -1);
  stream.add_if_there(ResidualSource::kPosition, Hook::kPosEmbed);
  stream.add_if_there(ResidualSource::kTokenType, Hook::kTokenTypeEmbed);
  if (model.config().embedding_norm) stream.normalize(weights.embedding_norm, stream.sum());
  if (model.config().d_embedding > 0) stream.map(weights.embedding_map);
  visit(0, stream.parts());

  const auto sublayer = [&](int64_t layer, ResidualCut::Site site, ResidualSource source, Hook out,
                            Hook resid, const NormWeights& norm) {
    if (is_cut(cuts, layer, site)) stream.cut();
    stream.add(source, out, layer);
    if (post_norm) stream.normalize(norm, stream.values(resid, layer));
  };
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    const BlockWeights& block = weights.blocks[model.config().block_of(layer)];
    sublayer(layer, ResidualCut::Site::kAttention, ResidualSource::kAttention, Hook::kAttnOut,
             Hook::kResidMid, block.attn_norm);
    sublayer(layer, ResidualCut::Site::kMlp, ResidualSource::kMlp, Hook::kMlpOut, Hook::kResidPost,
             block.mlp_norm);
    if (layer + 1 == num_layers && model.config().final_norm) {
      const Hook last = post_norm ? Hook::kNormalizedResidPost : Hook::kResidPost;
      stream.normalize(weights.final_norm, stream.values(last, layer));
    }
    visit(layer + 1, stream.parts());
  }
}

std::vector<PartShare> direct_position_path(const Model& model, const Trace& trace,
                                            int64_t sequence, std::span<const ResidualCut> cuts) {
  std::vector<PartShare> path;
  const auto find_position = [&](int64_t l, std::span<const ResidualPart> parts) {
    const auto part = std::find_if(parts.begin(), parts.end(), [](const ResidualPart& part) {
      return part.source == ResidualSource::kPosition;
    });
    path.push_back(part == parts.end()
                       ? PartShare()
                       : share_of(part->values, trace.hidden_state(l, sequence).values,
                                  model.config().d_model));
  };
  for_each_residual_state(model, trace, sequence, find_position, cuts);
  return path;
}

}  // namespace phasor
