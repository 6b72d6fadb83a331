// The names are written out from Transformers' modeling files, not from models/families.cc.
#include "tests/support/family_files.h"

#include <cmath>
#include <iterator>

#include "models/parameters.h"

namespace phasor {
using namespace internal;

namespace {

using nlohmann::json;
using Names = std::map<std::string, std::string>;

constexpr int64_t kWidth = 12, kMlp = 20, kLayers = 2, kHeads = 3, kVocabulary = 23, kRows = 16;

/// What all families have here.
ModelConfig sizes(const std::string& model_type) {
  return {.family = model_type,
          .d_model = kWidth,
          .d_ff = kMlp,
          .num_layers = kLayers,
          .num_heads = kHeads,
          .vocab_size = kVocabulary,
          .max_positions = kRows,
          .position = {}};
}

json bert_config(const std::string& model_type) {
  return {{"model_type", model_type},
          {"hidden_size", kWidth},
          {"intermediate_size", kMlp},
          {"num_hidden_layers", kLayers},
          {"num_attention_heads", kHeads},
          {"vocab_size", kVocabulary},
          {"max_position_embeddings", kRows},
          {"type_vocab_size", 2},
          {"hidden_act", "gelu"}};
}

/// `names` with `prefix` before each, as a …ForMaskedLM has them.
Names wrapped(const std::string& prefix, Names names) {
  for (auto& [ours, theirs] : names) theirs = prefix + theirs;
  return names;
}

Names with(Names names, const Names& more) {
  names.insert(more.begin(), more.end());
  return names;
}

Names bert_names() {
  const std::string layer = "encoder.layer.{l}.";
  return {{"token_embedding", "embeddings.word_embeddings"},
          {"position_embedding", "embeddings.position_embeddings"},
          {"token_type_embedding", "embeddings.token_type_embeddings"},
          {"embedding_norm", "embeddings.LayerNorm"},
          {"blocks.{l}.attn.q", layer + "attention.self.query"},
          {"blocks.{l}.attn.k", layer + "attention.self.key"},
          {"blocks.{l}.attn.v", layer + "attention.self.value"},
          {"blocks.{l}.attn.out", layer + "attention.output.dense"},
          {"blocks.{l}.attn_norm", layer + "attention.output.LayerNorm"},
          {"blocks.{l}.mlp.up", layer + "intermediate.dense"},
          {"blocks.{l}.mlp.down", layer + "output.dense"},
          {"blocks.{l}.mlp_norm", layer + "output.LayerNorm"}};
}

Names bert_head_names() {
  return {{"mlm.dense", "cls.predictions.transform.dense"},
          {"mlm.norm", "cls.predictions.transform.LayerNorm"},
          {"mlm", "cls.predictions"}};
}

void without_gate_biases(Weights& weights) {
  for (BlockWeights& block : weights.blocks) block.gate.bias = block.up.bias = {};
}

void without_linear_biases(Weights& weights) {
  without_gate_biases(weights);
  for (BlockWeights& block : weights.blocks) {
    block.q.bias = block.k.bias = block.v.bias = block.out.bias = block.down.bias = {};
  }
  if (weights.mlm_head) weights.mlm_head->dense.bias = {};
}

}  // namespace

FamilyCase bert_case() {
  FamilyCase family{.config = bert_config("bert"), .meaning = sizes("bert"), .names = {}};
  family.meaning.norm_eps = 1e-12f;
  family.meaning.embedding_norm = true;
  family.meaning.position = {.kind = PositionKind::kLearned};
  family.extras = {.token_types = 2, .mlm_head = true};
  family.names = with(wrapped("bert.", bert_names()), bert_head_names());
  return family;
}

FamilyCase roberta_case(const std::string& model_type) {
  FamilyCase family{.config = bert_config(model_type), .meaning = sizes(model_type), .names = {}};
  family.config["layer_norm_eps"] = 1e-5;
  family.config["type_vocab_size"] = 1;
  family.config["pad_token_id"] = 1;
  family.meaning.max_positions = kRows - 2;
  family.meaning.norm_eps = 1e-5f;
  family.meaning.embedding_norm = true;
  family.meaning.position = {
      .kind = PositionKind::kLearned, .first_position = 2, .uncounted_token = 1};
  family.extras = {.token_types = 1, .mlm_head = true};
  family.names = with(
      wrapped("roberta.", bert_names()),
      {{"mlm.dense", "lm_head.dense"}, {"mlm.norm", "lm_head.layer_norm"}, {"mlm", "lm_head"}});
  return family;
}

FamilyCase electra_case(int64_t embedding_size) {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "electra";
  family.config["embedding_size"] = embedding_size;
  if (embedding_size != kWidth) family.meaning.d_embedding = embedding_size;
  family.names =
      with(wrapped("electra.", bert_names()), {{"embedding_map", "electra.embeddings_project"},
                                               {"mlm.dense", "generator_predictions.dense"},
                                               {"mlm.norm", "generator_predictions.LayerNorm"},
                                               {"mlm", "generator_lm_head"}});
  return family;
}

FamilyCase roformer_case(int64_t embedding_size) {
  FamilyCase family = electra_case(embedding_size);
  family.config["model_type"] = family.meaning.family = "roformer";
  family.config["rotary_value"] = false;
  family.meaning.position = {.rotary = RotaryConfig{.interleaved = true}};
  family.names = with(wrapped("roformer.", bert_names()), bert_head_names());
  family.names["embedding_map"] = "roformer.embeddings_project";
  return family;
}

FamilyCase jina_case() {
  FamilyCase family = bert_case();
  family.config["_name_or_path"] = "jinaai/jina-bert-implementation";
  family.config["auto_map"] = {
      {"AutoModel", "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"}};
  family.config["position_embedding_type"] = "alibi";
  family.config["feed_forward_type"] = "geglu";
  family.config["emb_pooler"] = "mean";
  family.meaning.gated_mlp = true;
  family.meaning.position = {.bias = ScoreBias::kAlibi};
  family.extras.change = without_gate_biases;
  const std::string mlp = "bert.encoder.layer.{l}.mlp.";
  family.names["blocks.{l}.mlp.gate"] = mlp + "gated_layers[0]";
  family.names["blocks.{l}.mlp.up"] = mlp + "gated_layers[1]";
  family.names["blocks.{l}.mlp.down"] = mlp + "wo";
  family.names["blocks.{l}.mlp_norm"] = mlp + "layernorm";
  return family;
}

FamilyCase deberta_case() {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "deberta-v2";
  family.config["type_vocab_size"] = 0;
  family.config["layer_norm_eps"] = 1e-7;
  family.config["relative_attention"] = true;
  family.config["max_relative_positions"] = -1;
  family.config["position_buckets"] = 8;
  family.config["norm_rel_ebd"] = "layer_norm";
  family.config["share_att_key"] = true;
  family.config["pos_att_type"] = {"p2c", "c2p"};
  family.config["position_biased_input"] = false;
  family.meaning.norm_eps = 1e-7f;
  family.meaning.position = {.disentangled =
                                 DisentangledConfig{.num_buckets = 8, .max_distance = kRows}};
  family.extras.token_types = 0;
  family.names = with(wrapped("deberta.", bert_names()), bert_head_names());
  const std::string attention = "deberta.encoder.layer.{l}.attention.self.";
  family.names["blocks.{l}.attn.q"] = attention + "query_proj";
  family.names["blocks.{l}.attn.k"] = attention + "key_proj";
  family.names["blocks.{l}.attn.v"] = attention + "value_proj";
  family.names["relative_table"] = "deberta.encoder.rel_embeddings";
  family.names["relative_norm"] = "deberta.encoder.LayerNorm";
  return family;
}

FamilyCase modernbert_case(bool new_keys) {
  FamilyCase family{.meaning = sizes("modernbert"), .names = {}};
  family.config = {{"model_type", "modernbert"},
                   {"hidden_size", kWidth},
                   {"intermediate_size", kMlp},
                   {"num_hidden_layers", 5},
                   {"num_attention_heads", kHeads},
                   {"vocab_size", kVocabulary},
                   {"max_position_embeddings", kRows},
                   {"hidden_activation", "gelu"},
                   {"classifier_activation", "gelu"},
                   {"norm_eps", 1e-3},
                   {"norm_bias", false},
                   {"attention_bias", false},
                   {"mlp_bias", false},
                   {"classifier_bias", false},
                   {"decoder_bias", true},
                   {"global_attn_every_n_layers", 3},
                   {"local_attention", 4}};
  if (new_keys) {
    const char *const full = "full_attention", *const sliding = "sliding_attention";
    family.config["layer_types"] = {full, sliding, sliding, full, sliding};
    family.config["rope_parameters"] = {
        {full, {{"rope_type", "default"}, {"rope_theta", 5000.0}}},
        {sliding, {{"rope_type", "default"}, {"rope_theta", 30.0}}}};
  } else {
    family.config["global_rope_theta"] = 5000.0;
    family.config["local_rope_theta"] = 30.0;
    family.config["layer_norm_eps"] = 1e-5;                 // of no effect,
    family.config["position_embedding_type"] = "absolute";  // and in the published files
  }
  ModelConfig& config = family.meaning;
  config.num_layers = 5;
  config.norm_order = NormOrder::kPreNorm;
  config.norm_eps = 1e-3f;
  config.gated_mlp = true;
  config.embedding_norm = true;
  config.final_norm = true;
  config.first_attn_norm = false;
  config.position = {.rotary = RotaryConfig{.base = 5000.0}};
  const LayerAttention local = {.window = 2, .rotary_base = 30.0};  // 2 on either side
  config.layer_attention = {{}, local, local, {}, local};
  family.extras.mlm_head = true;
  family.extras.change = [](Weights& weights) {
    without_linear_biases(weights);
    weights.embedding_norm.bias = weights.final_norm.bias = {};
    for (BlockWeights& block : weights.blocks) block.attn_norm.bias = block.mlp_norm.bias = {};
    if (weights.mlm_head) weights.mlm_head->norm.bias = {};
  };
  const std::string layer = "model.layers.{l}.";
  family.names = {{"token_embedding", "model.embeddings.tok_embeddings"},
                  {"embedding_norm", "model.embeddings.norm"},
                  {"blocks.{l}.attn_norm", layer + "attn_norm"},
                  {"blocks.{l}.attn.q", layer + "attn.Wqkv[0]"},
                  {"blocks.{l}.attn.k", layer + "attn.Wqkv[1]"},
                  {"blocks.{l}.attn.v", layer + "attn.Wqkv[2]"},
                  {"blocks.{l}.attn.out", layer + "attn.Wo"},
                  {"blocks.{l}.mlp_norm", layer + "mlp_norm"},
                  {"blocks.{l}.mlp.gate", layer + "mlp.Wi[0]"},
                  {"blocks.{l}.mlp.up", layer + "mlp.Wi[1]"},
                  {"blocks.{l}.mlp.down", layer + "mlp.Wo"},
                  {"final_norm", "model.final_norm"},
                  {"mlm.dense", "head.dense"},
                  {"mlm.norm", "head.norm"},
                  {"mlm", "decoder"}};
  return family;
}

FamilyCase nomic_case(bool new_keys) {
  FamilyCase family{.meaning = sizes("nomic_bert"), .names = {}};
  if (new_keys) {
    family.config = bert_config("nomic_bert");
    family.config["hidden_act"] = "silu";
    family.config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 700.0}};
  } else {
    family.config = {{"model_type", "nomic_bert"},
                     {"n_embd", kWidth},
                     {"n_inner", kMlp},
                     {"n_layer", kLayers},
                     {"n_head", kHeads},
                     {"n_positions", kRows},
                     {"vocab_size", kVocabulary},
                     {"type_vocab_size", 2},
                     {"layer_norm_epsilon", 1e-12},
                     {"activation_function", "swiglu"},
                     {"qkv_proj_bias", false},
                     {"mlp_fc1_bias", false},
                     {"mlp_fc2_bias", false},
                     {"prenorm", false},
                     {"use_rms_norm", false},
                     {"parallel_block", false},
                     {"causal", false},
                     {"pad_vocab_size_multiple", 64},
                     {"scale_attn_weights", true},
                     {"scale_attn_by_inverse_layer_idx", false},
                     {"rotary_emb_base", 700},
                     {"rotary_emb_fraction", 1.0},
                     {"rotary_emb_interleaved", false},
                     {"rotary_emb_scale_base", nullptr},
                     {"rotary_scaling_factor", nullptr},
                     {"max_trained_positions", 6}};
  }
  ModelConfig& config = family.meaning;
  if (!new_keys) config.vocab_size = 64;  // a multiple of 64
  config.norm_eps = 1e-12f;
  config.activation = Activation::kSilu;
  config.gated_mlp = true;
  config.embedding_norm = true;
  config.position = {.rotary = RotaryConfig{.base = 700.0}};
  family.extras.token_types = 2;
  family.extras.change = without_linear_biases;
  const std::string layer = "encoder.layers.{l}.";
  family.names = {{"token_embedding", "embeddings.word_embeddings"},
                  {"token_type_embedding", "embeddings.token_type_embeddings"},
                  {"embedding_norm", "emb_ln"},
                  {"blocks.{l}.attn.q", layer + "attn.Wqkv[0]"},
                  {"blocks.{l}.attn.k", layer + "attn.Wqkv[1]"},
                  {"blocks.{l}.attn.v", layer + "attn.Wqkv[2]"},
                  {"blocks.{l}.attn.out", layer + "attn.out_proj"},
                  {"blocks.{l}.attn_norm", layer + "norm1"},
                  {"blocks.{l}.mlp.up", layer + "mlp.fc11"},
                  {"blocks.{l}.mlp.gate", layer + "mlp.fc12"},
                  {"blocks.{l}.mlp.down", layer + "mlp.fc2"},
                  {"blocks.{l}.mlp_norm", layer + "norm2"}};
  return family;
}

