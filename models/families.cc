// To add a family, add a row; see CONTRIBUTING.md.
#include "models/families.h"

#include "models/family_names.h"

namespace phasor::internal {
namespace {

constexpr std::string_view kAbsolute = "\"absolute\"";

constexpr Family kRoberta = {
    .model_type = {},
    .position_embedding_type = kAbsolute,
    .position_kind = PositionKind::kLearned,
    .first_position = FirstPosition::kAfterPad,
    .pad_is_uncounted = true,
    .default_pad = 1,
    .embedding_norm = true,
    .needs_token_types = true,
    .default_eps = 1e-12,
    .head_activation = Activation::kGeluErf,
    .modules = kBertModules,
    .head = kRobertaHead,
    .classifier = kRobertaClassifier,
};

constexpr Family kNew = {
    .model_type = {},
    .position_embedding_type = "\"rope\"",
    .rotary = RotaryConfig(),
    .embedding_norm = true,
    .optional_biases = true,
    .needs_token_types = true,
    .default_gate = true,
    .default_eps = 1e-12,
    .fixed_keys = kNewKeys,
    .modules = kNewModules,
    .head = kNewHead,
    .classifier = kBertClassifier,
};

constexpr Family kT5 = {
    .model_type = {},
    .norm_order = NormOrder::kPreNorm,
    .norm = NormKind::kRmsNorm,
    .bias = ScoreBias::kBuckets,
    .final_norm = true,
    .linear_bias = false,
    .scale_scores = false,
    .default_activation = Activation::kRelu,
    .gate_by_key = true,
    .default_d_head = 64,
    .default_eps = 1e-6,
    .eps_key = "layer_norm_epsilon",
    .modules = kT5Modules,
};

/// Llama's block: RMS norms before, a gated MLP, rotated heads, no biases but those of the files.
constexpr Family kLlama = {
    .model_type = {},
    .norm_order = NormOrder::kPreNorm,
    .norm = NormKind::kRmsNorm,
    .rotary = RotaryConfig(),
    .final_norm = true,
    .optional_biases = true,
    .default_activation = Activation::kSilu,
    .default_gate = true,
    .sets_head_dim = true,
    .groups_queries = true,
    .default_eps = 1e-6,
    .eps_key = "rms_norm_eps",
    .modules = kLlamaModules,
};

constexpr Family eurobert() {
  Family family = kLlama;
  family.model_type = "eurobert";
  family.code = "EuroBert";
  family.rotary->base = 250000.0;
  family.default_eps = 1e-5;
  family.head = kEuroBertHead;
  family.classifier = kEuroBertClassifier;
  family.classifier_activation = Activation::kGeluErf;
  family.pools_by_key = true;
  family.default_pooling = "late";
  return family;
}

constexpr Family qwen3() {
  Family family = kLlama;
  family.model_type = "qwen3";
  family.qk_norm = true;
  family.causal = true;
  family.fixed_keys = kQwen3Keys;
  return family;
}

/// Llama's block with norms of branches, and weights of norms stored less 1.
constexpr Family gemma(std::string_view model_type) {
  Family family = kLlama;
  family.model_type = model_type;
  family.default_activation = Activation::kGeluTanh;
  family.scale_embedding = true;
  family.branch_norms = family.norms_plus_one = family.scores_by_keys = true;
  family.modules = kGemmaModules;
  return family;
}

constexpr Family gemma3() {
  Family family = gemma("gemma3_text");
  family.qk_norm = true;
  family.causal = family.encoders_only = true;
  family.local = LocalLayers{.window_key = "sliding_window",
                             .default_window = 4096,
                             .divisor = 2,
                             .period_key = "sliding_window_pattern",
                             .default_period = 6,
                             .local_base_key = "rope_local_base_freq",
                             .other_base_key = {},
                             .default_global_base = 1e6};
  return family;
}

constexpr Family t5gemma() {
  Family family = gemma("t5gemma");
  family.inner = "encoder";
  family.local = LocalLayers{.window_key = "sliding_window", .default_window = 4096};
  return family;
}

/// The same family under another model_type.
constexpr Family named(std::string_view model_type, Family family, std::string_view code = {}) {
  family.model_type = model_type;
  family.code = code;
  return family;
}

constexpr Family mt5() {
  Family family = named("mt5", kT5);
  family.default_activation = Activation::kGeluTanh;
  family.default_gate = true;
  return family;
}

constexpr Family kFamilies[] = {
    {
        .model_type = "phasor",
        .spelled_out = true,  // modules, too, have phasor's own names
    },
    {
        .model_type = "bert",
        .position_embedding_type = kAbsolute,
        .position_kind = PositionKind::kLearned,
        .embedding_norm = true,
        .needs_token_types = true,
        .default_eps = 1e-12,
        .modules = kBertModules,
        .head = kBertHead,
        .classifier = kBertClassifier,
    },
    {
        .model_type = "bert",  // of jina-embeddings-v2
        .position_embedding_type = "\"alibi\"",
        .code = "JinaBert",
        .bias = ScoreBias::kAlibi,
        .embedding_norm = true,
        .optional_biases = true,
        .needs_token_types = true,
        .default_gate = true,
        .default_eps = 1e-12,
        .fixed_keys = kJinaKeys,
        .modules = kJinaModules,
        .head = kBertHead,
        .classifier = kBertClassifier,
    },
    {
        .model_type = "electra",
        .position_embedding_type = kAbsolute,
        .position_kind = PositionKind::kLearned,
        .embedding_norm = true,
        .embedding_map = EmbeddingMap::kIfWidthsDiffer,
        .default_embedding_size = 128,
        .needs_token_types = true,
        .default_eps = 1e-12,
        .head_activation = Activation::kGeluErf,
        .modules = kBertModules,
        .head = kElectraHead,
        .classifier = kRobertaClassifier,
        .classifier_activation = Activation::kGeluErf,
    },
    named("roberta", kRoberta),
    named("xlm-roberta", kRoberta),
    named("camembert", kRoberta),
    {
        .model_type = "mpnet",
        .position_kind = PositionKind::kLearned,
        .bias = ScoreBias::kBuckets,
        .first_position = FirstPosition::kAfterPad,
        .pad_is_uncounted = true,
        .default_pad = 1,
        .embedding_norm = true,
        .default_eps = 1e-12,
        .head_activation = Activation::kGeluErf,
        .fixed_keys = kMpnetKeys,
        .modules = kMpnetModules,
        .head = kRobertaHead,
        .classifier = kRobertaClassifier,
    },
    {
        .model_type = "roformer",
        .rotary = RotaryConfig{.interleaved = true},
        .embedding_norm = true,
        .embedding_map = EmbeddingMap::kIfWidthsDiffer,
        .default_embedding_size = 0,
        .needs_token_types = true,
        .default_eps = 1e-12,
        .fixed_keys = kRoFormerKeys,
        .modules = kBertModules,
        .head = kBertHead,
        .classifier = kRobertaClassifier,
        .classifier_activation = std::nullopt,
    },
    {
        .model_type = "modernbert",
        .norm_order = NormOrder::kPreNorm,
        .rotary = RotaryConfig(),
        .local = LocalLayers{.window_key = "local_attention",
                             .default_window = 128,
                             .divisor = 2,
                             .period_key = "global_attn_every_n_layers",
                             .default_period = 3,
                             .global_first = true,
                             .local_base_key = "local_rope_theta",
                             .global_base_key = "global_rope_theta",
                             .default_global_base = 160000.0},
        .embedding_norm = true,
        .final_norm = true,
        .first_attn_norm = false,
        .optional_biases = true,
        .default_gate = true,
        .eps_key = "norm_eps",
        .fixed_keys = kModernBertKeys,
        .modules = kModernBertModules,
        .head = kModernBertHead,
        .classifier = kModernBertClassifier,
        .classifier_activation = Activation::kGeluErf,
        .classifier_activation_key = "classifier_activation",
        .token_classifier = kModernBertClassifier,
        .pools_by_key = true,
    },
    {
        .model_type = "nomic_bert",
        .code = "NomicBert",
        .rotary = RotaryConfig{.base = 1000.0},
        .embedding_norm = true,
        .optional_biases = true,
        .needs_token_types = true,
        .default_activation = Activation::kSilu,
        .default_gate = true,
        .default_eps = 1e-12,
        .eps_key = "layer_norm_epsilon",
        .fixed_keys = kNomicKeys,
        .modules = kNomicModules,
        .head = kNomicHead,
    },
    named("new", kNew, "New"),
    named("gte", kNew, "Gte"),
    {
        .model_type = "deberta-v2",
        .disentangled = true,
        .embedding_norm = true,
        .needs_token_types = true,
        .default_eps = 1e-7,
        .fixed_keys = kDebertaKeys,
        .modules = kDebertaModules,
        .head = kDebertaHead,
        .classifier = kDebertaClassifier,
        .classifier_activation = Activation::kGeluErf,
        .classifier_activation_key = "pooler_hidden_act",
    },
    {
        .model_type = "distilbert",
        .position_kind = PositionKind::kLearned,
        .sinusoidal_if = "sinusoidal_pos_embds",
        .embedding_norm = true,
        .default_eps = 1e-12,
        .fixed_eps = true,
        .modules = kDistilBertModules,
        .head = kDistilBertHead,
        .classifier = kDistilBertClassifier,
        .classifier_activation = Activation::kRelu,
    },
    {
        .model_type = "albert",
        .position_embedding_type = kAbsolute,
        .position_kind = PositionKind::kLearned,
        .embedding_norm = true,
        .embedding_map = EmbeddingMap::kAlways,
        .layer_groups = true,
        .needs_token_types = true,
        .default_activation = Activation::kGeluTanh,
        .default_eps = 1e-12,
        .fixed_keys = kAlbertKeys,
        .modules = kAlbertModules,
        .head = kAlbertHead,
        .classifier = kAlbertClassifier,
    },
    eurobert(),
    qwen3(),
    gemma3(),
    t5gemma(),
    named("t5", kT5),
    mt5(),
    {
        .model_type = "marian",
        .position_kind = PositionKind::kSinusoidal,
        .layout = SinusoidalLayout::kMarian,
        .has_decoder = true,
        .scale_embedding = false,
        .fixed_eps = true,
        .fixed_keys = kMarianKeys,
        .modules = kFairseqModules,
    },
    {
        .model_type = "bart",
        .position_kind = PositionKind::kLearned,
        .first_position = FirstPosition::kTwo,
        .rows_beyond_maximum = 2,
        .embedding_norm = true,
        .has_decoder = true,
        .scale_embedding = false,
        .fixed_eps = true,
        .fixed_keys = kBartKeys,
        .modules = kFairseqModules,
    },
    {
        .model_type = "mbart",
        .norm_order = NormOrder::kPreNorm,
        .position_kind = PositionKind::kLearned,
        .first_position = FirstPosition::kTwo,
        .rows_beyond_maximum = 2,
        .embedding_norm = true,
        .final_norm = true,
        .has_decoder = true,
        .scale_embedding = false,
        .fixed_eps = true,
        .fixed_keys = kMBartKeys,
        .modules = kFairseqModules,
    },
    {
        .model_type = "pegasus",
        .norm_order = NormOrder::kPreNorm,
        .position_kind = PositionKind::kSinusoidal,
        .layout = SinusoidalLayout::kMarian,
        .final_norm = true,
        .has_decoder = true,
        .scale_embedding = false,
        .fixed_eps = true,
        .fixed_keys = kPegasusKeys,
        .modules = kFairseqModules,
    },
    {
        .model_type = "m2m_100",
        .norm_order = NormOrder::kPreNorm,
        .position_kind = PositionKind::kSinusoidal,
        .layout = SinusoidalLayout::kFairseq,
        .first_position = FirstPosition::kAfterPad,
        .pad_is_uncounted = true,
        .rows_beyond_maximum = 2,
        .default_pad = 1,
        .final_norm = true,
        .has_decoder = true,
        .scale_embedding = true,
        .default_activation = Activation::kRelu,
        .fixed_eps = true,
        .modules = kFairseqModules,
    },
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type, std::string_view position_embedding_type) {
  const Family* found = nullptr;
  for (const Family& family : kFamilies) {
    if (family.model_type != model_type) continue;
    if (family.position_embedding_type == position_embedding_type) return &family;
    if (found == nullptr) found = &family;
  }
  return found;
}

}  // namespace phasor::internal
