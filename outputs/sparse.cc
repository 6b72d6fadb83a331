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

SparseVector without_zeros(const std::map<int32_t, float>& weights) {
  SparseVector vector;
  for (const auto& [id, weight] : weights) {
    if (weight == 0) continue;
    vector.indices.push_back(id);
    vector.values.push_back(weight);
  }
  return vector;
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
  SparseVector finish() {
    SparseVector vector;
    for (int64_t v = 0; v < std::ssize(sums_); ++v) {
      const float sum = std::exchange(sums_[v], 0.0F);
      const float value = config_.sum ? sum : weight(sum);
      if (value <= 0) continue;
      vector.indices.push_back(static_cast<int32_t>(v));
      vector.values.push_back(value);
    }
    return vector;
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

SparseHead::SparseHead(const Model& model, const Threads& threads, int64_t num_texts,
                       const RetrievalOptions& options, HeadOfStates logits)
    : config_(model.sparse()),
      width_(model.config().d_model),
      threads_(threads),
      stop_(options.stop),
      logits_(std::move(logits)) {
  if (config_.kind == SparseConfig::Kind::kTokens) weightless_ = weightless(model.tokenizer());
  result_.vectors.resize(num_texts);
  result_.width = model.config().vocab_size;
}

void SparseHead::take(const TextStates& batch) {
  config_.kind == SparseConfig::Kind::kScores ? by_scores(batch) : by_tokens(batch);
}

SparseVectors SparseHead::finish(std::vector<TextReport> reports) {
  result_.reports = std::move(reports);
  return std::move(result_);
}

void SparseHead::by_scores(const TextStates& batch) {
  const int64_t width = width_, vocab_size = result_.width;
  const int64_t most = std::clamp<int64_t>(kBlockNumbers / vocab_size, 1, kMostBlockRows);
  const auto num_rows = std::ssize(batch.token_ids);
  ScoreWeights weights(config_, vocab_size, threads_);
  size_t text = 0;
  for (int64_t first = 0; first < num_rows; first += most) {
    if (stop_.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
    const int64_t last = std::min(num_rows, first + most);
    const std::vector<float> logits =
        logits_(batch.states.subspan(first * width, (last - first) * width));
    check_finite_logits(logits, "masked-language-model");
    for (int64_t begin = first; begin < last;) {
      const int64_t end = std::min(last, batch.offsets[text + 1]);
      weights.add(
          std::span(logits).subspan((begin - first) * vocab_size, (end - begin) * vocab_size));
      if (end == batch.offsets[text + 1]) result_.vectors[batch.texts[text++]] = weights.finish();
      begin = end;
    }
  }
}

void SparseHead::by_tokens(const TextStates& batch) {
  const int64_t width = width_;
  for_each_text(threads_, std::ssize(batch.texts), [&](int64_t text) {
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
    result_.vectors[batch.texts[text]] = without_zeros(weights);
  });
}

SparseVectors look_up(const Model& model, const Threads& threads, const EmbedInput& input,
                      const RetrievalOptions& options) {
  const SparseConfig& config = model.sparse();
  SparseVectors result = {.width = model.config().vocab_size, .vectors = {}, .reports = {}};
  result.vectors.resize(input.size());
  const std::string prompt = *embed_options(model, options).prompt;
  const TokenizeOptions how = {
      .parse_special = options.parse_special,
      .ids_only = true,
      .max_tokens = longest_text({.max_tokens = options.max_tokens}, model, threads.count()),
      .prompt_bytes = std::ssize(prompt),
      .truncation_side = options.truncation_side,
      .no_special_tokens = true};
  result.reports.resize(input.size());
  for_each_text(threads, input.size(), [&](int64_t i) {
    if (options.stop.stop_requested()) throw Error(ErrorCode::kCancelled, "the run was cancelled");
    const Tokens tokens = tokens_or_none(
        [&] { return model.tokenizer().encode(prompt + std::string(input.first[i]), how); });
    if (options.overflow == Overflow::kError && tokens.dropped > 0) {
      refuse<InvalidArgument>(ErrorCode::kTooLong,
                              "text {}: {} tokens are too many: at most {} are looked up", i,
                              std::ssize(tokens.ids) + tokens.dropped, how.max_tokens);
    }
    std::map<int32_t, float> weights;
    for (const int32_t id : tokens.ids) {
      if (id < std::ssize(config.query_weights)) weights[id] = config.query_weights[id];
    }
    result.vectors[i] = without_zeros(weights);
    result.reports[i] = {.num_tokens = std::ssize(tokens.ids),
                         .dropped_tokens = tokens.dropped,
                         .invalid_bytes = tokens.invalid_bytes};
  });
  if (options.progress) options.progress(input.size(), input.size());
  return result;
}

}  // namespace internal
}  // namespace phasor
