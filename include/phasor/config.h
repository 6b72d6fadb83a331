// The configuration of an encoder: every choice that determines what its weights compute.
//
// Plain data. Shape letters, here and everywhere: N tokens in the batch, B sequences, T tokens of
// one sequence, C d_model, H heads, G kv_heads (H except in grouped attention), D head_dim (C/H
// except in some families), F d_ff, L layers, V vocabulary, E embedding_width (C except in ALBERT).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "phasor/names.h"

namespace [[gnu::visibility("default")]] phasor {

/// Where LayerNorm sits. Post-norm: x = LN(x + f(x)), as in Vaswani et al. 2017. Pre-norm:
/// x = x + f(LN(x)), Xiong et al. 2020 (arXiv 2002.04745).
enum class NormOrder { kPreNorm, kPostNorm };

/// What a norm does.
///
///     kLayerNorm  (x − mean) / √(variance + ε) · γ + β  (Ba et al. 2016)
///     kRmsNorm    x / √(mean(x²) + ε) · γ               (Zhang & Sennrich 2019, arXiv 1910.07467)
enum class NormKind { kLayerNorm, kRmsNorm };

/// A function of one number: the nonlinearity of the MLP, of a head or of a Projection.
///
///     kGeluErf   x·Φ(x), exact
///     kGeluTanh  Hendrycks & Gimpel's tanh approximation ("gelu_new")
///     kRelu      max(x, 0)
///     kSilu      x·sigmoid(x) ("swish")
///     kTanh      tanh(x)
///     kIdentity  x ("linear")
///     kSigmoid   1 / (1 + e^−x)
///     kQuickGelu x·sigmoid(1.702·x)
///     kGelu10    min(x·Φ(x), 10)
///     kRelu2     max(x, 0)²
///     kRelu6     min(max(x, 0), 6)
///     kLeakyRelu max(x, 0.01·x)
///     kHardswish x·min(max(x + 3, 0), 6) / 6
///     kMish      x·tanh(ln(1 + e^x))
///     kLaplace   Φ((x − 0.707107) / 0.282095)
enum class Activation {
  kGeluErf,
  kGeluTanh,
  kRelu,
  kSilu,
  kTanh,
  kIdentity,
  kSigmoid,
  kQuickGelu,
  kGelu10,
  kRelu2,
  kRelu6,
  kLeakyRelu,
  kHardswish,
  kMish,
  kLaplace,
};

/// The vectors of positions that are added to the token embedding.
enum class PositionKind { kNone, kSinusoidal, kLearned };

/// What positions add to the score of query i and key j, in every layer.
///
///     kBuckets  a learned number for each head and each bucket of offsets j − i (Raffel et al.
///               2020, arXiv 1910.10683)
///     kAlibi    −slope · |j − i|, with a fixed slope for each head (Press et al. 2022, arXiv
///               2108.12409; on both sides alike)
enum class ScoreBias { kNone, kBuckets, kAlibi };

/// The five incompatible tables that are called "sinusoidal". d = width, n = base, p = position.
///
///     kPaper    angle p·n^(−2i/d) of pair i; columns sin, cos, sin, cos, …
///               (Vaswani et al. 2017)
///     kMarian   the same angles; ⌈d/2⌉ sines, then the cosines
///               (Transformers' Marian and Pegasus)
///     kT2T      angle p·n^(−i/(d/2−1)); sines, then cosines; odd d: a last column of zeros
///               (tensor2tensor, Marian C++)
///     kFairseq  as kT2T; the first token stands at pad_token_id + 1
///               (fairseq, M2M100, NLLB)
///     kOpenNmt  as kT2T; the first token stands at 1; even d only
///               (OpenNMT-tf, CTranslate2)
enum class SinusoidalLayout { kPaper, kMarian, kT2T, kFairseq, kOpenNmt };
/// The position of the first token where such a table replaces a model's own positions.
int64_t usual_first_position(SinusoidalLayout layout);

/// The rotation of queries and keys by their position (RoPE; Su et al. 2021, arXiv 2104.09864).
/// Pair i of a head's first `dims` columns turns by ω_i·p, with ω_i = factor·base^(−2i/dims), so
/// that a score depends on positions through j − i alone.
struct RotaryConfig {
  double base = 10000.0;     // LayerAttention may give a layer another one
  int64_t dims = 0;          // even; 0: all of a head
  bool interleaved = false;  // pair i is columns 2i and 2i + 1; otherwise i and i + dims/2
  double factor = 1.0;       // of all frequencies; 1/s where positions are scaled down by s
  /// NTK scaling by length: a sequence of T tokens, above ntk_length, takes base ·
  /// (ntk_factor·T/ntk_length − ntk_factor + 1)^(dims/(dims − 2)). ntk_length 0: none.
  double ntk_factor = 1.0;
  int64_t ntk_length = 0;

  bool operator==(const RotaryConfig&) const = default;
};

/// Disentangled attention (DeBERTa; He et al. 2021, arXiv 2006.03654). To the score of query i and
/// key j are added q_i·K_r (content to position) and k_j·Q_r (position to content), where K_r and
/// Q_r are the layer's key and query of row r of a table of 2·num_buckets rows, and r is the bucket
/// of the offset i − j.
struct DisentangledConfig {
  bool content_to_position = true;
  bool position_to_content = true;
  int64_t num_buckets = 256;  // of either direction
  /// Offsets from num_buckets/2 on share buckets that grow logarithmically up to this distance; 0:
  /// every offset below num_buckets has its own bucket.
  int64_t max_distance = 512;
  bool norm = true;  // the table goes through a norm first

