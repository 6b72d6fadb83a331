// Pooling: how the hidden states of a sequence become one vector.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "phasor/config.h"
#include "phasor/names.h"

namespace [[gnu::visibility("default")]] phasor {

/// How the rows x_1 … x_T of the last hidden state become a vector of width C. Special tokens count
/// like any other.
enum class PoolingMode {
  kCls,           // x_1
  kMax,           // max_t x_t, each column by itself
  kMean,          // Σ x_t / T
  kMeanSqrtLen,   // Σ x_t / √T
  kWeightedMean,  // Σ t·x_t / Σ t; tokens are counted from the prompt's first
  kLastToken,     // x_T
};

/// y = f(W x + b): sentence-transformers' Dense.
struct Projection {
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> weight = {};                 // [out, in]
  std::vector<float> bias = {};                   // [out]
  Activation activation = Activation::kIdentity;  // f

  bool operator==(const Projection&) const = default;
};

/// y = (x − mean) / √(variance + 1e-5) · weight + bias: sentence-transformers' LayerNorm.
struct VectorNorm {
  std::vector<float> weight = {};  // [width]
  std::vector<float> bias = {};    // [width]

  bool operator==(const VectorNorm&) const = default;
};

/// y = x / max(‖x‖, 1e-12): sentence-transformers' Normalize.
struct UnitLength {
  bool operator==(const UnitLength&) const = default;
};

/// y = the first `count` numbers of x: sentence-transformers' truncate_dim.
struct FirstNumbers {
  int64_t count = 0;
  bool operator==(const FirstNumbers&) const = default;
};

/// What is done with a pooled vector.
using PoolingStep = std::variant<Projection, VectorNorm, UnitLength, FirstNumbers>;

/// From hidden states [T, C] to one vector. A value; the default is the mean.
struct Pooling {
  /// Their vectors are concatenated in this order; a mode may appear several times.
  std::vector<PoolingMode> modes = {PoolingMode::kMean};
  std::vector<PoolingStep> steps = {};  // one after the other
  bool normalize = false;               // UnitLength at the end
  bool include_prompt = true;           // false: only the tokens after the prompt are pooled

  /// Other modes in place of these and of all steps; of length 1 where this makes such vectors.
  Pooling with_modes(std::vector<PoolingMode> others) const;
  /// The vector's width, for states of width C.
  int64_t width(int64_t d_model) const;
  bool operator==(const Pooling&) const = default;
};

/// The vector of one sequence: hidden [T, C] -> [pooling.width(C)]. Computed in double. The first
/// `prompt_tokens` rows are the prompt's; without pooling.include_prompt they are left out, and
/// where no other row is left the pooled vector is zeros. Throws InvalidArgument if `hidden` is not
/// a whole number of rows (at least one), if there is no mode, or if a step does not fit, and
/// ModelError if finite states give a vector that is not finite (before it is normalised).
std::vector<float> pool(std::span<const float> hidden, int64_t d_model, const Pooling& pooling,
                        int64_t prompt_tokens = 0);

/// For people: "cls,mean, Dense to 512 with tanh, normalised".
std::string to_string(const Pooling& pooling);

/// How two vectors are compared; more is more similar.
enum class Similarity {
  kCosine,     // a·b / (‖a‖·‖b‖); 0 if one of them is zero
  kDot,        // a·b
  kEuclidean,  // −‖a − b‖
  kManhattan,  // −Σ |a_i − b_i|
};

/// The similarity of two vectors, computed in double. Throws InvalidArgument if their widths
/// differ.
double similarity(std::span<const float> a, std::span<const float> b, Similarity kind);
/// similarity() by Similarity::kCosine.
double cosine(std::span<const float> a, std::span<const float> b);

/// What a checkpoint's files say about preparing texts, for vectors and for a classification head.
struct TextConfig {
  int64_t max_tokens = 0;      // texts are cut to this many, special tokens included; 0: not given
  bool special_tokens = true;  // whether the tokenizer's special tokens are put round a text
  std::string prompt;          // put before every text, and before the first of a pair
  std::map<std::string, std::string> prompts;  // by name
  /// The prompt for what is searched for, which is named "query", and for what is found, named
  /// "document", "passage" or "corpus"; empty: there is none.
  std::optional<std::string> query_prompt() const;
  std::optional<std::string> document_prompt() const;
  /// That of queries or of documents, or else `prompt`.
  std::string prompt_for(bool is_query) const;
};

/// What a checkpoint's files say about making one vector of a text.
struct SentenceConfig : TextConfig {
  Pooling pooling;
  std::string source;  // the file of the pooling: "1_Pooling/config.json"; empty: none
  Similarity similarity = Similarity::kCosine;  // by which its vectors are to be compared
};

}  // namespace phasor
