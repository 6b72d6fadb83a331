// The blueprint of an encoder: every choice that decides what its weights mean.
//
// Plain data. Shape letters, here and everywhere: N tokens in the batch, B sequences, T tokens of
// one sequence, C d_model, H heads, D head_dim = C/H, F d_ff, L layers, V vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phasor {

/// Where LayerNorm sits. Post-norm: x = LN(x + f(x)), as in Vaswani et al. 2017. Pre-norm:
/// x = x + f(LN(x)), Xiong et al. 2020 (arXiv 2002.04745).
enum class NormOrder { kPreNorm, kPostNorm };

/// The MLP's nonlinearity. kGeluErf: x·Φ(x), exact. kGeluTanh: Hendrycks & Gimpel's tanh
/// approximation ("gelu_new"). kSilu: x·sigmoid(x) ("swish").
enum class Activation { kGeluErf, kGeluTanh, kRelu, kSilu };

/// What is added to the token embedding to say where a token stands.
enum class PositionKind { kNone, kSinusoidal, kLearned };

/// The five incompatible tables that are all called "sinusoidal". d = width, n = base, p =
/// position. kPaper    angle of pair i = p·n^(−2i/d); columns sin, cos, sin, cos, …     (Vaswani et
/// al.) kMarian   the same angles; ⌈d/2⌉ sines, then the cosines                   (Transformers'
/// Marian, Pegasus) kT2T      angle = p·n^(−i/(d/2−1)); sines, then cosines; odd d: zero column
/// (tensor2tensor, Marian C++) kFairseq  as kT2T; the first token stands at pad_token_id + 1
/// (fairseq, M2M100, NLLB) kOpenNmt  as kT2T; the first token stands at 1; even d only (OpenNMT-tf,
/// CTranslate2)
enum class SinusoidalLayout { kPaper, kMarian, kT2T, kFairseq, kOpenNmt };

/// The position source of a model.
struct PositionConfig {
  PositionKind kind = PositionKind::kNone;
  SinusoidalLayout layout = SinusoidalLayout::kPaper;  // kSinusoidal only
  double base = 10000.0;                               // kSinusoidal only
  int64_t first_position = 0;  // the row that a sequence's first token takes
  /// Where set, tokens with this id do not advance the position counter and take the row of this
  /// number, whose sinusoid is zero (fairseq, RoBERTa, M2M100).
  std::optional<int32_t> uncounted_token = std::nullopt;

  bool operator==(const PositionConfig&) const = default;
};

/// Everything but the weights. Immutable once in a Model.
struct ModelConfig {
  std::string family;  // config.json's model_type
  int64_t d_model = 0;
  int64_t d_ff = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t vocab_size = 0;
  /// The longest sequence seen in training, in tokens; 0 where the files do not say. A limit only
  /// where the positions come from a table of that many rows.
  int64_t max_positions = 0;
  NormOrder norm_order = NormOrder::kPostNorm;
  Activation activation = Activation::kGeluErf;
  float norm_eps = 1e-5f;
  float embedding_scale = 1.0f;  // s in x = s·E[id] + P[pos]
  bool embedding_norm = false;   // LayerNorm after the embedding sum
  bool final_norm = false;       // LayerNorm after the last block
  PositionConfig position;

  int64_t head_dim() const { return d_model / num_heads; }
  bool operator==(const ModelConfig&) const = default;
};

/// Throws InvalidArgument naming the first field that no encoder can have (a size below 1, d_model
/// no multiple of num_heads, …).
void validate(const ModelConfig& config);

/// The names that config files and the command line use: "post", "gelu", "learned", "paper", …
std::string_view to_string(NormOrder order);
std::string_view to_string(Activation activation);
std::string_view to_string(PositionKind kind);
std::string_view to_string(SinusoidalLayout layout);

/// The inverse. Throws InvalidArgument listing the names there are.
SinusoidalLayout parse_sinusoidal_layout(std::string_view name);

}  // namespace phasor
