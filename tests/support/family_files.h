// Checkpoints of every family with random weights, under the names that Transformers gives them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/random_model.h"
#include "tests/support/test_files.h"

namespace phasor {

/// A tiny checkpoint: what its files say, and what they have to mean.
struct FamilyCase {
  nlohmann::json config = {};  // its config.json
  ModelConfig meaning;
  RandomModelExtras extras = {};
  /// phasor's module to the whole name in the file, with {l} for the layer (or its group). A name
  /// that ends in [n] is of the rows of one tensor those that come after [n − 1]'s.
  std::map<std::string, std::string> names;
  bool norms_less_one = false;  // the file holds γ − 1
  /// What these names lack in a model that was saved without its head; empty: nobody saves it so.
  std::string prefix = {};
};

FamilyCase bert_case();
FamilyCase electra_case(int64_t embedding_size);
/// roberta, xlm-roberta or camembert.
FamilyCase roberta_case(const std::string& model_type);
FamilyCase mpnet_case();
/// An ELECTRA whose queries and keys turn.
FamilyCase roformer_case(int64_t embedding_size);
/// Jina's BERT with ALiBi and a gated MLP.
FamilyCase jina_case();
/// DeBERTa-v3's layout.
FamilyCase deberta_case();
/// With the keys of Transformers 5, or those of the files before it.
FamilyCase modernbert_case(bool new_keys);
FamilyCase nomic_case(bool new_keys);
/// GTE v1.5 with NTK scaling. Its oracle is the C++ one on this case: there is no checkpoint with
/// hidden states, and a program for this family alone would repeat the same few lines.
FamilyCase gte_case(int64_t token_types);
FamilyCase distilbert_case(bool sinusoidal);
FamilyCase albert_case();
/// With or without a gated MLP.
FamilyCase t5_case(bool gated);
/// Blocks like Llama's: eurobert, qwen3, gemma3_text or t5gemma.
FamilyCase llama_case(const std::string& model_type);
/// marian, bart, mbart, pegasus or m2m_100.
FamilyCase fairseq_case(const std::string& model_type);

/// Every family, in each of the ways in which its files may be written.
std::vector<FamilyCase> all_families();

/// A checkpoint with a classification head for three labels, of one of classifier_types().
FamilyCase classifier_case(const std::string& model_type);
std::vector<std::string> classifier_types();

/// The tensors of `model`, or of a random one, under the case's names. A decoder that is tied to
/// the embedding is left out.
std::vector<TestTensor> tensors_of(const FamilyCase& family, const Model& model);
std::vector<TestTensor> tensors_of(const FamilyCase& family);

}  // namespace phasor
