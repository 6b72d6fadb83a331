// Checkpoints of every family with random weights, under the names that Transformers gives them.
#pragma once

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

// Those of which a test asks more than all_families() do.
FamilyCase bert_case();
FamilyCase electra_case(int64_t embedding_size);
/// roberta, xlm-roberta or camembert.
FamilyCase roberta_case(const std::string& model_type);
FamilyCase roformer_case(int64_t embedding_size);
FamilyCase deberta_case();
/// With the keys of Transformers 5, or those of the files before it.
FamilyCase modernbert_case(bool new_keys);
FamilyCase nomic_case(bool new_keys);
FamilyCase gte_case(int64_t token_types);
FamilyCase t5_case(bool gated);
/// marian, bart, mbart, pegasus or m2m_100.
FamilyCase fairseq_case(const std::string& model_type);

/// Every family, in each of the ways in which its files may be written.
std::vector<FamilyCase> all_families();

/// Those with a classification head, for three labels; the first is a BERT.
std::vector<FamilyCase> all_classifiers();

/// The tensors of `model`, or of a random one, under the case's names, without a tied decoder.
std::vector<TestTensor> tensors_of(const FamilyCase& family, const Model& model);
std::vector<TestTensor> tensors_of(const FamilyCase& family);

}  // namespace phasor
