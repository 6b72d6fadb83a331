#include "lens/causes.h"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>

#include "lens/residual_stream.h"
#include "lens/rows.h"
#include "phasor/errors.h"

namespace phasor {
using namespace internal;

namespace {

void check_size(std::span<const float> given, std::span<const float> values,
                const HookEvent& event) {
  if (given.size() == values.size()) return;
  throw InvalidArgument(fmt::format("{} values were given for {} of sequence {}, which has {}",
                                    given.size(), hook_path(event.hook, event.layer),
                                    event.sequence, values.size()));
}

/// What the norm of attention's branch makes of each head's part, which it scales as the whole.
void normalize_branch(const ModelConfig& config, const BlockWeights& block,
                      std::vector<std::vector<float>>& heads) {
  const std::vector<float> weight = block.attn_branch_norm.weight.to_float();
  std::vector<float> bias(weight.size());
  if (block.out.bias.present()) bias = block.out.bias.to_float();
  const size_t width = weight.size();
  std::vector<double> row(width);
  for (size_t first = 0; first < heads[0].size(); first += width) {
    row.assign(bias.begin(), bias.end());
    for (const std::vector<float>& head : heads) {
      for (size_t c = 0; c < width; ++c) row[c] += head[first + c];
    }
    const double scale = 1 / deviation(config, row);
    for (std::vector<float>& head : heads) {
      row.assign(&head[first], &head[first] + width);
      normalize_row(config, row, scale, weight);
      std::copy_n(row.begin(), width, &head[first]);
    }
  }
}

}  // namespace

void Subtraction::change(const HookEvent& event, std::span<float> values) {
  if (event.sequence >= std::ssize(parts_)) {
    throw InvalidArgument(
        fmt::format("there are parts for {} sequences, and the run has more", parts_.size()));
  }
  const std::vector<float>& part = parts_[event.sequence];
  check_size(part, values, event);
  for (size_t i = 0; i < values.size(); ++i) values[i] -= part[i];
}

void Patch::change(const HookEvent& event, std::span<float> values) {
  const std::vector<float>& other = trace_.at(hook_, layer_, event.sequence).values;
  check_size(other, values, event);
  std::ranges::copy(other, values.begin());
}

std::vector<float> random_rows(std::span<const float> rows, int64_t d_model, uint64_t seed) {
  using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const int64_t T = num_rows(rows, d_model);
  Rows own = Eigen::Map<const FloatRows>(rows.data(), T, d_model).cast<double>(), drawn(T, d_model);
  const Eigen::VectorXd there = (own.rowwise().norm().array() > 0).cast<double>();
  const auto center = [&there](Rows& values) -> Eigen::RowVectorXd {
    const Eigen::RowVectorXd mean = values.colwise().sum() / std::max(there.sum(), 1.0);
    values -= there * mean;
    return mean;
  };
  std::mt19937_64 random(seed);
  const auto draw = [&](auto&& row, double length) {
    for (int64_t c = 0; c < d_model; ++c) row(c) = draw_normal(random);
    row *= length / row.norm();
  };
  const double common = center(own).norm();
  for (int64_t t = 0; t < T; ++t) draw(drawn.row(t), own.row(t).norm());
  center(drawn);
  if (drawn.norm() > 0) drawn *= own.norm() / drawn.norm();
  Eigen::RowVectorXd direction(d_model);
  draw(direction, common);
  drawn += there * direction;
  std::vector<float> result(rows.size());
  Eigen::Map<FloatRows>(result.data(), T, d_model) = drawn.cast<float>();
  return result;
}

std::vector<std::vector<float>> head_outputs(const Model& model, const Trace& trace, int64_t layer,
                                             int64_t sequence) {
  const ModelConfig& config = model.config();
  check_index("layer", layer, config.num_layers);
  const std::vector<float>& z = trace.at(Hook::kZ, layer, sequence).values;  // [T, H·D]
  const BlockWeights& block = model.weights().blocks[config.block_of(layer)];
  const std::vector<float> weight = block.out.weight.to_float();  // [C, H·D]
  const int64_t C = config.d_model, H = config.num_heads;
  const auto width = std::ssize(weight) / C, D = width / H;
  const int64_t T = num_rows(std::span(z), width);
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Rows> states(z.data(), T, width), map(weight.data(), C, width);
  std::vector<std::vector<float>> outputs(H, std::vector<float>(T * C));
  for (int64_t h = 0; h < H; ++h) {
    Eigen::Map<Rows>(outputs[h].data(), T, C).noalias() =
        states.middleCols(h * D, D) * map.middleCols(h * D, D).transpose();
  }
  if (config.branch_norms) normalize_branch(config, block, outputs);
  return outputs;
}

}  // namespace phasor
