#include "engine/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "files/refuse.h"

namespace phasor::internal {

bool all_finite(std::span<const float> values) {
  float sum = 0;  // of zeros, or NaN
#pragma omp simd reduction(+ : sum)
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * 0.0f;
  return sum == 0.0f;
}

void check_token_types(const TokenBatch& batch, const Tensor& table) {
  const int64_t num_tokens = std::ssize(batch.token_ids);
  const int64_t rows = table.present() ? table.shape[0] : 1;  // without a table all are 0
  if (!batch.token_types.empty() && std::ssize(batch.token_types) != num_tokens) {
    refuse<InvalidArgument>("{} token types were given for {} token ids; give one for each",
                            batch.token_types.size(), num_tokens);
  }
  for (const int32_t type : batch.token_types) {
    if (type >= 0 && type < rows) continue;
    throw InvalidArgument(
        rows == 1
            ? fmt::format("the token type {} was given; this model knows only 0", type)
            : fmt::format("the token type {} was given; this model's are 0 to {}", type, rows - 1));
  }
}

void check_batch(const TokenBatch& batch, const ModelConfig& config) {
  if (batch.size() < 1) throw InvalidArgument("the batch is empty; give at least one sequence");
  const int64_t num_tokens = std::ssize(batch.token_ids);
  if (batch.offsets.front() != 0 || batch.offsets.back() != num_tokens) {
    refuse<InvalidArgument>(
        "the offsets run from {} to {}; for {} token ids they must run from 0 to {}",
        batch.offsets.front(), batch.offsets.back(), num_tokens, num_tokens);
  }
  for (int64_t s = 0; s < batch.size(); ++s) {
    const auto [begin, end] = std::pair(batch.offsets[s], batch.offsets[s + 1]);
    if (begin < 0 || end < begin || end > num_tokens) {
      refuse<InvalidArgument>(
          "the offsets of sequence {} are {} and {}; offsets must not fall, and no more than {} "
          "token ids were given",
          s, begin, end, num_tokens);
    }
    if (begin == end) {
      refuse<InvalidArgument>(ErrorCode::kEmptyText, "sequence {} has no tokens; give at least one",
                              s);
    }
    for (int64_t t = 0; t < end - begin; ++t) {
      const int32_t id = batch.token_ids[begin + t];
      if (id < 0 || id >= config.vocab_size) {
        refuse<InvalidArgument>("token {} of sequence {} is id {}; this model's ids are 0 to {}", t,
                                s, id, config.vocab_size - 1);
      }
    }
  }
}

void check_run(const RunOptions& options, int64_t num_sequences, const ModelConfig& config) {
  check_value(names<Overflow>(), static_cast<size_t>(options.overflow));
  for (const ResidualCut& cut : options.cut_residuals) {
    check_value(names<ResidualCut::Site>(), static_cast<size_t>(cut.site));
    if (cut.layer < 0 || cut.layer >= config.num_layers) {
      refuse<InvalidArgument>("cannot cut the residual of layer {}: the layers are 0 to {}",
                              cut.layer, config.num_layers - 1);
    }
  }
  const int64_t first = options.first_block;
  if (first < 0 || first >= config.num_layers) {
    refuse<InvalidArgument>("a run cannot begin at block {}: the blocks are 0 to {}", first,
                            config.num_layers - 1);
  }
  if (first > 0 &&
      (options.observer == nullptr || !options.observer->changes(Hook::kResidPre, first))) {
    refuse<InvalidArgument>("a run begins at block {}, and no observer changes {}, its input",
                            first, hook_path(Hook::kResidPre, first));
  }
  const auto& edits = options.positions.edits();
  const bool token_by_token = std::ranges::any_of(
      edits, [](const auto& edit) { return std::holds_alternative<Positions::At>(edit); });
  if (token_by_token && num_sequences > 1) {
    refuse<InvalidArgument>(
        "positions were given token by token for a batch of {} sequences; run them one by one",
        num_sequences);
  }
}

void check_finite(std::span<const float> hidden, const Model& model) {
  if (all_finite(hidden)) return;
  read_finite("token embedding", model.weights().token_embedding);
  read_finite("position table", model.weights().position_table);
  throw InvalidArgument(
      "the hidden states are not finite although the weights are: the weights are too large, or "
      "the positions of this run or what its observer changed are NaN, infinite or too large");
}

void check_finite_logits(std::span<const float> logits, std::string_view head) {
  const auto bad = std::ranges::find_if(logits, [](float x) { return !std::isfinite(x); });
  if (bad == logits.end()) return;
  refuse<ModelError>(
      "the {} head makes the logit {}: its weights are too large; the file is damaged or was saved "
      "from a diverged training run",
      head, *bad);
}

FiniteValues::FiniteValues(const std::string& name, const Tensor& tensor) {
  if (!tensor.present()) return;
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.data) % alignof(float) == 0;
  if (tensor.dtype == DType::kFloat32 && aligned) {
    values_ = {reinterpret_cast<const float*>(tensor.data),
               static_cast<size_t>(tensor.num_elements())};
  } else {
    copy_ = tensor.to_float();
    values_ = copy_;
  }
  if (all_finite(values_)) return;
  const auto bad = std::ranges::find_if(values_, [](float v) { return !std::isfinite(v); });
  refuse<ModelError>(
      "the model's {} holds {} at element {}; the file is damaged or was saved from a diverged "
      "training run",
      name, *bad, bad - values_.begin());
}

std::vector<float> read_finite(const std::string& name, const Tensor& tensor) {
  const FiniteValues values(name, tensor);
  return {values.get().begin(), values.get().end()};
}

}  // namespace phasor::internal
