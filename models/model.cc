// Model: checks that weights and configuration belong together, and answers questions about them.
#include "phasor/model.h"

#include <fmt/format.h>

#include <utility>

#include "models/parameters.h"
#include "phasor/errors.h"

namespace phasor {
namespace {

void check(const Parameter& parameter) {
  const Tensor& tensor = *parameter.tensor;
  if (!tensor.present()) {
    if (!parameter.required) return;
    throw ModelError(fmt::format("the tensor '{}' is missing; its shape must be {}",
                                 parameter.name(), shape_text(parameter.shape)));
  }
  if (!shape_fits(parameter, tensor.shape)) {
    throw ModelError(fmt::format("the tensor '{}' has shape {}; the configuration asks for {}",
                                 parameter.name(), shape_text(tensor.shape),
                                 shape_text(parameter.shape)));
  }
}

}  // namespace

std::shared_ptr<const Model> Model::create(ModelConfig config, Weights weights,
                                           std::shared_ptr<const void> storage,
                                           std::shared_ptr<const Tokenizer> tokenizer) {
  validate(config);
  if (const auto blocks = static_cast<int64_t>(weights.blocks.size());
      blocks != config.num_blocks()) {
    throw ModelError(fmt::format("the weights have {} blocks; the configuration asks for {}",
                                 blocks, config.num_blocks()));
  }
  for (const Parameter& parameter : parameters(config, weights)) check(parameter);

  const std::shared_ptr<Model> model(new Model());
  model->config_ = std::move(config);
  model->weights_ = std::move(weights);
  model->storage_ = std::move(storage);
  model->tokenizer_ = std::move(tokenizer);
  model->tokenizer_problem_ = "the model was made without a tokenizer; give token ids";
  return model;
}

const Tokenizer& Model::tokenizer() const {
  if (tokenizer_ == nullptr) throw ModelError(tokenizer_problem_);
  return *tokenizer_;
}

const SentenceConfig& Model::sentence() const {
  if (!has_sentence()) throw ModelError(sentence_problem_);
  return sentence_;
}

void Model::release_pages() const {
  if (release_pages_) release_pages_();
}

int64_t Model::num_parameters() const {
  // Only a non-const Weights can be walked; the copy shares the tensors' data.
  Weights weights = weights_;
  int64_t count = 0;
  for (const Parameter& parameter : parameters(config_, weights)) {
    const bool tied =
        parameter.module == "mlm.decoder" && parameter.tensor->data == weights.token_embedding.data;
    if (parameter.tensor->present() && !tied) count += parameter.tensor->num_elements();
  }
  return count;
}

}  // namespace phasor