FamilyCase gte_case(int64_t token_types) {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "new";
  family.config["type_vocab_size"] = token_types;
  family.config["layer_norm_eps"] = 1e-12;
  family.config["layer_norm_type"] = "layer_norm";
  family.config["position_embedding_type"] = "rope";
  family.config["rope_theta"] = 500.0;
  family.config["rope_scaling"] = {{"type", "ntk"}, {"factor", 4.0}};
  family.config["pack_qkv"] = true;
  family.config["logn_attention_scale"] = false;
  family.config["logn_attention_clip1"] = false;
  family.config["unpad_inputs"] = false;
  family.config["use_memory_efficient_attention"] = false;
  family.meaning.gated_mlp = true;
  // 4 columns turn: the frequencies are divided by 4^(2/4).
  family.meaning.position = {.rotary = RotaryConfig{.base = 2000.0, .factor = 0.5}};
  family.extras.token_types = token_types;
  family.extras.change = without_gate_biases;
  const std::string layer = "new.encoder.layer.{l}.";
  family.names = {{"token_embedding", "new.embeddings.word_embeddings"},
                  {"token_type_embedding", "new.embeddings.token_type_embeddings"},
                  {"embedding_norm", "new.embeddings.LayerNorm"},
                  {"blocks.{l}.attn.q", layer + "attention.qkv_proj[0]"},
                  {"blocks.{l}.attn.k", layer + "attention.qkv_proj[1]"},
                  {"blocks.{l}.attn.v", layer + "attention.qkv_proj[2]"},
                  {"blocks.{l}.attn.out", layer + "attention.o_proj"},
                  {"blocks.{l}.attn_norm", layer + "attn_ln"},
                  {"blocks.{l}.mlp.up", layer + "mlp.up_gate_proj[0]"},
                  {"blocks.{l}.mlp.gate", layer + "mlp.up_gate_proj[1]"},
                  {"blocks.{l}.mlp.down", layer + "mlp.down_proj"},
                  {"blocks.{l}.mlp_norm", layer + "mlp_ln"},
                  {"mlm.dense", "lm_head.dense"},
                  {"mlm.norm", "lm_head.norm"},
                  {"mlm", "lm_head.decoder"}};
  return family;
}

