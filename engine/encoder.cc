// Texts become ids, ids groups, and groups run on threads; then the results are merged.

#include "phasor/encoder.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>

#include "engine/all_vectors.h"
#include "engine/checks.h"
#include "engine/chunks.h"
#include "engine/embed.h"
#include "engine/encoding.h"
#include "engine/forward.h"
#include "engine/output_heads.h"
#include "engine/team.h"
#include "engine/token_labels.h"
#include "files/refuse.h"

namespace phasor {
using namespace internal;

namespace {

// Groups of about this many rows keep their activations in the second-level cache, and there are
// enough groups to keep all threads busy to the end.
constexpr int64_t kGroupRows = 256;
constexpr int64_t kGroupFloats = int64_t{8} << 20;  // fewer rows, where they are very wide
constexpr int64_t kAllRows = std::numeric_limits<int64_t>::max();

// Up to the rows of about kSharedGroups groups, threads that share each matmul are some 5 % slower
// than threads that have as much work each. So they share where a thread has more than its part by
// this factor.
constexpr double kMostImbalance = 1.1;
constexpr int64_t kSharedGroups = 8;

/// How many times its share the busiest thread has, where each takes the next group once it is
/// free.
double imbalance(const std::vector<Group>& groups, int num_threads) {
  std::vector<int64_t> rows(num_threads);
  int64_t total = 0;
  for (const Group& group : groups) {
    *std::ranges::min_element(rows) += group.num_rows;
    total += group.num_rows;
  }
  return static_cast<double>(std::ranges::max(rows)) * num_threads / static_cast<double>(total);
}

/// As many threads as pay for that many multiplications in the widest step.
Threads threads_for(int64_t work, Team& team) {
  constexpr int64_t kThreadWork = 1 << 19;
  return Threads(team, static_cast<int>(std::clamp<int64_t>(work / kThreadWork, 1, team.size())));
}

/// Packing only moves values: many count as one multiplication. A thread that is started for a
/// small model costs more than it saves, and each holds a layer's weights in float32.
Threads packing_threads(const ModelConfig& config, Team& team) {
  constexpr int kMost = 8;
  const Threads threads = threads_for(8 * config.d_model * config.d_ff, team);
  return Threads(team, std::min(kMost, threads.count()));
}

/// Notes which token's state is read, where of each sequence that is one.
void note_read_tokens(const TokenBatch& batch, const Pooling& pooling,
                      std::vector<Segment>& segments) {
  const auto are = [&](PoolingMode mode) {
    return std::ranges::count(pooling.modes, mode) == std::ssize(pooling.modes);
  };
  const bool first = are(PoolingMode::kCls);
  if (std::ssize(segments) != batch.size() || !(first || are(PoolingMode::kLastToken))) return;
  const int64_t skipped = pooling.include_prompt ? 0 : batch.prompt_tokens;
  for (Segment& segment : segments) {
    const int64_t last = segment.num_tokens() - 1;
    segment.read_token = first ? std::min(skipped, last) : last;
  }
}

/// Marks an Encoder as in use for as long as it lives; throws if it already is.
class Exclusive {
 public:
  explicit Exclusive(std::atomic_flag& busy) : busy_(busy) {
    if (busy_.test_and_set(std::memory_order_acquire)) {
      throw InvalidArgument(
          "this Encoder is in use by another call; give each thread its own, made with replica()",
          ErrorCode::kBusy);
    }
  }
  ~Exclusive() { busy_.clear(std::memory_order_release); }
  Exclusive(const Exclusive&) = delete;
  Exclusive& operator=(const Exclusive&) = delete;

 private:
  std::atomic_flag& busy_;
};

}  // namespace

struct Encoder::Impl {
  Impl(std::shared_ptr<const Model> model_in, const EncoderOptions& options)
      : model(std::move(model_in)),
        executor(options.executor),
        team(team_size(options.threads, executor.get()), executor),
        max_plans(options.max_plans),
        engine(dnnl::engine::kind::cpu, 0),
        weights(std::make_shared<const PackedWeights>(*model, engine, options.precision,
                                                      options.kernels,
                                                      packing_threads(model->config(), team))),
        position_tables(model->config()) {
    make_workspaces();
  }
  Impl(const Impl& other)
      : model(other.model),
        executor(other.executor),
        team(other.team.size(), executor),
        max_plans(other.max_plans),
        engine(other.engine),
        weights(other.weights),
        position_tables(model->config()) {
    make_workspaces();
  }

