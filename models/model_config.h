// From a folder's config.json to a ModelConfig.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/model_folder.h"
#include "models/families.h"
#include "phasor/config.h"
#include "phasor/model.h"

namespace phasor::internal {

inline constexpr const char* kTokenMapWeight = "linear.weight";  // of ColBERT's own folders

struct CheckpointConfig {
  const Family* family = nullptr;
  ModelConfig config;
  bool needs_mlm_head = false;  // according to config.json
  bool needs_token_types = false;
  bool ties_decoder = true;  // the head's decoder is the token embedding unless the file has one
  Activation head_activation = Activation::kGeluErf;
  ClassifierHead classifier;  // without tensors; without labels if config.json names none
  std::optional<ClassifierHead::Output> classifier_output;  // empty: by the number of labels
  bool labels_tokens = false;      // whether the files' head is for tokens, not for texts
  bool maps_tokens = false;        // whether kTokenMapWeight makes a vector of each token
  std::string classifier_problem;  // why the files' head cannot be used; usually empty
  std::vector<std::string> notes;  // see Model::notes()
};

/// Throws ModelError naming the file, the key, its value and what is supported.
CheckpointConfig read_model_config(ModelFolder& folder);

}  // namespace phasor::internal