  bool operator==(const DisentangledConfig&) const = default;
};

/// How a model learns its tokens' places: each kind by itself, or several together.
struct PositionConfig {
  PositionKind kind = PositionKind::kNone;
  SinusoidalLayout layout = SinusoidalLayout::kPaper;  // kSinusoidal only
  double base = 10000.0;                               // kSinusoidal only
  int64_t first_position = 0;  // the row that a sequence's first token takes
  /// If set, tokens with this id do not advance the position counter and take the row of this
  /// number, whose sinusoid is zero (fairseq, RoBERTa, M2M100).
  std::optional<int32_t> uncounted_token = std::nullopt;
  ScoreBias bias = ScoreBias::kNone;
  /// kBuckets only. Half of the buckets are for tokens to the right. Of each half, the first half
  /// hold one distance each, and the others grow logarithmically up to max_distance.
  int64_t num_buckets = 32;
  int64_t max_distance = 128;
  std::optional<RotaryConfig> rotary = std::nullopt;
  std::optional<DisentangledConfig> disentangled = std::nullopt;

  bool operator==(const PositionConfig&) const = default;
};

/// What a layer's attention does otherwise than the rest of the model.
struct LayerAttention {
  int64_t window = 0;      // query i sees the keys at positions p_i ± window only; 0: all keys
  double rotary_base = 0;  // above 0: in place of RotaryConfig::base

  bool operator==(const LayerAttention&) const = default;
};

/// For people: "sinusoidal (paper)", "learned + bias (buckets)", "rotary", "none".
std::string describe(const PositionConfig& position);

/// Everything but the weights. Immutable once in a Model.
struct ModelConfig {
  std::string family;      // config.json's model_type
  int64_t d_model = 0;     // C
  int64_t d_ff = 0;        // F
  int64_t num_layers = 0;  // L
  int64_t num_heads = 0;   // H
  int64_t d_head = 0;      // D; 0: d_model / num_heads
  /// G, heads of keys and values, each read by num_heads / G heads of queries (grouped queries;
  /// Ainslie et al. 2023, arXiv 2305.13245); 0: as many as heads.
  int64_t num_kv_heads = 0;
  /// E, the width of the embedding, which a linear map turns into d_model; 0: there is no such map,
  /// and embeddings are d_model wide.
  int64_t d_embedding = 0;
  /// Groups of consecutive layers that share one block's weights; 0: each layer has its own.
  int64_t num_layer_groups = 0;
  int64_t vocab_size = 0;  // V
  /// The longest sequence seen in training, in tokens; 0 if the files do not say. A limit only if
  /// the positions come from a table of that many rows.
  int64_t max_positions = 0;
  NormOrder norm_order = NormOrder::kPostNorm;
  NormKind norm = NormKind::kLayerNorm;
  Activation activation = Activation::kGeluErf;
  float norm_eps = 1e-5f;        // ε
  bool gated_mlp = false;        // f(W_gate·x) ⊙ W_up·x in place of f(W_up·x) (Shazeer 2020)
  bool linear_bias = true;       // linear maps add a bias, where the weights have one
  bool scale_scores = true;      // attention scores are divided by √D
  double score_width = 0;        // above 0: they are divided by √score_width instead
  double score_cap = 0;          // c above 0: a score s becomes c·tanh(s/c) (Gemma 2)
  bool qk_norm = false;          // an RMS norm of each head's q and k, before their rotation
  bool causal = false;           // a query sees its own and earlier tokens alone
  bool branch_norms = false;     // what attention and MLP add goes through a norm first
  float embedding_scale = 1.0f;  // s in x = s·E[id] + P[pos]
  bool embedding_norm = false;   // LayerNorm after the embedding sum
  bool final_norm = false;       // LayerNorm after the last block
  bool first_attn_norm = true;   // false: block 0 of a pre-norm model has none before attention
  PositionConfig position = {};
  std::vector<LayerAttention> layer_attention = {};  // [num_layers]; empty: all layers alike

  int64_t head_dim() const { return d_head > 0 ? d_head : d_model / num_heads; }
  int64_t kv_heads() const { return num_kv_heads > 0 ? num_kv_heads : num_heads; }
  int64_t attention_width() const { return num_heads * head_dim(); }  // of q and z
  int64_t kv_width() const { return kv_heads() * head_dim(); }        // of k, and of v
  /// The head of keys and values that a head of queries reads.
  int64_t kv_head_of(int64_t head) const { return head / (num_heads / kv_heads()); }
  float score_scale() const;  // what Q·Kᵀ is multiplied by
  int64_t window(int64_t layer) const {
    return layer_attention.empty() ? 0 : layer_attention[layer].window;
  }
  double rotary_base(int64_t layer) const;  // requires position.rotary
  int64_t embedding_width() const { return d_embedding > 0 ? d_embedding : d_model; }
  int64_t num_blocks() const { return num_layer_groups > 0 ? num_layer_groups : num_layers; }
  /// The block of weights that a layer uses: ⌊layer / (num_layers / num_blocks)⌋, in double with
  /// its rounding, as Transformers' ALBERT computes it.
  int64_t block_of(int64_t layer) const {
    return static_cast<int64_t>(static_cast<double>(layer) / (static_cast<double>(num_layers) /
                                                              static_cast<double>(num_blocks())));
  }
  bool operator==(const ModelConfig&) const = default;
};

/// Throws InvalidArgument naming the first invalid field (a size below 1, d_model not a multiple of
/// num_heads, …).
void validate(const ModelConfig& config);

}  // namespace phasor