  void make_workspaces() {
    const auto make =
        weights->kernels == KernelLibrary::kOneDnn ? make_onednn_steps : make_kernel_steps;
    for (int t = 0; t < team.size(); ++t) {
      workspaces.emplace_back(make(engine, model->config(), *weights, max_plans));
    }
  }

  Encoding encode_ids(const TokenBatch& batch, const RunOptions& options, int64_t window = 0);
  Encoding encode_ids(std::span<const std::vector<int32_t>> sequences, const RunOptions& options);
  EncodeBatch encode() {
    return [this](const TokenBatch& batch, const RunOptions& options, int64_t window) {
      return encode_ids(batch, options, window);
    };
  }
  void run(const Run& run, const std::vector<Segment>& segments, std::span<float> hidden);
  Classification classify(const EmbedInput& input, const ClassifyOptions& options);
  /// Of a head, which is packed at its first use, for states [n, C]: [n, out].
  std::vector<float> run_head(Head head, std::span<const float> states);
  /// run_head() as a function, for as long as this lives.
  HeadOfStates head_of_states(Head head) {
    return [this, head](std::span<const float> states) { return run_head(head, states); };
  }

  std::shared_ptr<const Model> model;
  std::shared_ptr<Executor> executor;
  Team team;
  int max_plans;
  dnnl::engine engine;
  std::shared_ptr<const PackedWeights> weights;
  PositionTables position_tables;
  std::vector<Workspace> workspaces;  // [team.size()]
  int last_workspace = 0;             // ran the first group of the last run
  std::array<std::unique_ptr<HeadRunner>, kNumHeads> heads;
  std::atomic_flag busy;
};

Encoding Encoder::Impl::encode_ids(const TokenBatch& batch, const RunOptions& options,
                                   int64_t window) {
  check_batch(batch, model->config());
  check_token_types(batch, model->weights().token_type_embedding);
  check_run(options, batch.size(), model->config());
  PositionSource positions(*model, options.positions, position_tables);
  const Watch watch(options.observer, model->config().num_layers);
  std::vector<Segment> segments = make_segments(batch, options.overflow, positions, window);
  if (batch.pooled_only && !watch.active()) note_read_tokens(batch, *options.pooling, segments);
  EncodingParts parts(segments, model->config().d_model, options.hidden);
  run({*model, *weights, positions, watch, options.cut_residuals, options.first_block,
       options.stop},
      segments, parts.rows());
  check_finite(parts.rows(), *model);
  return Encoding(parts.finish(options.pooling, batch.prompt_tokens, Threads(team)));
}

Encoding Encoder::Impl::encode_ids(std::span<const std::vector<int32_t>> sequences,
                                   const RunOptions& options) {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> offsets = {0};
  for (const std::vector<int32_t>& sequence : sequences) {
    token_ids.insert(token_ids.end(), sequence.begin(), sequence.end());
    offsets.push_back(std::ssize(token_ids));
  }
  return encode_ids({token_ids, offsets, options.token_types}, options);
}

std::vector<float> Encoder::Impl::run_head(Head head, std::span<const float> states) {
  const PackedHead& packed = weights->head(head, *model, engine);
  std::unique_ptr<HeadRunner>& runner = heads[static_cast<size_t>(head)];
  if (!runner) runner = std::make_unique<HeadRunner>(model->config(), engine, packed);
  int64_t row_work = 0;  // multiplications for each number of a row
  for (const PackedHead::Map& map : packed.maps) row_work = std::max(row_work, map.linear.out);
  return runner->run(threads_for(std::ssize(states) * row_work, team), states);
}

Classification Encoder::Impl::classify(const EmbedInput& input, const ClassifyOptions& options) {
  const ClassifierHead& head = classifier_of(*model);
  const EmbedHead logits = {.width = std::ssize(head.labels),
                            .of_every_token = head.mean_of_logits,
                            .apply = head_of_states(Head::kClassifier)};
  // The mean, so that no token's last state is left out.
  const PoolingMode pooling = head.mean_of_logits ? PoolingMode::kMean : head.pooling;
  const EmbedOptions how = {.pooling = Pooling{.modes = {pooling}},
                            .prompt = options.prompt,
                            .max_tokens = options.max_tokens,
                            .overflow = options.overflow,
                            .progress = options.progress,
                            .stop = options.stop,
                            .parse_special = options.parse_special,
                            .truncation_side = options.truncation_side};
  auto data = std::make_shared<ClassificationData>();
  data->logits = internal::embed(*model, Threads(team), input, how, encode(), &logits);
  check_finite_logits(data->logits->values, "classification");
  data->probabilities = probabilities(data->logits->values, logits.width, head.output);
  return Classification(std::move(data));
}

// Writes the last hidden state of all segments, end to end: [rows, C].
void Encoder::Impl::run(const Run& run, const std::vector<Segment>& segments,
                        std::span<float> hidden) {
  // Each thread runs whole groups through the whole network. If that leaves threads idle, all
  // threads share the matmuls of one group.
  const bool whole = run.watch.active();
  const int64_t row = floats_per_token(model->config(), 1);
  const int64_t group_rows = std::clamp<int64_t>(kGroupFloats / row, 1, kGroupRows);
  std::vector<Group> groups = make_groups(
      segments, {.min_groups = team.size(), .target_rows = group_rows, .whole_sequences = whole});
  const Group& last = groups.back();
  const bool are_few = std::ssize(segments) < team.size();
  if (are_few || (last.offset + last.num_rows <= kSharedGroups * group_rows &&
                  imbalance(groups, team.size()) > kMostImbalance)) {
    groups = make_groups(segments, {.target_rows = kAllRows, .whole_sequences = whole});
  }
  const int64_t width = model->config().d_model;
  const auto run_group = [&](const Threads& threads, const Group& group, Workspace& workspace) {
    workspace.prepare(threads, group, model->config(), run.positions.rotation(), run.watch);
    const float* result = forward(run, group, workspace);
    std::copy_n(result, group.num_rows * width, &hidden[group.offset * width]);
  };
  if (groups.size() == 1) {
    const int64_t work = groups.front().num_rows * width * model->config().d_ff;
    run_group(threads_for(work, team), groups.front(), workspaces.front());
    last_workspace = 0;
    return;
  }
  Threads(team).run(std::ssize(groups), [&](int64_t g, int thread) {
    run_group(Threads(), groups[g], workspaces[thread]);
    if (g == 0) last_workspace = thread;
  });
}

Encoder::Encoder(std::shared_ptr<const Model> model, EncoderOptions options) {
  if (model == nullptr) throw InvalidArgument("the model is null; load one with Model::load");
  if (options.max_plans < 1)
    refuse<InvalidArgument>("max_plans is {}; at least 1 is needed", options.max_plans);
  check_value(names<Precision>(), static_cast<size_t>(options.precision));
  check_value(names<KernelLibrary>(), static_cast<size_t>(options.kernels));
  impl_ = std::make_unique<Impl>(std::move(model), options);
}

Encoder::Encoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoder Encoder::replica() const { return Encoder(std::make_unique<Impl>(*impl_)); }

Embeddings Encoder::embed(const Texts& texts, const EmbedOptions& options) {
  const Exclusive mine(impl_->busy);
  return Embeddings(
      internal::embed(model(), Threads(impl_->team), {texts.get()}, options, impl_->encode()));
}

int64_t Encoder::embedding_width(const EmbedOptions& options) const {
  return internal::embedding_width(model(), options);
}

Encoding Encoder::encode(const Texts& texts, const RunOptions& options) {
  const bool truncates = options.overflow == Overflow::kTruncate;
  const TokenizeOptions tokenize = {
      .parse_special = options.parse_special,
      .ids_only = true,
      .max_tokens = truncates ? model().max_tokens(options.positions).value_or(0) : 0};
  const Exclusive mine(impl_->busy);
  const Tokenizer& tokenizer = model().tokenizer();
  std::vector<std::vector<int32_t>> sequences(texts.get().size());
  for_each_text(Threads(impl_->team), std::ssize(sequences),
                [&](int64_t i) { sequences[i] = tokenizer.encode(texts.get()[i], tokenize).ids; });
  return impl_->encode_ids(sequences, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, const RunOptions& options) {
  return encode_ids(token_ids, std::array{int64_t{0}, std::ssize(token_ids)}, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, std::span<const int64_t> offsets,
                             const RunOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->encode_ids({token_ids, offsets, options.token_types}, options);
}

Encoding Encoder::encode_ids(std::span<const std::vector<int32_t>> sequences,
                             const RunOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->encode_ids(sequences, options);
}

std::vector<float> Encoder::mlm_logits(std::span<const float> hidden) {
  const Exclusive mine(impl_->busy);
  std::vector<float> logits = impl_->run_head(Head::kMlm, hidden);
  if (all_finite(hidden)) check_finite_logits(logits, "masked-language-model");
  return logits;
}

std::vector<float> Encoder::classifier_logits(std::span<const float> pooled) {
  const Exclusive mine(impl_->busy);
  return impl_->run_head(Head::kClassifier, pooled);
}

Classification Encoder::classify(const Texts& texts, const ClassifyOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->classify({texts.get()}, options);
}

Classification Encoder::classify(const Texts& first, const Texts& second,
                                 const ClassifyOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->classify({first.get(), second.get()}, options);
}

SparseVectors Encoder::embed_sparse(const Texts& texts, const RetrievalOptions& options) {
  return *embed_all(texts, {.dense = false, .tokens = false}, options).sparse;
}

TokenVectors Encoder::embed_tokens(const Texts& texts, const RetrievalOptions& options) {
  return *embed_all(texts, {.dense = false, .sparse = false}, options).tokens;
}

AllVectors Encoder::embed_all(const Texts& texts, VectorKinds kinds,
                              const RetrievalOptions& options) {
  const Exclusive mine(impl_->busy);
  AllVectorsData made = internal::embed_all(
      model(), Threads(impl_->team), {texts.get()}, kinds, options, impl_->encode(),
      impl_->head_of_states(Head::kMlm), impl_->head_of_states(Head::kTokenVectors));
  AllVectors all = {{}, std::move(made.sparse), std::move(made.tokens)};
  if (made.dense) all.dense = Embeddings(std::move(made.dense));
  return all;
}

ChunkVectors Encoder::embed_chunks(const Texts& texts, const ChunkOptions& options) {
  const Exclusive mine(impl_->busy);
  return internal::embed_chunks(*impl_->model, Threads(impl_->team), {texts.get()}, options,
                                impl_->encode());
}

std::vector<float> Encoder::similarities(std::span<const float> query,
                                         const TokenVectors& documents) {
  const Exclusive mine(impl_->busy);
  const TokenVectorConfig& config = model().token_vectors();
  if (documents.width != config.width()) {
    refuse<InvalidArgument>("the documents' vectors have width {}; this model's have {}",
                            documents.width, config.width());
  }
  const double divisor =
      config.mean ? static_cast<double>(std::ssize(query) / config.width()) : 1.0;
  std::vector<float> scores(documents.size());
  for_each_text(Threads(impl_->team), documents.size(), [&](int64_t i) {
    const double sum = maxsim(query, documents[i], config.width());
    scores[i] = static_cast<float>(sum / std::max(divisor, 1.0));
  });
  return scores;
}

LabelledTexts Encoder::label_tokens(const Texts& texts, const LabelOptions& options) {
  const Exclusive mine(impl_->busy);
  return internal::label_tokens(model(), Threads(impl_->team), texts.get(), options,
                                impl_->encode(), impl_->head_of_states(Head::kClassifier));
}

std::vector<PrimitiveInfo> Encoder::primitives() const {
  const Exclusive mine(impl_->busy);
  return impl_->workspaces[impl_->last_workspace].steps().primitives();
}

int64_t Encoder::packed_bytes() const { return impl_->weights->bytes(); }
const Model& Encoder::model() const { return *impl_->model; }
KernelLibrary Encoder::kernels() const { return impl_->weights->kernels; }
Precision Encoder::precision() const { return impl_->weights->precision; }
int Encoder::threads() const { return impl_->team.size(); }
std::string Encoder::backend_version() { return onednn::version(); }

}  // namespace phasor
