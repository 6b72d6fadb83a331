// The table of model families: what each family's config.json does not say, and its tensors' names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "phasor/config.h"

namespace phasor::internal {

/// A tensor's module under phasor's name ("blocks.{l}.attn.q") and in the family's files
/// ("layers.{l}.self_attn.q_proj"; alternatives are separated by '|', the first found wins). The
/// prefix of a wrapper ("bert.", "model.encoder.") is found in the file, except if `outside`: these
/// are whole names.
struct ModuleName {
  std::string_view ours;
  std::string_view theirs;
  bool outside = false;
  int part = 0;  // which of `parts` equal parts of the tensor's rows
  int parts = 1;
};

inline constexpr ModuleName kTokenClassifier[] = {{"classifier.out", "classifier|score", true}};

/// A key of config.json that must have a certain value, because phasor implements no other. The
/// value is JSON; the key may be missing.
struct FixedKey {
  std::string_view key;
  std::string_view value;
};

/// Whether the embedding is embedding_size wide and mapped to d_model.
enum class EmbeddingMap { kNever, kAlways, kIfWidthsDiffer };

/// The position of a sequence's first token.
enum class FirstPosition { kZero, kTwo, kAfterPad };

/// Layers that are local, with a window and a base of their own, or global, and the keys of
/// config.json that say which. Names and sizes beside layer_types.
struct LocalLayers {
  std::string_view window_key;
  int64_t default_window;
  int64_t divisor = 1;  // 2: the window is half the key's value, to either side
  std::string_view period_key = {};
  int64_t default_period = 2;  // one layer of so many is global,
  bool global_first = false;   // the first of them, or the last
  std::string_view local_base_key = "rope_theta", global_base_key = "rope_theta";
  std::string_view other_base_key = "rope_theta";  // of both, where the key is missing
  double default_local_base = 10000.0, default_global_base = 10000.0;
};

/// A model family: a row of data. The config.json of `spelled_out` families states all of this.
struct Family {
  std::string_view model_type;
  /// The required value of this key of config.json, as JSON; empty: it is not read. Families of
  /// one model_type differ in it.
  std::string_view position_embedding_type = {};
  std::string_view code = {};  // what the model's own Python classes begin with, if it has such
  bool spelled_out = false;    // phasor's own: config.json states every choice below

  NormOrder norm_order = NormOrder::kPostNorm;
  NormKind norm = NormKind::kLayerNorm;
  PositionKind position_kind = PositionKind::kNone;
  ScoreBias bias = ScoreBias::kNone;
  SinusoidalLayout layout = SinusoidalLayout::kPaper;
  std::string_view sinusoidal_if = {};  // a key: if true, positions are sinusoidal
  FirstPosition first_position = FirstPosition::kZero;
  bool pad_is_uncounted = false;    // PositionConfig::uncounted_token = pad_token_id
  int64_t rows_beyond_maximum = 0;  // of the position table, above max_position_embeddings
  int32_t default_pad = 0;
  std::optional<RotaryConfig> rotary = {};  // config.json may override its values
  std::optional<LocalLayers> local = {};
  bool disentangled = false;  // as DeBERTa's, where config.json says so
  bool embedding_norm = false;
  EmbeddingMap embedding_map = EmbeddingMap::kNever;
  /// 0: d_model; empty: the key must be there.
  std::optional<int64_t> default_embedding_size = {};
  bool layer_groups = false;  // num_hidden_groups groups of layers share weights
  bool final_norm = false;
  bool first_attn_norm = true;
  bool linear_bias = true;
  bool optional_biases = false;  // maps and norms may lack them, one by one
  bool scale_scores = true;
  bool needs_token_types = false;
  bool has_decoder = false;  // the encoder's sizes have keys of their own: encoder_layers, …
  std::optional<bool> scale_embedding = {};  // set: by √d_model, this value if the key is missing
  Activation default_activation = Activation::kGeluErf;
  bool default_gate = false;    // ModelConfig::gated_mlp
  bool gate_by_key = false;     // config.json may say otherwise, as T5's
  int64_t default_d_head = 0;   // above 0: config.json may override it, as d_kv
  bool sets_head_dim = false;   // head_dim need not be d_model / num_heads
  bool groups_queries = false;  // by num_key_value_heads
  bool qk_norm = false;
  bool branch_norms = false;
  bool norms_plus_one = false;  // the files hold γ − 1
  bool scores_by_keys = false;  // query_pre_attn_scalar and attn_logit_softcapping
  bool causal = false;          // where neither is_causal nor use_bidirectional_attention say else
  bool encoders_only = false;   // and where they do not, the model is refused
  std::string_view inner = {};  // the key of the encoder's own object in config.json
  double default_eps = 1e-5;
  std::string_view eps_key = "layer_norm_eps";
  bool fixed_eps = false;  // fixed in the source's code; config.json is ignored
  std::optional<Activation> head_activation = {};  // of the MLM head; empty: the encoder's
  std::span<const FixedKey> fixed_keys = {};
  std::span<const ModuleName> modules = {};  // modules that are not listed are never read
  std::span<const ModuleName> head = {};     // of the masked-language model, if any; whole names
  /// The classification head's, if any: "classifier.dense", ".norm" and ".out". config.json may
  /// override its activation.
  std::span<const ModuleName> classifier = {};
  std::optional<Activation> classifier_activation = Activation::kTanh;  // empty: the encoder's
  std::string_view classifier_activation_key = {};  // of config.json; empty: it cannot say
  /// The head of …ForTokenClassification, by the same names.
  std::span<const ModuleName> token_classifier = kTokenClassifier;
  bool pools_by_key = false;                 // classifier_pooling says of what states,
  std::string_view default_pooling = "cls";  // this where it is missing
};

/// Null if phasor does not know this config.json's model_type. `position_embedding_type` is JSON;
/// if no family has this one, the first of the model_type.
const Family* find_family(std::string_view model_type, std::string_view position_embedding_type);

/// All families, for messages and lists.
std::span<const Family> families();

}  // namespace phasor::internal
