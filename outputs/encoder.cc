// Texts become ids, ids groups, and groups run on threads; then the results are merged.

#include "phasor/encoder.h"

#include <algorithm>
#include <array>

#include "engine/checks.h"
#include "engine/encoding.h"
#include "engine/runner.h"
#include "files/refuse.h"
#include "outputs/labels.h"
#include "outputs/ranking.h"
#include "outputs/vectors.h"
#include "phasor/fields.h"
#include "phasor/names.h"

namespace phasor {
using namespace internal;

namespace {

/// Sequences end to end, and where each begins.
std::pair<std::vector<int32_t>, std::vector<int64_t>> joined(
    std::span<const std::vector<int32_t>> sequences) {
  std::vector<int32_t> token_ids;
  std::vector<int64_t> offsets = {0};
  for (const std::vector<int32_t>& sequence : sequences) {
    token_ids.insert(token_ids.end(), sequence.begin(), sequence.end());
    offsets.push_back(std::ssize(token_ids));
  }
  return {std::move(token_ids), std::move(offsets)};
}

}  // namespace

struct Encoder::Impl {
  Runner runner;
};

Encoder::Encoder(std::shared_ptr<const Model> model, EncoderOptions options) {
  if (model == nullptr) throw InvalidArgument("the model is null; load one with Model::load");
  if (options.max_plans < 1)
    refuse<InvalidArgument>("max_plans is {}; at least 1 is needed", options.max_plans);
  check_value(names<Precision>(), static_cast<size_t>(options.precision));
  check_value(names<KernelLibrary>(), static_cast<size_t>(options.kernels));
  impl_.reset(new Impl{Runner(std::move(model), options)});
}

Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

Encoding Encoder::encode(const Texts& texts, const RunOptions& options) const {
  const bool truncates = options.overflow == Overflow::kTruncate;
  const TokenizeOptions tokenize = {
      .parse_special = options.parse_special,
      .ids_only = true,
      .max_tokens = truncates ? model().max_tokens(options.positions).value_or(0) : 0};
  const Tokenizer& tokenizer = model().tokenizer();
  std::vector<std::vector<int32_t>> sequences(texts.get().size());
  for_each_text(impl_->runner.threads(), std::ssize(sequences),
                [&](int64_t i) { sequences[i] = tokenizer.encode(texts.get()[i], tokenize).ids; });
  const auto [token_ids, offsets] = joined(sequences);
  return impl_->runner.run({token_ids, offsets, options.token_types}, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, const RunOptions& options) const {
  return encode_ids(token_ids, std::array{int64_t{0}, std::ssize(token_ids)}, options);
}

Encoding Encoder::encode_ids(std::span<const int32_t> token_ids, std::span<const int64_t> offsets,
                             const RunOptions& options) const {
  return impl_->runner.run({token_ids, offsets, options.token_types}, options);
}

Encoding Encoder::encode_ids(std::span<const std::vector<int32_t>> sequences,
                             const RunOptions& options) const {
  const auto [token_ids, offsets] = joined(sequences);
  return encode_ids(token_ids, offsets, options);
}

Vectors Encoder::embed(const Texts& texts, const TextOptions& options) const {
  check_fields(options, uses_of(options), "embed()");
  return internal::embed(impl_->runner, texts.get(), options);
}

Pooling Encoder::pooling(const TextOptions& options) const { return pooling_of(options, model()); }

int64_t Encoder::embedding_width(const TextOptions& options) const {
  return pooling(options).width(model().config().d_model);
}

Classification Encoder::classify(const Texts& texts, const TextOptions& options) const {
  check_fields(options, kUseClassify, "classify()");
  return internal::classify(impl_->runner, {texts.get()}, options);
}

Classification Encoder::classify(const Texts& first, const Texts& second,
                                 const TextOptions& options) const {
  check_fields(options, kUseClassify, "classify()");
  return internal::classify(impl_->runner, {first.get(), second.get()}, options);
}

Labels Encoder::label(const Texts& texts, const TextOptions& options) const {
  check_fields(options, kUseLabel, "label()");
  return internal::label(impl_->runner, texts.get(), options);
}

Ranking Encoder::rank(std::string_view query, const Texts& documents,
                      const TextOptions& options) const {
  check_fields(options, kUseRank, "rank()");
  return internal::rank(impl_->runner, query, documents.get(), options);
}

std::vector<float> Encoder::mlm_logits(std::span<const float> hidden) const {
  std::vector<float> logits = impl_->runner.run_head(Head::kMlm, hidden);
  if (all_finite(hidden)) check_finite_logits(logits, "masked-language-model");
  return logits;
}

std::vector<float> Encoder::classifier_logits(std::span<const float> pooled) const {
  return impl_->runner.run_head(Head::kClassifier, pooled);
}

int64_t Encoder::packed_bytes() const { return impl_->runner.packed_bytes(); }
const Model& Encoder::model() const { return impl_->runner.model(); }
KernelLibrary Encoder::kernels() const { return impl_->runner.weights().kernels; }
Precision Encoder::precision() const { return impl_->runner.weights().precision; }
int64_t Encoder::max_tokens() const {
  return longest_text(0, Overflow::kTruncate, {}, model(), threads());
}
int Encoder::threads() const { return impl_->runner.num_threads(); }
std::string Encoder::backend_version() { return onednn::version(); }

}  // namespace phasor
