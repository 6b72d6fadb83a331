// One row for each family. To add one, add a row; see CONTRIBUTING.md.
#include "models/families.h"

namespace phasor {
namespace {

constexpr std::string_view kNoPrefix[] = {""};
constexpr ModuleName kPhasorModules[] = {
    {"token_embedding", "token_embedding"},
    {"position_embedding", "position_embedding"},
    {"token_type_embedding", "token_type_embedding"},
    {"embedding_norm", "embedding_norm"},
    {"blocks.{l}.attn.q", "blocks.{l}.attn.q"},
    {"blocks.{l}.attn.k", "blocks.{l}.attn.k"},
    {"blocks.{l}.attn.v", "blocks.{l}.attn.v"},
    {"blocks.{l}.attn.out", "blocks.{l}.attn.out"},
    {"blocks.{l}.attn_norm", "blocks.{l}.attn_norm"},
    {"blocks.{l}.mlp.up", "blocks.{l}.mlp.up"},
    {"blocks.{l}.mlp.down", "blocks.{l}.mlp.down"},
    {"blocks.{l}.mlp_norm", "blocks.{l}.mlp_norm"},
    {"final_norm", "final_norm"},
    {"mlm.dense", "mlm.dense", true},
    {"mlm.norm", "mlm.norm", true},
    {"mlm.decoder", "mlm.decoder", true},
    {"mlm", "mlm", true},
};

constexpr std::string_view kBertPrefixes[] = {"", "bert."};
constexpr ModuleName kBertModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.self.query"},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.self.key"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.self.value"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.output.dense"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attention.output.LayerNorm"},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.intermediate.dense"},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.output.dense"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.output.LayerNorm"},
    {"mlm.dense", "cls.predictions.transform.dense", true},
    {"mlm.norm", "cls.predictions.transform.LayerNorm", true},
    {"mlm.decoder", "cls.predictions.decoder", true},
    {"mlm", "cls.predictions|cls.predictions.decoder", true},
};
constexpr FixedKey kBertKeys[] = {{"is_decoder", "false"},
                                  {"position_embedding_type", "\"absolute\""}};

// Marian, Bart and M2M100 descend from fairseq and share their names.
constexpr std::string_view kFairseqPrefixes[] = {"", "model."};
constexpr ModuleName kFairseqModules[] = {
    {"token_embedding", "encoder.embed_tokens|shared"},
    {"position_embedding", "encoder.embed_positions"},
    {"embedding_norm", "encoder.layernorm_embedding"},
    {"blocks.{l}.attn.q", "encoder.layers.{l}.self_attn.q_proj"},
    {"blocks.{l}.attn.k", "encoder.layers.{l}.self_attn.k_proj"},
    {"blocks.{l}.attn.v", "encoder.layers.{l}.self_attn.v_proj"},
    {"blocks.{l}.attn.out", "encoder.layers.{l}.self_attn.out_proj"},
    {"blocks.{l}.attn_norm", "encoder.layers.{l}.self_attn_layer_norm"},
    {"blocks.{l}.mlp.up", "encoder.layers.{l}.fc1"},
    {"blocks.{l}.mlp.down", "encoder.layers.{l}.fc2"},
    {"blocks.{l}.mlp_norm", "encoder.layers.{l}.final_layer_norm"},
    {"final_norm", "encoder.layer_norm"},
};
// Written by Transformers 3; later versions have a model_type for each combination.
constexpr FixedKey kMarianKeys[] = {{"normalize_before", "false"},
                                    {"normalize_embedding", "false"},
                                    {"add_final_layer_norm", "false"},
                                    {"static_position_embeddings", "true"}};
constexpr FixedKey kBartKeys[] = {{"normalize_before", "false"},
                                  {"normalize_embedding", "true"},
                                  {"add_final_layer_norm", "false"},
                                  {"static_position_embeddings", "false"}};

constexpr Family kFamilies[] = {
    {
        .model_type = "phasor",
        .spelled_out = true,
        .prefixes = kNoPrefix,
        .modules = kPhasorModules,
    },
    {
        .model_type = "bert",
        .position_kind = PositionKind::kLearned,
        .embedding_norm = true,
        .needs_token_types = true,
        .default_eps = 1e-12,
        .fixed_keys = kBertKeys,
        .prefixes = kBertPrefixes,
        .modules = kBertModules,
    },
    {
        .model_type = "marian",
        .position_kind = PositionKind::kSinusoidal,
        .layout = SinusoidalLayout::kMarian,
        .scale_embedding = false,
        .fixed_keys = kMarianKeys,
        .prefixes = kFairseqPrefixes,
        .modules = kFairseqModules,
    },
    {
        .model_type = "bart",
        .position_kind = PositionKind::kLearned,
        .first_position = FirstPosition::kTwo,
        .rows_beyond_maximum = 2,
        .embedding_norm = true,
        .scale_embedding = false,
        .fixed_keys = kBartKeys,
        .prefixes = kFairseqPrefixes,
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
        .scale_embedding = true,
        .default_activation = Activation::kRelu,
        .prefixes = kFairseqPrefixes,
        .modules = kFairseqModules,
    },
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const Family* find_family(std::string_view model_type) {
  for (const Family& family : kFamilies) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

}  // namespace phasor