FamilyCase mpnet_case() {
  FamilyCase family = roberta_case("mpnet");
  family.config["relative_attention_num_buckets"] = 8;
  family.meaning.position.bias = ScoreBias::kBuckets;
  family.meaning.position.num_buckets = 8;
  family.extras.token_types = 0;
  const std::string encoder = "mpnet.encoder.", layer = encoder + "layer.{l}.";
  family.names = {{"relative_bias", encoder + "relative_attention_bias"},
                  {"token_embedding", "mpnet.embeddings.word_embeddings"},
                  {"position_embedding", "mpnet.embeddings.position_embeddings"},
                  {"embedding_norm", "mpnet.embeddings.LayerNorm"},
                  {"blocks.{l}.attn.q", layer + "attention.attn.q"},
                  {"blocks.{l}.attn.k", layer + "attention.attn.k"},
                  {"blocks.{l}.attn.v", layer + "attention.attn.v"},
                  {"blocks.{l}.attn.out", layer + "attention.attn.o"},
                  {"blocks.{l}.attn_norm", layer + "attention.LayerNorm"},
                  {"blocks.{l}.mlp.up", layer + "intermediate.dense"},
                  {"blocks.{l}.mlp.down", layer + "output.dense"},
                  {"blocks.{l}.mlp_norm", layer + "output.LayerNorm"},
                  {"mlm.dense", "lm_head.dense"},
                  {"mlm.norm", "lm_head.layer_norm"},
                  {"mlm", "lm_head"}};
  return family;
}

