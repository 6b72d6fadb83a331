// Texts run as for embed(); the states of each become weights of pieces.
#include "outputs/sparse.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "engine/checks.h"
#include "files/refuse.h"

namespace phasor {

double dot(const SparseVector& a, const SparseVector& b) {
  double sum = 0;
  for (size_t i = 0, j = 0; i < a.indices.size() && j < b.indices.size();) {
    if (a.indices[i] == b.indices[j])
      sum += double{a.values[i++]} * b.values[j++];
    else if (a.indices[i] < b.indices[j])
      ++i;
    else
      ++j;
  }
  return sum;
}

namespace internal {
namespace {

constexpr int64_t kBlockNumbers = int64_t{4} << 20;  // logits at once
constexpr int64_t kMostBlockRows = 256;

PieceWeights without_zeros(const std::map<int32_t, float>& weights) {
  PieceWeights kept;
  for (const auto& each : weights) {
    if (each.second != 0) kept.push_back(each);
  }
  return kept;
}

SparseRows rows_of(const std::vector<PieceWeights>& texts, int64_t vocab_size) {
  SparseRows rows;
  rows.width = vocab_size;
  for (const PieceWeights& text : texts) {
    for (const auto& [id, weight] : text) {
      rows.indices.push_back(id);
      rows.values.push_back(weight);
    }
    rows.offsets.push_back(std::ssize(rows.values));
  }
  return rows;
}

/// Weights by the scores over the vocabulary, which are never all in memory.
class ScoreWeights {
 public:
  ScoreWeights(const SparseConfig& config, int64_t vocab_size, const Threads& threads)
      : config_(config), threads_(threads), sums_(vocab_size) {}

  /// logits: [rows, V], of a text's next tokens.
  void add(std::span<const float> logits) {
    const std::ptrdiff_t width = std::ssize(sums_), rows = std::ssize(logits) / width;
    threads_.run_rows(width, rows, [&](int64_t first, int64_t count) {
      for (std::ptrdiff_t row = 0; row < rows; ++row) {
        const float* const x = logits.data() + row * width + first;
        float* const sum = sums_.data() + first;
        if (config_.sum) {
          for (int64_t v = 0; v < count; ++v) sum[v] += weight(x[v]);
        } else {  // the weight grows with the logit
          for (int64_t v = 0; v < count; ++v) sum[v] = std::max(sum[v], x[v]);
        }
      }
    });
  }

  /// The vector of the text, whose tokens are all there.
  PieceWeights finish() {
    PieceWeights kept;
    for (int64_t v = 0; v < std::ssize(sums_); ++v) {
      const float sum = std::exchange(sums_[v], 0.0F);
      const float value = config_.sum ? sum : weight(sum);
      if (value <= 0) continue;
      kept.emplace_back(static_cast<int32_t>(v), value);
    }
    return kept;
  }

 private:
  float weight(float logit) const {
    if (logit <= 0) return 0;
    const float once = std::log1p(logit);
    return config_.twice ? std::log1p(once) : once;
  }

