// Model: checks that weights and configuration fit together, and describes them.
#include "phasor/model.h"

#include <algorithm>
#include <utility>

#include "engine/positions/position_source.h"
#include "files/refuse.h"
#include "models/parameters.h"

namespace phasor {
using namespace internal;

namespace {

void check(const Parameter& parameter) {
  const Tensor& tensor = *parameter.tensor;
  if (!tensor.present()) {
    if (!parameter.required || parameter.leaf == "bias") return;
    refuse<ModelError>("the tensor '{}' is missing; its shape must be {}", parameter.name(),
                       shape_text(parameter.shape));
  }
  if (!shape_fits(parameter, tensor.shape)) {
    refuse<ModelError>("the tensor '{}' has shape {}; the configuration asks for {}",
                       parameter.name(), shape_text(tensor.shape), shape_text(parameter.shape));
  }
}

}  // namespace

std::shared_ptr<const Model> Model::create(ModelConfig config, Weights weights,
                                           std::shared_ptr<const void> storage,
                                           std::shared_ptr<const Tokenizer> tokenizer) {
  validate(config);
  if (const auto blocks = static_cast<int64_t>(weights.blocks.size());
      blocks != config.num_blocks()) {
    refuse<ModelError>("the weights have {} blocks; the configuration asks for {}", blocks,
                       config.num_blocks());
  }
  for (const Parameter& parameter : internal::parameters(config, weights)) check(parameter);

  const std::shared_ptr<Model> model(new Model());
  model->config_ = std::move(config);
  model->weights_ = std::move(weights);
  model->storage_ = std::move(storage);
  model->tokenizer_ = std::move(tokenizer);
  model->tokenizer_problem_.emplace("the model was made without a tokenizer; give token ids");
  return model;
}

const ModelConfig& Model::config() const { return config_; }
const Weights& Model::weights() const { return weights_; }
bool Model::has_tokenizer() const { return tokenizer_ != nullptr; }
bool Model::has_sentence() const { return !sentence_problem_; }
const std::filesystem::path& Model::folder() const { return folder_; }
const std::map<std::string, std::string>& Model::metadata() const { return metadata_; }
const std::vector<std::string>& Model::unused_tensors() const { return unused_tensors_; }
const std::vector<std::string>& Model::unused_keys() const { return unused_keys_; }
const std::vector<std::string>& Model::notes() const { return notes_; }

const Tokenizer& Model::tokenizer() const {
  if (tokenizer_ == nullptr) throw *tokenizer_problem_;
  return *tokenizer_;
}

const TextConfig& Model::text() const {
  if (text_problem_) throw *text_problem_;
  return sentence_;
}

const SentenceConfig& Model::sentence() const {
  if (!has_sentence()) throw *sentence_problem_;
  return sentence_;
}

bool Model::has_sparse() const { return sparse_.has_value(); }

const SparseConfig& Model::sparse() const {
  if (sparse_) return *sparse_;
  if (sparse_problem_) throw *sparse_problem_;
  throw ModelError(
      "this model makes no sparse vectors: its modules.json names no SpladePooling, and it has no "
      "sparse_linear.pt",
      ErrorCode::kUnsupported);
}

bool Model::has_token_vectors() const { return token_vectors_.has_value(); }

const TokenVectorConfig& Model::token_vectors() const {
  if (token_vectors_) return *token_vectors_;
  if (token_vectors_problem_) throw *token_vectors_problem_;
  throw ModelError(
      "this model makes no vector of each token: it is no ColBERT, and it has no colbert_linear.pt",
      ErrorCode::kUnsupported);
}

std::optional<int64_t> Model::max_tokens(const Positions& positions) const {
  if (positions.source() == Positions::Source::kModel) {  // without making tables
    const Tensor& table = weights_.position_table;
    if (!table.present()) return {};
    return std::max<int64_t>(0, table.shape[0] - config_.position.first_position);
  }
  PositionTables tables(config_);
  return PositionSource(*this, positions, tables).max_tokens();
}

std::vector<float> Model::position_vectors(int64_t num_tokens, const Positions& positions,
                                           Overflow overflow) const {
  constexpr int64_t kMostTokens = int64_t{1} << 24;
  if (num_tokens < 1 || num_tokens > kMostTokens) {
    refuse<InvalidArgument>("position vectors are made for 1 to {} tokens, not for {}", kMostTokens,
                            num_tokens);
  }
  PositionTables tables(config_);
  PositionSource source(*this, positions, tables);
  std::vector<float> vectors(num_tokens * config_.embedding_width());
  if (!source.adds()) return vectors;
  const int32_t counted = config_.position.uncounted_token == 0 ? 1 : 0;
  const std::vector<int32_t> token_ids(num_tokens, counted);
  source.rows(source.place(token_ids, overflow), vectors.data());
  return vectors;
}

void Model::release_pages() const {
  if (release_pages_) release_pages_();
}

std::vector<std::pair<std::string, Tensor>> Model::parameters() const {
  Weights weights = weights_;  // a non-const copy for the walk; it shares the tensors' data
  std::vector<std::pair<std::string, Tensor>> all;
  for (const Parameter& parameter : internal::parameters(config_, weights)) {
    const bool tied =
        parameter.module == "mlm.decoder" && parameter.tensor->data == weights.token_embedding.data;
    if (parameter.tensor->present() && !tied) {
      all.emplace_back(parameter.name(), *parameter.tensor);
    }
  }
  return all;
}

int64_t Model::num_parameters() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters()) count += tensor.num_elements();
  return count;
}

}  // namespace phasor