FamilyCase distilbert_case(bool sinusoidal) {
  FamilyCase family{.meaning = sizes("distilbert"), .names = {}};
  family.config = {{"model_type", "distilbert"}, {"dim", kWidth},
                   {"hidden_dim", kMlp},         {"n_layers", kLayers},
                   {"n_heads", kHeads},          {"vocab_size", kVocabulary},
                   {"activation", "relu"},       {"max_position_embeddings", kRows},
                   {"pad_token_id", 0},          {"sinusoidal_pos_embds", sinusoidal}};
  family.meaning.norm_eps = 1e-12f;
  family.meaning.activation = Activation::kRelu;
  family.meaning.embedding_norm = true;
  family.meaning.position.kind = sinusoidal ? PositionKind::kSinusoidal : PositionKind::kLearned;
  family.extras = {.mlm_head = true};
  const std::string layer = "distilbert.transformer.layer.{l}.";
  family.names = {{"token_embedding", "distilbert.embeddings.word_embeddings"},
                  {"position_embedding", "distilbert.embeddings.position_embeddings"},
                  {"embedding_norm", "distilbert.embeddings.LayerNorm"},
                  {"blocks.{l}.attn.q", layer + "attention.q_lin"},
                  {"blocks.{l}.attn.k", layer + "attention.k_lin"},
                  {"blocks.{l}.attn.v", layer + "attention.v_lin"},
                  {"blocks.{l}.attn.out", layer + "attention.out_lin"},
                  {"blocks.{l}.attn_norm", layer + "sa_layer_norm"},
                  {"blocks.{l}.mlp.up", layer + "ffn.lin1"},
                  {"blocks.{l}.mlp.down", layer + "ffn.lin2"},
                  {"blocks.{l}.mlp_norm", layer + "output_layer_norm"},
                  {"mlm.dense", "vocab_transform"},
                  {"mlm.norm", "vocab_layer_norm"},
                  {"mlm", "vocab_projector"}};
  return family;
}

