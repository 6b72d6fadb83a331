// The tensors' names in each family's files, and the keys of config.json that must have a certain
// value there: the data of models/families.cc.
#pragma once

#include <array>
#include <string_view>

#include "models/families.h"

namespace phasor::internal {

/// The modules of a masked-language model's head; `bias` is the decoder's.
constexpr std::array<ModuleName, 4> mlm_head(std::string_view dense, std::string_view norm,
                                             std::string_view decoder, std::string_view bias) {
  return {{{"mlm.dense", dense}, {"mlm.norm", norm}, {"mlm.decoder", decoder}, {"mlm", bias}}};
}

/// The modules of a classification head. `is_outside`: its first map is none of the encoder's.
constexpr std::array<ModuleName, 2> classifier_head(std::string_view dense, std::string_view out,
                                                    bool is_outside = true) {
  return {{{"classifier.dense", dense, is_outside}, {"classifier.out", out, true}}};
}

constexpr ModuleName kBertModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"embedding_map", "embeddings_project"},  // of an ELECTRA or RoFormer
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.self.query"},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.self.key"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.self.value"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.output.dense"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attention.output.LayerNorm"},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.intermediate.dense"},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.output.dense"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.output.LayerNorm"},
};
constexpr auto kBertHead =
    mlm_head("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
             "cls.predictions.decoder", "cls.predictions|cls.predictions.decoder");
constexpr auto kElectraHead =
    mlm_head("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
             "generator_lm_head");
constexpr auto kRobertaHead =
    mlm_head("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head|lm_head.decoder");

constexpr ModuleName kJinaModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.self.query"},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.self.key"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.self.value"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.output.dense"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attention.output.LayerNorm"},
    {"blocks.{l}.mlp.gate", "encoder.layer.{l}.mlp.gated_layers", false, 0, 2},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.mlp.gated_layers", false, 1, 2},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.mlp.wo"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.mlp.layernorm"},
};
constexpr FixedKey kJinaKeys[] = {{"feed_forward_type", "\"geglu\""}, {"hidden_act", "\"gelu\""}};

constexpr ModuleName kModernBertModules[] = {
    {"token_embedding", "embeddings.tok_embeddings"},
    {"embedding_norm", "embeddings.norm"},
    {"blocks.{l}.attn.q", "layers.{l}.attn.Wqkv", false, 0, 3},
    {"blocks.{l}.attn.k", "layers.{l}.attn.Wqkv", false, 1, 3},
    {"blocks.{l}.attn.v", "layers.{l}.attn.Wqkv", false, 2, 3},
    {"blocks.{l}.attn.out", "layers.{l}.attn.Wo"},
    {"blocks.{l}.attn_norm", "layers.{l}.attn_norm"},
    {"blocks.{l}.mlp.gate", "layers.{l}.mlp.Wi", false, 0, 2},
    {"blocks.{l}.mlp.up", "layers.{l}.mlp.Wi", false, 1, 2},
    {"blocks.{l}.mlp.down", "layers.{l}.mlp.Wo"},
    {"blocks.{l}.mlp_norm", "layers.{l}.mlp_norm"},
    {"final_norm", "final_norm"},
};
constexpr auto kModernBertHead = mlm_head("head.dense", "head.norm", "decoder", "decoder");

constexpr FixedKey kModernBertKeys[] = {{"rope_scaling", "null"},
                                        {"partial_rotary_factor", "null"}};

constexpr ModuleName kLlamaModules[] = {
    {"token_embedding", "embed_tokens"},
    {"blocks.{l}.attn.q", "layers.{l}.self_attn.q_proj"},
    {"blocks.{l}.attn.k", "layers.{l}.self_attn.k_proj"},
    {"blocks.{l}.attn.v", "layers.{l}.self_attn.v_proj"},
    {"blocks.{l}.attn.q_norm", "layers.{l}.self_attn.q_norm"},
    {"blocks.{l}.attn.k_norm", "layers.{l}.self_attn.k_norm"},
    {"blocks.{l}.attn.out", "layers.{l}.self_attn.o_proj"},
    {"blocks.{l}.attn_norm", "layers.{l}.input_layernorm"},
    {"blocks.{l}.mlp.gate", "layers.{l}.mlp.gate_proj"},
    {"blocks.{l}.mlp.up", "layers.{l}.mlp.up_proj"},
    {"blocks.{l}.mlp.down", "layers.{l}.mlp.down_proj"},
    {"blocks.{l}.mlp_norm", "layers.{l}.post_attention_layernorm"},
    {"final_norm", "norm"},
};
constexpr FixedKey kQwen3Keys[] = {{"use_sliding_window", "false"}};
constexpr ModuleName kEuroBertHead[] = {{"mlm.decoder", "lm_head"}};
constexpr auto kEuroBertClassifier = classifier_head("dense", "classifier");

