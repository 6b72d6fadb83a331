// Sparse vectors: a weight for each piece of the vocabulary, of which few are not 0.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "phasor/pooling.h"

namespace [[gnu::visibility("default")]] phasor {

/// How a checkpoint's files say that a sparse vector [V] is made of a text's states x_1 … x_T.
struct SparseConfig {
  /// kScores: by the masked-language-model head. Piece v has the largest log(1 + relu(logit_tv)) of
  /// all t, special tokens included (SPLADE; Formal et al. 2021). kTokens: token t gives its own
  /// piece relu(w·x_t + b), and a piece has the largest of its tokens'; special tokens and the
  /// unknown one give none (BGE-M3; Chen et al. 2024).
  enum class Kind { kScores, kTokens };

  Kind kind = Kind::kScores;
  bool sum = false;                // of kScores: the sum over t in place of the largest
  bool twice = false;              // of kScores: log(1 + log(1 + relu(logit)))
  std::vector<float> weight = {};  // of kTokens: w, [C]
  float bias = 0;                  // of kTokens: b
  /// Where queries are looked up: the weight of each piece that a query has, [V]; else empty.
  std::vector<float> query_weights = {};
  std::string source = {};  // the file: "1_SpladePooling/config.json"
  Similarity similarity = Similarity::kDot;
};

/// A vector [V] without its zeros, borrowed.
struct SparseVector {
  std::span<const int32_t> indices;  // token ids, in rising order
  std::span<const float> values;     // one for each, not 0; below 0 only where a table has such
};

/// Σ a_v·b_v, summed in double.
double dot(const SparseVector& a, const SparseVector& b);

}  // namespace phasor
