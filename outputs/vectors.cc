#include "outputs/vectors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <memory>

#include "files/refuse.h"
#include "outputs/results.h"
#include "outputs/sparse.h"
#include "outputs/token_rows.h"
#include "phasor/fields.h"

namespace phasor::internal {
namespace {

/// A call of embed(), whose run the kinds of vectors determine together.
struct EmbedCall {
  const Runner& runner;
  const TextOptions& options;
  int64_t num_texts;
  bool is_query, is_alone;  // the only kind
  TextTask& task;

  const Model& model() const { return runner.model(); }
  void refuse_among_others(const char* why) const {
    if (!is_alone) refuse<InvalidArgument>("one run cannot make all of these vectors: {}", why);
  }
};

/// Makes vectors of a kind of the states of texts; finish() when all are taken.
struct KindHead {
  std::function<void(const TextStates&)> take;
  std::function<void(Vectors&)> finish;
};

template <typename T, typename Member>
KindHead head_of(std::shared_ptr<T> made, Member member) {
  return {[made](const TextStates& batch) { made->take(batch); },
          [made, member](Vectors& all) { all.*member = made->finish(); }};
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

KindHead dense_head(const EmbedCall& call) {
  const Pooling pooling = pooling_of(call.options, call.model());
  call.task.counts_prompt = !pooling.include_prompt;
  if (call.is_alone) call.task.reads = read_by(pooling);
  const auto made = std::make_shared<DenseHead>(call.model(), call.runner.threads(), call.num_texts,
                                                call.options, pooling);
  return {[made](const TextStates& batch) { made->take(batch); },
          [made](Vectors& all) { made->finish(all); }};
}

void add_dense(const Vectors& all, std::vector<ResultArray>& arrays) {
  if (all.width > 0 && std::ssize(all.dense) == all.size() * all.width)
    arrays.push_back({"dense", std::span(all.dense), all.width});
}

KindHead sparse_head(const EmbedCall& call) {
  return head_of(std::make_shared<SparseHead>(call.runner, call.num_texts, call.options.stop),
                 &Vectors::sparse);
}

void add_sparse(const Vectors& all, std::vector<ResultArray>& arrays) {
  if (all.sparse.width == 0) return;
  ItemArrays items("sparse_offsets", all.sparse.offsets, arrays);
  items.add("sparse_indices", std::span(all.sparse.indices));
  items.add("sparse_values", std::span(all.sparse.values));
}

KindHead token_head(const EmbedCall& call) {
  const TokenVectorConfig& config = call.model().token_vectors();
  if (has_own_run(config, call.is_query))
    call.refuse_among_others(
        "those of tokens have a marker, an expansion or a length of their own");
  apply_own_run(config, call.model(), call.is_query, call.task);
  call.task.token_width = config.width();
  return head_of(std::make_shared<TokenHead>(call.runner, call.num_texts, &config, call.is_query),
                 &Vectors::tokens);
}

void add_rows(const TokenRows& rows, const std::array<std::string_view, 4>& names,
              std::vector<ResultArray>& arrays) {
  if (rows.width == 0) return;
  ItemArrays items(names[0], rows.offsets, arrays);
  items.add(names[1], std::span(rows.values), rows.width);
  items.add(names[2], std::span(rows.ids));
  if (rows.spans.size() == rows.ids.size()) items.add(names[3], numbers_of(rows.spans), 2);
}

void add_tokens(const Vectors& all, std::vector<ResultArray>& arrays) {
  add_rows(all.tokens, {"token_offsets", "token_vectors", "token_ids", "token_spans"}, arrays);
}

KindHead state_head(const EmbedCall& call) {
  return head_of(std::make_shared<TokenHead>(call.runner, call.num_texts), &Vectors::states);
}

void add_states(const Vectors& all, std::vector<ResultArray>& arrays) {
  add_rows(all.states, {"state_offsets", "state_vectors", "state_ids", "state_spans"}, arrays);
}

/// What makes vectors of a kind, and their arrays where they were made.
struct KindRow {
  KindHead (*head)(const EmbedCall& call);
  void (*add)(const Vectors& all, std::vector<ResultArray>& arrays);
};

/// In the order of VectorKind.
constexpr KindRow kKinds[] = {{dense_head, add_dense},
                              {sparse_head, add_sparse},
                              {token_head, add_tokens},
                              {state_head, add_states}};

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
  const uint32_t uses = uses_of(options);
  TextTask task = {.prompt = prompt_of(options, model.text()),
                   .max_tokens = options.max_tokens,
                   .overflow = options.overflow.value_or(Overflow::kTruncate),
                   .offset_unit = options.offset_unit.value_or(OffsetUnit::kNone)};
  const EmbedCall call = {.runner = runner,
                          .options = options,
                          .num_texts = std::ssize(texts),
                          .is_query = options.role == TextRole::kQuery,
                          .is_alone = std::has_single_bit(uses),
                          .task = task};
  const bool looks_up =
      (uses & kUseSparse) != 0 && call.is_query && !model.sparse().query_weights.empty();
  if (looks_up) {
    call.refuse_among_others("the sparse ones of queries are looked up");
    return look_up(runner, texts, options, task);
  }
  std::vector<KindHead> heads;
  for (uint32_t kind = 0; kind < std::size(kKinds); ++kind) {
    if ((uses >> kind & 1) != 0) heads.push_back(kKinds[kind].head(call));
  }
  task.take = [&](const TextStates& batch) {
    for (const KindHead& head : heads) head.take(batch);
  };
  Vectors all;
  all.reports = run_texts(runner, {texts}, options, task);
  for (const KindHead& head : heads) head.finish(all);
  return all;
}

}  // namespace phasor::internal

namespace phasor {

std::vector<ResultArray> Vectors::arrays() const {
  std::vector<ResultArray> arrays;
  for (const internal::KindRow& kind : internal::kKinds) kind.add(*this, arrays);
  internal::add_reports(reports, arrays);
  return arrays;
}

}  // namespace phasor