// Gemma 3's names of norms, and those of T5Gemma.
constexpr ModuleName kGemmaModules[] = {
    {"token_embedding", "embed_tokens"},
    {"blocks.{l}.attn.q", "layers.{l}.self_attn.q_proj"},
    {"blocks.{l}.attn.k", "layers.{l}.self_attn.k_proj"},
    {"blocks.{l}.attn.v", "layers.{l}.self_attn.v_proj"},
    {"blocks.{l}.attn.q_norm", "layers.{l}.self_attn.q_norm"},
    {"blocks.{l}.attn.k_norm", "layers.{l}.self_attn.k_norm"},
    {"blocks.{l}.attn.out", "layers.{l}.self_attn.o_proj"},
    {"blocks.{l}.attn_norm", "layers.{l}.input_layernorm|layers.{l}.pre_self_attn_layernorm"},
    {"blocks.{l}.attn_branch_norm",
     "layers.{l}.post_attention_layernorm|layers.{l}.post_self_attn_layernorm"},
    {"blocks.{l}.mlp.gate", "layers.{l}.mlp.gate_proj"},
    {"blocks.{l}.mlp.up", "layers.{l}.mlp.up_proj"},
    {"blocks.{l}.mlp.down", "layers.{l}.mlp.down_proj"},
    {"blocks.{l}.mlp_norm", "layers.{l}.pre_feedforward_layernorm"},
    {"blocks.{l}.mlp_branch_norm", "layers.{l}.post_feedforward_layernorm"},
    {"final_norm", "norm"},
};

constexpr ModuleName kNomicModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "emb_ln"},
    {"blocks.{l}.attn.q", "encoder.layers.{l}.attn.Wqkv", false, 0, 3},
    {"blocks.{l}.attn.k", "encoder.layers.{l}.attn.Wqkv", false, 1, 3},
    {"blocks.{l}.attn.v", "encoder.layers.{l}.attn.Wqkv", false, 2, 3},
    {"blocks.{l}.attn.out", "encoder.layers.{l}.attn.out_proj"},
    {"blocks.{l}.attn_norm", "encoder.layers.{l}.norm1"},
    {"blocks.{l}.mlp.gate", "encoder.layers.{l}.mlp.fc12"},
    {"blocks.{l}.mlp.up", "encoder.layers.{l}.mlp.fc11"},
    {"blocks.{l}.mlp.down", "encoder.layers.{l}.mlp.fc2"},
    {"blocks.{l}.mlp_norm", "encoder.layers.{l}.norm2"},
};
constexpr auto kNomicHead =
    mlm_head("cls.predictions.transform.dense",
             "cls.predictions.transform.layer_norm|cls.predictions.transform.LayerNorm",
             "cls.predictions.decoder", "cls.predictions|cls.predictions.decoder");
constexpr FixedKey kNomicKeys[] = {{"prenorm", "false"},
                                   {"parallel_block", "false"},
                                   {"causal", "false"},
                                   {"use_rms_norm", "false"},
                                   {"rotary_emb_scale_base", "null"},
                                   {"scale_attn_weights", "true"},
                                   {"scale_attn_by_inverse_layer_idx", "false"},
                                   {"moe_every_n_layers", "0"},
                                   {"num_experts", "0"}};

constexpr ModuleName kNewModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.qkv_proj", false, 0, 3},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.qkv_proj", false, 1, 3},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.qkv_proj", false, 2, 3},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.q_proj"},  // where pack_qkv is false
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.k_proj"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.v_proj"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.o_proj"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attn_ln"},
    {"blocks.{l}.mlp.gate", "encoder.layer.{l}.mlp.up_gate_proj", false, 1, 2},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.mlp.up_gate_proj", false, 0, 2},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.mlp.down_proj"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.mlp_ln"},
};
constexpr auto kNewHead =
    mlm_head("lm_head.dense", "lm_head.norm", "lm_head.decoder", "lm_head.decoder|lm_head");