FamilyCase albert_case() {
  FamilyCase family{.config = bert_config("albert"), .meaning = sizes("albert"), .names = {}};
  family.config["embedding_size"] = 7;
  family.config["num_hidden_layers"] = 5;
  family.config["num_hidden_groups"] = 2;
  family.config["inner_group_num"] = 1;
  family.config["hidden_act"] = "gelu_new";
  ModelConfig& config = family.meaning;
  config.d_embedding = 7;
  config.num_layers = 5;  // layers 0, 1, 2 are of the first group
  config.num_layer_groups = 2;
  config.activation = Activation::kGeluTanh;
  config.embedding_norm = true;
  config.norm_eps = 1e-12f;
  config.position = {.kind = PositionKind::kLearned};
  family.extras = {.token_types = 2, .mlm_head = true};
  const std::string layer = "albert.encoder.albert_layer_groups.{l}.albert_layers.0.";
  family.names = {{"token_embedding", "albert.embeddings.word_embeddings"},
                  {"position_embedding", "albert.embeddings.position_embeddings"},
                  {"token_type_embedding", "albert.embeddings.token_type_embeddings"},
                  {"embedding_norm", "albert.embeddings.LayerNorm"},
                  {"embedding_map", "albert.encoder.embedding_hidden_mapping_in"},
                  {"blocks.{l}.attn.q", layer + "attention.query"},
                  {"blocks.{l}.attn.k", layer + "attention.key"},
                  {"blocks.{l}.attn.v", layer + "attention.value"},
                  {"blocks.{l}.attn.out", layer + "attention.dense"},
                  {"blocks.{l}.attn_norm", layer + "attention.LayerNorm"},
                  {"blocks.{l}.mlp.up", layer + "ffn"},
                  {"blocks.{l}.mlp.down", layer + "ffn_output"},
                  {"blocks.{l}.mlp_norm", layer + "full_layer_layer_norm"},
                  {"mlm.dense", "predictions.dense"},
                  {"mlm.norm", "predictions.LayerNorm"},
                  {"mlm", "predictions"}};
  return family;
}

