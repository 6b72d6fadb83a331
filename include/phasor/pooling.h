// Pooling: how the hidden states of a sequence become one vector.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/names.h"

namespace [[gnu::visibility("default")]] phasor {

/// How the rows x_1 … x_T of the last hidden state become a vector of width C. Special tokens count
/// like any other.
enum class PoolingMode {
  kCls,           // x_1
  kMax,           // max_t x_t, each column by itself
  kMean,          // Σ x_t / T
  kMeanSqrtLen,   // Σ x_t / √T
  kWeightedMean,  // Σ t·x_t / Σ t
  kLastToken,     // x_T
};

/// y = f(W x + b) of a pooled vector: sentence-transformers' Dense.
struct Projection {
  int64_t in = 0;
  int64_t out = 0;
  std::vector<float> weight = {};  // [out, in]
  std::vector<float> bias = {};    // [out]
  bool tanh = false;               // f is tanh; otherwise the identity

  bool operator==(const Projection&) const = default;
};

/// From hidden states [T, C] to one vector. A value; the default is the mean.
struct Pooling {
  /// Their vectors are concatenated in the order of the enum, not of this list.
  std::vector<PoolingMode> modes = {PoolingMode::kMean};
  std::vector<Projection> projections = {};  // one after the other
  bool normalize = false;                    // y / max(‖y‖, 1e-12), at the end

  /// The vector's width, for states of width C.
  int64_t width(int64_t d_model) const;
  bool operator==(const Pooling&) const = default;
};

/// The vector of one sequence: hidden [T, C] -> [pooling.width(C)]. Computed in double. Throws
/// InvalidArgument if `hidden` is not a whole number of rows (at least one), if there is no mode,
/// or if a projection does not fit, and ModelError if finite states give a
/// vector that is not finite (before it is normalised).
std::vector<float> pool(std::span<const float> hidden, int64_t d_model, const Pooling& pooling);

/// "cls,mean" for several modes. Throws InvalidArgument listing the valid names, which are
/// sentence-transformers'.
std::vector<PoolingMode> parse_pooling_modes(std::string_view names);
/// The inverse of parse_pooling_modes().
std::string to_string(const std::vector<PoolingMode>& modes);
/// For people: "cls,mean, Dense to 512 with tanh, normalised".
std::string to_string(const Pooling& pooling);

/// The cosine of two vectors, computed in double; 0 if one of them is zero. Throws InvalidArgument
/// if their widths differ.
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
};

/// What a checkpoint's files say about making one vector of a text.
struct SentenceConfig : TextConfig {
  Pooling pooling;
  std::string source;  // the file of the pooling: "1_Pooling/config.json"; empty: none
};

}  // namespace phasor
