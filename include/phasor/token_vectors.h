// Token vectors: a vector for each token of a text, compared token by token (late interaction).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "phasor/pooling.h"

namespace [[gnu::visibility("default")]] phasor {

/// How a checkpoint's files say that the tokens of a text get vectors [E]: their last states go
/// through `projections` (ColBERT; Khattab and Zaharia 2020).
struct TokenVectorConfig {
  /// How queries are run, or documents.
  struct Side {
    std::optional<int32_t> marker = {};  // a token put before the text, behind special tokens
    int64_t max_tokens = 0;              // 0: TextConfig::max_tokens
    std::vector<int32_t> skipped = {};   // tokens that get no vector, in rising order
  };
  /// Shorter queries are filled up to `length` tokens, which get vectors like any other.
  struct Expansion {
    int64_t length = 0;
    int32_t token = 0;
    bool attended = false;  // whether other tokens attend to the added ones
    bool cuts = true;       // whether longer queries are cut to `length`
  };

  std::vector<Projection> projections = {};
  Side query = {}, document = {};
  std::optional<Expansion> expansion = {};
  bool unit_length = true;   // vectors are divided by their lengths
  bool skips_first = false;  // the first token gets no vector (BGE-M3)
  bool mean = false;         // the score is maxsim() divided by the number of the query's vectors
  std::string source = {};   // the file: "1_Dense/config.json"

  const Side& side(bool is_query) const { return is_query ? query : document; }
  int64_t width() const { return projections.back().out; }  // E
};

/// MaxSim: Σ_i max_j a_i·b_j, for the vectors a_i of a query [n, width] and b_j of a document [m,
/// width]; 0 where one of them has none. Products in float32, summed in double.
double maxsim(std::span<const float> query, std::span<const float> document, int64_t width);

}  // namespace phasor
