#include "outputs/vectors.h"

#include <algorithm>
#include <optional>

#include "files/refuse.h"
#include "outputs/sparse.h"
#include "outputs/token_rows.h"

namespace phasor::internal {
namespace {

bool has(const TextOptions& options, VectorKind kind) {
  return std::ranges::find(options.kinds, kind) != options.kinds.end();
}

/// Whether texts run otherwise than for dense vectors.
bool has_own_run(const TokenVectorConfig& config, bool is_query) {
  const TokenVectorConfig::Side& side = config.side(is_query);
  return side.marker || side.max_tokens > 0 || (is_query && config.expansion);
}

/// Runs texts with their marker, expansion and length.
void apply_own_run(const TokenVectorConfig& config, const Model& model, bool is_query,
                   TextTask& task) {
  const TokenVectorConfig::Side& side = config.side(is_query);
  task.marker = side.marker;
  const bool runs_all =
      task.overflow == Overflow::kClamp || task.overflow == Overflow::kInterpolate;
  if (task.max_tokens == 0 && !runs_all) task.max_tokens = side.max_tokens;
  if (!is_query || !config.expansion) return;
  task.expansion = config.expansion;
  const int64_t length = config.expansion->length;
  const int64_t most = task.max_tokens > 0 ? task.max_tokens : model.text().max_tokens;
  if (config.expansion->cuts || (!runs_all && most > 0 && most < length)) task.max_tokens = length;
  if (config.expansion->cuts && task.overflow != Overflow::kError)
    task.overflow = Overflow::kTruncate;
}

/// Makes the dense vectors.
class DenseHead {
 public:
  /// Borrows all but the pooling. The vectors of texts that are not taken are zeros.
  DenseHead(const Model& model, const Threads& threads, int64_t num_texts,
            const TextOptions& options, Pooling pooling)
      : pooling_(std::move(pooling)), d_model_(model.config().d_model), threads_(threads) {
    vectors_.width = pooling_.width(d_model_);
    const int64_t size = num_texts * vectors_.width;
    if (!options.output.empty() && std::ssize(options.output) != size) {
      refuse<InvalidArgument>(
          "the memory for vectors has {} floats; {} vectors of width {} take {}",
          options.output.size(), num_texts, vectors_.width, size);
    }
    if (options.output.empty()) vectors_.dense.resize(size);
    rows_ = options.output.empty() ? std::span(vectors_.dense) : options.output;
    std::ranges::fill(options.output, 0.0F);
  }

  void take(const TextStates& batch) {
    const std::vector<float> pooled = pool_texts(batch, d_model_, pooling_, threads_);
    for (int64_t i = 0; i < batch.size(); ++i) {
      std::copy_n(&pooled[i * vectors_.width], vectors_.width,
                  &rows_[batch.texts[i] * vectors_.width]);
    }
  }
  void finish(Vectors& all) {
    all.width = vectors_.width;
    all.dense = std::move(vectors_.dense);
  }

 private:
  const Pooling pooling_;
  const int64_t d_model_;
  const Threads threads_;
  Vectors vectors_;
  std::span<float> rows_;
};

}  // namespace

Pooling pooling_of(const TextOptions& options, const Model& model) {
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  Pooling pooling =
      options.pooling.empty() || model.has_sentence() ? model.sentence().pooling : Pooling();
  if (!options.pooling.empty()) pooling = pooling.with_modes(options.pooling);
  if (options.normalize) pooling.normalize = *options.normalize;
  const int64_t width = pooling.width(model.config().d_model);
  if (width < 1 || width > kMostColumns) {
    refuse<InvalidArgument>("the pooling makes vectors of width {}; it must be 1 to {}", width,
                            kMostColumns);
  }
  if (options.dimensions == 0 || options.dimensions == width) return pooling;
  if (options.dimensions > width) {
    refuse<InvalidArgument>("dimensions is {}; the vectors have {} numbers", options.dimensions,
                            width);
  }
  pooling.steps.emplace_back(FirstNumbers{options.dimensions});
  return pooling;
}

std::vector<float> pool_texts(const TextStates& batch, int64_t d_model, const Pooling& pooling,
                              const Threads& threads) {
  std::vector<std::vector<float>> pooled(batch.size());
  const int64_t mean_values = std::ssize(batch.states) / batch.size();
  threads.run_rows(batch.size(), mean_values, [&](int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i)
      pooled[i] = pool(batch.states_of(i), d_model, pooling, batch.prompt_tokens);
  });
  std::vector<float> all;
  all.reserve(pooled.size() * pooled.front().size());
  for (std::vector<float>& vector : pooled) {
    all.insert(all.end(), vector.begin(), vector.end());
    vector = {};
  }
  return all;
}

ReadStates read_by(const Pooling& pooling) {
  const auto are = [&](PoolingMode mode) {
    return std::ranges::count(pooling.modes, mode) == std::ssize(pooling.modes);
  };
  return are(PoolingMode::kCls)         ? ReadStates::kFirst
         : are(PoolingMode::kLastToken) ? ReadStates::kLast
                                        : ReadStates::kAll;
}

Vectors embed(const Runner& runner, std::span<const std::string_view> texts,
              const TextOptions& options) {
  const Model& model = runner.model();
  const TextInput input = {texts};
  const bool is_query = options.role == TextRole::kQuery;
  const bool is_alone =
      std::ranges::adjacent_find(options.kinds, std::ranges::not_equal_to()) == options.kinds.end();
  const auto refuse_several = [&](bool is_other, const char* why) {
    if (!is_alone && is_other)
      refuse<InvalidArgument>("one run cannot make all of these vectors: {}", why);
  };
  TextTask task = {.prompt = prompt_of(options, model.text()),
                   .max_tokens = options.max_tokens,
                   .overflow = options.overflow.value_or(Overflow::kTruncate),
                   .offset_unit = options.offset_unit.value_or(OffsetUnit::kNone)};
  Vectors all;
  std::optional<DenseHead> dense;
  std::optional<SparseHead> sparse;
  std::optional<TokenHead> tokens, states;
  if (options.kinds.empty() || has(options, VectorKind::kDense)) {
    const Pooling pooling = pooling_of(options, model);
    task.counts_prompt = !pooling.include_prompt;
    if (is_alone) task.reads = read_by(pooling);
    dense.emplace(model, runner.threads(), input.size(), options, pooling);
  }
  if (has(options, VectorKind::kSparse)) {
    const bool looks_up = is_query && !model.sparse().query_weights.empty();
    refuse_several(looks_up, "the sparse ones of queries are looked up");
    if (looks_up) return look_up(runner, texts, options, task);
    sparse.emplace(runner, input.size(), options.stop);
  }
  if (has(options, VectorKind::kTokens)) {
    const TokenVectorConfig& config = model.token_vectors();
    refuse_several(has_own_run(config, is_query),
                   "those of tokens have a marker, an expansion or a length of their own");
    apply_own_run(config, model, is_query, task);
    task.token_width = config.width();
    tokens.emplace(runner, input.size(), &config, is_query);
  }
  if (has(options, VectorKind::kStates)) states.emplace(runner, input.size());
  task.take = [&](const TextStates& batch) {
    if (dense) dense->take(batch);
    if (sparse) sparse->take(batch);
    if (tokens) tokens->take(batch);
    if (states) states->take(batch);
  };
  all.reports = run_texts(runner, input, options, task);
  if (dense) dense->finish(all);
  if (sparse) all.sparse = sparse->finish();
  if (tokens) all.tokens = tokens->finish();
  if (states) all.states = states->finish();
  return all;
}

}  // namespace phasor::internal