FamilyCase t5_case(bool gated) {
  FamilyCase family{.meaning = sizes("t5"), .names = {}};
  family.config = {{"model_type", "t5"},
                   {"d_model", kWidth},
                   {"d_kv", 5},
                   {"d_ff", kMlp},
                   {"num_layers", kLayers},
                   {"num_decoder_layers", 7},
                   {"num_heads", kHeads},
                   {"vocab_size", kVocabulary},
                   {"relative_attention_num_buckets", 8},
                   {"relative_attention_max_distance", 6},
                   {"feed_forward_proj", gated ? "gated-gelu" : "relu"},
                   {"layer_norm_epsilon", 1e-6}};
  ModelConfig& config = family.meaning;
  config.d_head = 5;
  config.max_positions = 0;
  config.norm_order = NormOrder::kPreNorm;
  config.norm = NormKind::kRmsNorm;
  config.norm_eps = 1e-6f;
  config.activation = gated ? Activation::kGeluTanh : Activation::kRelu;
  config.gated_mlp = gated;
  config.linear_bias = false;
  config.scale_scores = false;
  config.final_norm = true;
  config.position = {.bias = ScoreBias::kBuckets, .num_buckets = 8, .max_distance = 6};
  const std::string layer = "encoder.block.{l}.layer.";
  family.names = {
      {"token_embedding", "shared"},
      {"relative_bias", "encoder.block.0.layer.0.SelfAttention.relative_attention_bias"},
      {"blocks.{l}.attn.q", layer + "0.SelfAttention.q"},
      {"blocks.{l}.attn.k", layer + "0.SelfAttention.k"},
      {"blocks.{l}.attn.v", layer + "0.SelfAttention.v"},
      {"blocks.{l}.attn.out", layer + "0.SelfAttention.o"},
      {"blocks.{l}.attn_norm", layer + "0.layer_norm"},
      {"blocks.{l}.mlp.gate", layer + "1.DenseReluDense.wi_0"},
      {"blocks.{l}.mlp.up", layer + (gated ? "1.DenseReluDense.wi_1" : "1.DenseReluDense.wi")},
      {"blocks.{l}.mlp.down", layer + "1.DenseReluDense.wo"},
      {"blocks.{l}.mlp_norm", layer + "1.layer_norm"},
      {"final_norm", "encoder.final_layer_norm"}};
  return family;
}

