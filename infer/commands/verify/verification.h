// A model held against the reference activations beside it, tensor by tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "infer/commands/verify/golden.h"
#include "infer/experiment/deviation.h"
#include "phasor/precision.h"

namespace infer {

/// One tensor of the forward pass, compared for every item.
struct Check {
  std::string tensor;
  int64_t items = 0;
  double max_diff = 0;                // NaN where a NaN was met
  std::string first_difference = {};  // of the first item that differs; empty where none does
  Deviation deviation = {};           // of hidden states

  bool ok() const { return first_difference.empty(); }
};

/// All comparisons of one folder. In float32 every value must be as close as golden.json says.
/// Lower precisions differ by what they cost; there the last hidden state's mean cosine decides.
struct Verification {
  /// What the mean cosine must be at least.
  static constexpr double kLeastCosine = 0.99;

  std::string folder;
  std::string family;
  phasor::Precision precision = phasor::Precision::kFloat32;  // never kAuto
  Golden golden = {};
  int64_t texts = 0;                   // whose ids were compared
  std::string tokenizer_problem = {};  // why none were
  std::string ids_difference = {};
  std::vector<Check> hidden = {};      // l = 0 … L
  std::vector<Check> attentions = {};  // l = 0 … L − 1; in float32 alone
  Check last = {.tensor = "last_hidden_state"};

  bool exact() const { return precision == phasor::Precision::kFloat32; }
  /// In the order of the forward pass.
  std::vector<const Check*> checks() const;
  /// A sentence; empty where all is well.
  std::string first_difference() const;
  bool ok() const { return first_difference().empty(); }
};

/// Runs the model on the inputs of its reference. Throws what loading and running throw, and
/// InvalidArgument where the reference has other layers.
Verification verify_folder(const std::string& folder, int threads, phasor::Precision precision);

}  // namespace infer
