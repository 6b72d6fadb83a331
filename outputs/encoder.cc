// Texts become ids, ids groups, and groups run on threads; then the results are merged.

#include "phasor/encoder.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "engine/checks.h"
#include "engine/encoding.h"
#include "engine/runner.h"
#include "files/refuse.h"
#include "outputs/all_vectors.h"
#include "outputs/chunks.h"
#include "outputs/embed.h"
#include "outputs/token_labels.h"

namespace phasor {
using namespace internal;

namespace {

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
  Encoding encode_ids(std::span<const std::vector<int32_t>> sequences, const RunOptions& options);
  EncodeBatch encode() {
    return [this](const TokenBatch& batch, const RunOptions& options, int64_t window) {
      return runner.run(batch, options, window);
    };
  }
  Classification classify(const EmbedInput& input, const ClassifyOptions& options);
  /// run_head() as a function, for as long as this lives.
  HeadOfStates head_of_states(Head head) {
    return [this, head](std::span<const float> states) { return runner.run_head(head, states); };
  }

  Runner runner;
  std::atomic_flag busy = {};
};

Encoding Encoder::Impl::encode_ids(std::span<const std::vector<int32_t>> sequences,
                                   const RunOptions& options) {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> offsets = {0};
  for (const std::vector<int32_t>& sequence : sequences) {
    token_ids.insert(token_ids.end(), sequence.begin(), sequence.end());
    offsets.push_back(std::ssize(token_ids));
  }
  return runner.run({token_ids, offsets, options.token_types}, options);
}

Classification Encoder::Impl::classify(const EmbedInput& input, const ClassifyOptions& options) {
  const ClassifierHead& head = classifier_of(runner.model());
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
  data->logits = internal::embed(runner.model(), runner.threads(), input, how, encode(), &logits);
  check_finite_logits(data->logits->values, "classification");
  data->probabilities = probabilities(data->logits->values, logits.width, head.output);
  return Classification(std::move(data));
}

Encoder::Encoder(std::shared_ptr<const Model> model, EncoderOptions options) {
  if (model == nullptr) throw InvalidArgument("the model is null; load one with Model::load");
  if (options.max_plans < 1)
    refuse<InvalidArgument>("max_plans is {}; at least 1 is needed", options.max_plans);
  check_value(names<Precision>(), static_cast<size_t>(options.precision));
  check_value(names<KernelLibrary>(), static_cast<size_t>(options.kernels));
  impl_.reset(new Impl{Runner(std::move(model), options)});
}

Encoder::Encoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoder Encoder::replica() const { return Encoder(std::unique_ptr<Impl>(new Impl{impl_->runner})); }

Embeddings Encoder::embed(const Texts& texts, const EmbedOptions& options) {
  const Exclusive mine(impl_->busy);
  return Embeddings(
      internal::embed(model(), impl_->runner.threads(), {texts.get()}, options, impl_->encode()));
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
  for_each_text(impl_->runner.threads(), std::ssize(sequences),
                [&](int64_t i) { sequences[i] = tokenizer.encode(texts.get()[i], tokenize).ids; });
  return impl_->encode_ids(sequences, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, const RunOptions& options) {
  return encode_ids(token_ids, std::array{int64_t{0}, std::ssize(token_ids)}, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, std::span<const int64_t> offsets,
                             const RunOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->runner.run({token_ids, offsets, options.token_types}, options);
}

Encoding Encoder::encode_ids(std::span<const std::vector<int32_t>> sequences,
                             const RunOptions& options) {
  const Exclusive mine(impl_->busy);
  return impl_->encode_ids(sequences, options);
}

std::vector<float> Encoder::mlm_logits(std::span<const float> hidden) {
  const Exclusive mine(impl_->busy);
  std::vector<float> logits = impl_->runner.run_head(Head::kMlm, hidden);
  if (all_finite(hidden)) check_finite_logits(logits, "masked-language-model");
  return logits;
}

std::vector<float> Encoder::classifier_logits(std::span<const float> pooled) {
  const Exclusive mine(impl_->busy);
  return impl_->runner.run_head(Head::kClassifier, pooled);
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
      model(), impl_->runner.threads(), {texts.get()}, kinds, options, impl_->encode(),
      impl_->head_of_states(Head::kMlm), impl_->head_of_states(Head::kTokenVectors));
  AllVectors all = {{}, std::move(made.sparse), std::move(made.tokens)};
  if (made.dense) all.dense = Embeddings(std::move(made.dense));
  return all;
}

ChunkVectors Encoder::embed_chunks(const Texts& texts, const ChunkOptions& options) {
  const Exclusive mine(impl_->busy);
  return internal::embed_chunks(model(), impl_->runner.threads(), {texts.get()}, options,
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
  for_each_text(impl_->runner.threads(), documents.size(), [&](int64_t i) {
    const double sum = maxsim(query, documents[i], config.width());
    scores[i] = static_cast<float>(sum / std::max(divisor, 1.0));
  });
  return scores;
}

LabelledTexts Encoder::label_tokens(const Texts& texts, const LabelOptions& options) {
  const Exclusive mine(impl_->busy);
  return internal::label_tokens(model(), impl_->runner.threads(), texts.get(), options,
                                impl_->encode(), impl_->head_of_states(Head::kClassifier));
}

std::vector<PrimitiveInfo> Encoder::primitives() const {
  const Exclusive mine(impl_->busy);
  return impl_->runner.primitives();
}

int64_t Encoder::packed_bytes() const { return impl_->runner.weights().bytes(); }
const Model& Encoder::model() const { return impl_->runner.model(); }
KernelLibrary Encoder::kernels() const { return impl_->runner.weights().kernels; }
Precision Encoder::precision() const { return impl_->runner.weights().precision; }
int Encoder::threads() const { return impl_->runner.num_threads(); }
std::string Encoder::backend_version() { return onednn::version(); }

}  // namespace phasor