  const SparseConfig& config_;
  const Threads threads_;
  std::vector<float> sums_;  // [V]
};

/// The ids of special tokens round a text, and that of unknown words.
std::vector<int32_t> weightless(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids =
      tokens_or_none([&] { return tokenizer.encode("", {.ids_only = true}); }).ids;
  if (const auto unknown = tokenizer.unknown_id()) ids.push_back(*unknown);
  return ids;
}

}  // namespace

SparseHead::SparseHead(const Runner& runner, int64_t num_texts, std::stop_token stop)
    : runner_(runner),
      config_(runner.model().sparse()),
      width_(runner.model().config().d_model),
      vocab_size_(runner.model().config().vocab_size),
      stop_(std::move(stop)),
      weights_(num_texts) {
  if (config_.kind == SparseConfig::Kind::kTokens)
    weightless_ = weightless(runner.model().tokenizer());
}

void SparseHead::take(const TextStates& batch) {
  config_.kind == SparseConfig::Kind::kScores ? by_scores(batch) : by_tokens(batch);
}

SparseRows SparseHead::finish() { return rows_of(weights_, vocab_size_); }

void SparseHead::by_scores(const TextStates& batch) {
  const int64_t width = width_, vocab_size = vocab_size_;
  const int64_t most = std::clamp<int64_t>(kBlockNumbers / vocab_size, 1, kMostBlockRows);
  const auto num_rows = std::ssize(batch.token_ids);
  ScoreWeights weights(config_, vocab_size, runner_.threads());
  size_t text = 0;
  for (int64_t first = 0; first < num_rows; first += most) {
    if (stop_.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
    const int64_t last = std::min(num_rows, first + most);
    const std::vector<float> logits =
        runner_.run_head(Head::kMlm, batch.states.subspan(first * width, (last - first) * width));
    check_finite_logits(logits, "masked-language-model");
    for (int64_t begin = first; begin < last;) {
      const int64_t end = std::min(last, batch.offsets[text + 1]);
      weights.add(
          std::span(logits).subspan((begin - first) * vocab_size, (end - begin) * vocab_size));
      if (end == batch.offsets[text + 1]) weights_[batch.texts[text++]] = weights.finish();
      begin = end;
    }
  }
}

void SparseHead::by_tokens(const TextStates& batch) {
  const int64_t width = width_;
  for_each_text(runner_.threads(), batch.size(), [&](int64_t text) {
    std::map<int32_t, float> weights;
    for (int64_t t = batch.offsets[text]; t < batch.offsets[text + 1]; ++t) {
      const int32_t id = batch.token_ids[t];
      if (std::ranges::find(weightless_, id) != weightless_.end()) continue;
      double sum = config_.bias;
      for (int64_t c = 0; c < width; ++c)
        sum += double{batch.states[t * width + c]} * config_.weight[c];
      const auto logit = static_cast<float>(sum);
      check_finite_logits({&logit, 1}, "sparse_linear.pt");
      float& weight = weights[id];
      weight = std::max(weight, logit);
    }
    weights_[batch.texts[text]] = without_zeros(weights);
  });
}

Vectors look_up(const Runner& runner, std::span<const std::string_view> texts,
                const TextOptions& options, const TextTask& task) {
  const Model& model = runner.model();
  const SparseConfig& config = model.sparse();
  const TokenizeOptions how = {
      .parse_special = options.parse_special,
      .ids_only = true,
      .max_tokens = longest_text(task.max_tokens, Overflow::kTruncate, options.positions, model,
                                 runner.num_threads()),
      .prompt_bytes = std::ssize(task.prompt),
      .truncation_side = options.truncation_side,
      .no_special_tokens = true};
  const auto num_texts = std::ssize(texts);
  Vectors result;
  result.reports = reports_for(num_texts);
  std::vector<PieceWeights> all(num_texts);
  for_each_text(runner.threads(), num_texts, [&](int64_t i) {
    if (options.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
    const Tokens tokens = tokens_or_none(
        [&] { return model.tokenizer().encode(task.prompt + std::string(texts[i]), how); });
    if (task.overflow == Overflow::kError && tokens.dropped > 0) {
      throw TooLong(i, std::ssize(tokens.ids) + tokens.dropped,
                    fmt::format("at most {} are looked up", how.max_tokens));
    }
    std::map<int32_t, float> weights;
    for (const int32_t id : tokens.ids) {
      if (id < std::ssize(config.query_weights)) weights[id] = config.query_weights[id];
    }
    all[i] = without_zeros(weights);
    report(tokens, i, result.reports);
  });
  if (options.progress) options.progress(num_texts, num_texts);
  result.sparse = rows_of(all, model.config().vocab_size);
  return result;
}

}  // namespace internal
}  // namespace phasor