FamilyCase fairseq_case(const std::string& model_type) {
  FamilyCase family{.meaning = sizes(model_type), .names = {}};
  family.config = {{"model_type", model_type},
                   {"d_model", kWidth},
                   {"encoder_ffn_dim", kMlp},
                   {"encoder_layers", kLayers},
                   {"encoder_attention_heads", 3},
                   {"decoder_layers", 7},
                   {"vocab_size", kVocabulary},
                   {"max_position_embeddings", kRows},
                   {"activation_function", "swish"},
                   {"scale_embedding", true},
                   {"pad_token_id", 1}};
  ModelConfig& config = family.meaning;
  config.activation = Activation::kSilu;
  config.embedding_scale = std::sqrt(static_cast<float>(kWidth));
  const bool pre_norm = model_type == "mbart" || model_type == "pegasus" || model_type == "m2m_100";
  config.norm_order = pre_norm ? NormOrder::kPreNorm : NormOrder::kPostNorm;
  config.final_norm = pre_norm;
  if (model_type == "bart" || model_type == "mbart") {
    config.embedding_norm = true;
    config.position = {.kind = PositionKind::kLearned, .first_position = 2};
  } else if (model_type == "m2m_100") {
    config.position = {.kind = PositionKind::kSinusoidal,
                       .layout = SinusoidalLayout::kFairseq,
                       .first_position = 2,
                       .uncounted_token = 1};
  } else {
    config.position = {.kind = PositionKind::kSinusoidal, .layout = SinusoidalLayout::kMarian};
  }
  const std::string layer = "model.encoder.layers.{l}.";
  family.names = {{"token_embedding", "model.shared"},
                  {"position_embedding", "model.encoder.embed_positions"},
                  {"embedding_norm", "model.encoder.layernorm_embedding"},
                  {"blocks.{l}.attn.q", layer + "self_attn.q_proj"},
                  {"blocks.{l}.attn.k", layer + "self_attn.k_proj"},
                  {"blocks.{l}.attn.v", layer + "self_attn.v_proj"},
                  {"blocks.{l}.attn.out", layer + "self_attn.out_proj"},
                  {"blocks.{l}.attn_norm", layer + "self_attn_layer_norm"},
                  {"blocks.{l}.mlp.up", layer + "fc1"},
                  {"blocks.{l}.mlp.down", layer + "fc2"},
                  {"blocks.{l}.mlp_norm", layer + "final_layer_norm"},
                  {"final_norm", "model.encoder.layer_norm"}};
  return family;
}

FamilyCase classifier_case(const std::string& model_type) {
  struct Row {
    FamilyCase family;
    std::string dense, out;
    Activation activation = Activation::kTanh;
  };
  const std::map<std::string, Row> rows = {
      {"bert", {bert_case(), "bert.pooler.dense", "classifier"}},
      {"roberta", {roberta_case("roberta"), "classifier.dense", "classifier.out_proj"}},
      {"electra",
       {electra_case(7), "classifier.dense", "classifier.out_proj", Activation::kGeluErf}},
      {"mpnet", {mpnet_case(), "classifier.dense", "classifier.out_proj"}},
      {"distilbert", {distilbert_case(false), "pre_classifier", "classifier", Activation::kRelu}},
      {"albert", {albert_case(), "albert.pooler", "classifier"}}};
  const Row& row = rows.at(model_type);
  FamilyCase family = row.family;
  family.config["architectures"] = {"SomeForSequenceClassification"};
  family.config["id2label"] = {{"0", "no"}, {"1", "yes"}, {"2", "maybe"}};
  family.extras.mlm_head = false;
  family.extras.classifier =
      ClassifierHead{.activation = row.activation, .labels = {"no", "yes", "maybe"}};
  family.names["classifier.dense"] = row.dense;
  family.names["classifier.out"] = row.out;
  return family;
}

std::vector<TestTensor> tensors_of(const FamilyCase& family, const Model& model) {
  Weights weights = model.weights();
  const std::byte* const embedding = weights.token_embedding.data;
  std::vector<TestTensor> tensors;
  std::map<std::string, std::map<char, TestTensor>> stacks;  // by name and number
  for (const Parameter& parameter : parameters(model.config(), weights)) {
    const Tensor& tensor = *parameter.tensor;
    const bool tied = parameter.module == "mlm.decoder" && tensor.data == embedding;
    if (!tensor.present() || tied) continue;
    std::string name = with_layer(family.names.at(std::string(parameter.module)), parameter.layer);
    const bool stacked = name.ends_with(']');
    const char number = stacked ? name[name.size() - 2] : ' ';
    if (stacked) name.resize(name.size() - 3);
    const TestTensor written = {.name = name + "." + std::string(parameter.leaf),
                                .shape = tensor.shape,
                                .bytes = float_bytes(tensor.to_float())};
    if (stacked) {
      stacks[written.name][number] = written;
    } else {
      tensors.push_back(written);
    }
  }
  for (const auto& [name, parts] : stacks) {
    TestTensor& stack = tensors.emplace_back(parts.begin()->second);
    for (auto part = std::next(parts.begin()); part != parts.end(); ++part) {
      stack.shape[0] += part->second.shape[0];
      stack.bytes += part->second.bytes;
    }
  }
  return tensors;
}

}  // namespace phasor