constexpr FixedKey kNewKeys[] = {{"layer_norm_type", "\"layer_norm\""},
                                 {"logn_attention_scale", "false"},
                                 {"logn_attention_clip1", "false"}};

constexpr FixedKey kRoFormerKeys[] = {{"rotary_value", "false"},
                                      {"rope_theta", "10000.0"},
                                      {"rope_parameters", "null"},
                                      {"rope_scaling", "null"},
                                      {"partial_rotary_factor", "null"}};

constexpr FixedKey kMpnetKeys[] = {{"relative_attention_max_distance", "128"},
                                   {"pad_token_id", "1"}};

constexpr ModuleName kDebertaModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"relative_table", "encoder.rel_embeddings"},
    {"relative_norm", "encoder.LayerNorm"},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.self.query_proj"},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.self.key_proj"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.self.value_proj"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.output.dense"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attention.output.LayerNorm"},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.intermediate.dense"},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.output.dense"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.output.LayerNorm"},
};
constexpr auto kDebertaHead = mlm_head(
    "lm_predictions.lm_head.dense|cls.predictions.transform.dense",
    "lm_predictions.lm_head.LayerNorm|cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder", "lm_predictions.lm_head|cls.predictions|cls.predictions.decoder");
constexpr FixedKey kDebertaKeys[] = {{"share_att_key", "true"}, {"conv_kernel_size", "0"}};

constexpr auto kBertClassifier = classifier_head("pooler.dense", "classifier", false);
constexpr auto kRobertaClassifier = classifier_head("classifier.dense", "classifier.out_proj");
constexpr auto kDistilBertClassifier = classifier_head("pre_classifier", "classifier");
constexpr auto kAlbertClassifier = classifier_head("pooler", "classifier", false);
constexpr ModuleName kModernBertClassifier[] = {
    {"classifier.dense", "head.dense", true},
    {"classifier.norm", "head.norm", true},
    {"classifier.out", "classifier", true},
};
constexpr auto kDebertaClassifier = classifier_head("pooler.dense", "classifier");

constexpr ModuleName kMpnetModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"relative_bias", "encoder.relative_attention_bias"},
    {"blocks.{l}.attn.q", "encoder.layer.{l}.attention.attn.q"},
    {"blocks.{l}.attn.k", "encoder.layer.{l}.attention.attn.k"},
    {"blocks.{l}.attn.v", "encoder.layer.{l}.attention.attn.v"},
    {"blocks.{l}.attn.out", "encoder.layer.{l}.attention.attn.o"},
    {"blocks.{l}.attn_norm", "encoder.layer.{l}.attention.LayerNorm"},
    {"blocks.{l}.mlp.up", "encoder.layer.{l}.intermediate.dense"},
    {"blocks.{l}.mlp.down", "encoder.layer.{l}.output.dense"},
    {"blocks.{l}.mlp_norm", "encoder.layer.{l}.output.LayerNorm"},
};

constexpr ModuleName kDistilBertModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"blocks.{l}.attn.q", "transformer.layer.{l}.attention.q_lin"},
    {"blocks.{l}.attn.k", "transformer.layer.{l}.attention.k_lin"},
    {"blocks.{l}.attn.v", "transformer.layer.{l}.attention.v_lin"},
    {"blocks.{l}.attn.out", "transformer.layer.{l}.attention.out_lin"},
    {"blocks.{l}.attn_norm", "transformer.layer.{l}.sa_layer_norm"},
    {"blocks.{l}.mlp.up", "transformer.layer.{l}.ffn.lin1"},
    {"blocks.{l}.mlp.down", "transformer.layer.{l}.ffn.lin2"},
    {"blocks.{l}.mlp_norm", "transformer.layer.{l}.output_layer_norm"},
};
constexpr auto kDistilBertHead =
    mlm_head("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector");

constexpr ModuleName kAlbertModules[] = {
    {"token_embedding", "embeddings.word_embeddings"},
    {"position_embedding", "embeddings.position_embeddings"},
    {"token_type_embedding", "embeddings.token_type_embeddings"},
    {"embedding_norm", "embeddings.LayerNorm"},
    {"embedding_map", "encoder.embedding_hidden_mapping_in"},
    {"blocks.{l}.attn.q", "encoder.albert_layer_groups.{l}.albert_layers.0.attention.query"},
    {"blocks.{l}.attn.k", "encoder.albert_layer_groups.{l}.albert_layers.0.attention.key"},
    {"blocks.{l}.attn.v", "encoder.albert_layer_groups.{l}.albert_layers.0.attention.value"},
    {"blocks.{l}.attn.out", "encoder.albert_layer_groups.{l}.albert_layers.0.attention.dense"},
    {"blocks.{l}.attn_norm", "encoder.albert_layer_groups.{l}.albert_layers.0.attention.LayerNorm"},
    {"blocks.{l}.mlp.up", "encoder.albert_layer_groups.{l}.albert_layers.0.ffn"},
    {"blocks.{l}.mlp.down", "encoder.albert_layer_groups.{l}.albert_layers.0.ffn_output"},
    {"blocks.{l}.mlp_norm",
     "encoder.albert_layer_groups.{l}.albert_layers.0.full_layer_layer_norm"},
};
constexpr auto kAlbertHead = mlm_head("predictions.dense", "predictions.LayerNorm",
                                      "predictions.decoder", "predictions|predictions.decoder");
constexpr FixedKey kAlbertKeys[] = {{"inner_group_num", "1"}};

constexpr ModuleName kT5Modules[] = {
    {"token_embedding", "embed_tokens"},
    {"token_embedding", "shared|transformer.shared", true},
    {"relative_bias", "block.0.layer.0.SelfAttention.relative_attention_bias"},
    {"blocks.{l}.attn.q", "block.{l}.layer.0.SelfAttention.q"},
    {"blocks.{l}.attn.k", "block.{l}.layer.0.SelfAttention.k"},
    {"blocks.{l}.attn.v", "block.{l}.layer.0.SelfAttention.v"},
    {"blocks.{l}.attn.out", "block.{l}.layer.0.SelfAttention.o"},
    {"blocks.{l}.attn_norm", "block.{l}.layer.0.layer_norm"},
    {"blocks.{l}.mlp.gate", "block.{l}.layer.1.DenseReluDense.wi_0"},
    {"blocks.{l}.mlp.up",
     "block.{l}.layer.1.DenseReluDense.wi_1|block.{l}.layer.1.DenseReluDense.wi"},
    {"blocks.{l}.mlp.down", "block.{l}.layer.1.DenseReluDense.wo"},
    {"blocks.{l}.mlp_norm", "block.{l}.layer.1.layer_norm"},
    {"final_norm", "final_layer_norm"},
};

// Marian, Bart, mBART, Pegasus and M2M100 descend from fairseq and share their names.
constexpr ModuleName kFairseqModules[] = {
    {"token_embedding", "embed_tokens"},
    {"token_embedding", "shared|model.shared", true},
    {"position_embedding", "embed_positions"},
    {"embedding_norm", "layernorm_embedding"},
    {"blocks.{l}.attn.q", "layers.{l}.self_attn.q_proj"},
    {"blocks.{l}.attn.k", "layers.{l}.self_attn.k_proj"},
    {"blocks.{l}.attn.v", "layers.{l}.self_attn.v_proj"},
    {"blocks.{l}.attn.out", "layers.{l}.self_attn.out_proj"},
    {"blocks.{l}.attn_norm", "layers.{l}.self_attn_layer_norm"},
    {"blocks.{l}.mlp.up", "layers.{l}.fc1"},
    {"blocks.{l}.mlp.down", "layers.{l}.fc2"},
    {"blocks.{l}.mlp_norm", "layers.{l}.final_layer_norm"},
    {"final_norm", "layer_norm"},
};
// Written by Transformers 3; later versions have a model_type for each combination.
constexpr std::array<FixedKey, 4> fairseq_keys(std::string_view pre_norm,
                                               std::string_view embedding_norm,
                                               std::string_view final_norm,
                                               std::string_view sinusoidal) {
  return {{{"normalize_before", pre_norm},
           {"normalize_embedding", embedding_norm},
           {"add_final_layer_norm", final_norm},
           {"static_position_embeddings", sinusoidal}}};
}
constexpr auto kMarianKeys = fairseq_keys("false", "false", "false", "true");
constexpr auto kBartKeys = fairseq_keys("false", "true", "false", "false");
constexpr auto kMBartKeys = fairseq_keys("true", "true", "true", "false");
constexpr auto kPegasusKeys = fairseq_keys("true", "false", "true", "true");

}  // namespace phasor::internal
