// The names are written out from Transformers' modeling files, not from models/families.cc.
#include "tests/support/family_files.h"

#include <cmath>
#include <iterator>
#include <sstream>

#include "models/parameters.h"

namespace phasor {
using namespace internal;

namespace {

using nlohmann::json;
using Names = std::map<std::string, std::string>;

constexpr int64_t kWidth = 12, kMlp = 20, kLayers = 2, kHeads = 3, kVocabulary = 23, kRows = 16;

constexpr const char* kBertKeys = R"({
    "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 3,
    "vocab_size": 23, "max_position_embeddings": 16, "type_vocab_size": 2,
    "hidden_act": "gelu"})";

/// Of a text "ours theirs ours theirs …". What begins with a dot is of each layer, under `layer`.
Names names_of(const std::string& layer, const std::string& text) {
  std::istringstream words(text);
  Names names;
  for (std::string ours, theirs; words >> ours >> theirs;) {
    const bool of_layer = ours.front() == '.';
    names[of_layer ? "blocks.{l}" + ours : ours] = of_layer ? layer + theirs : theirs;
  }
  return names;
}

/// A case of the sizes that all have here, with these keys and names.
FamilyCase family_of(const std::string& model_type, const std::string& keys,
                     const std::string& layer = {}, const std::string& names = {}) {
  FamilyCase family{.config = json::parse(keys),
                    .meaning = {.family = model_type,
                                .d_model = kWidth,
                                .d_ff = kMlp,
                                .num_layers = kLayers,
                                .num_heads = kHeads,
                                .vocab_size = kVocabulary,
                                .max_positions = kRows,
                                .position = {}},
                    .names = names_of(layer, names)};
  family.config["model_type"] = model_type;
  return family;
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
  return names_of("encoder.layer.{l}.", R"(
      token_embedding embeddings.word_embeddings
      position_embedding embeddings.position_embeddings
      token_type_embedding embeddings.token_type_embeddings
      embedding_norm embeddings.LayerNorm
      .attn.q attention.self.query  .attn.k attention.self.key  .attn.v attention.self.value
      .attn.out attention.output.dense  .attn_norm attention.output.LayerNorm
      .mlp.up intermediate.dense  .mlp.down output.dense  .mlp_norm output.LayerNorm)");
}

Names bert_head_names() {
  return names_of("", R"(mlm.dense cls.predictions.transform.dense
      mlm.norm cls.predictions.transform.LayerNorm  mlm cls.predictions)");
}

void without_gate_biases(Weights& weights) {
  for (BlockWeights& block : weights.blocks) block.gate.bias = block.up.bias = {};
}

void without_linear_biases(Weights& weights) {
  without_gate_biases(weights);
  for (BlockWeights& block : weights.blocks)
    block.q.bias = block.k.bias = block.v.bias = block.out.bias = block.down.bias = {};
  if (weights.mlm_head) weights.mlm_head->dense.bias = {};
}

}  // namespace

FamilyCase bert_case() {
  FamilyCase family = family_of("bert", kBertKeys);
  family.meaning.norm_eps = 1e-12f;
  family.meaning.embedding_norm = true;
  family.meaning.position = {.kind = PositionKind::kLearned};
  family.extras = {.token_types = 2, .mlm_head = true};
  family.names = with(wrapped("bert.", bert_names()), bert_head_names());
  return family;
}

FamilyCase roberta_case(const std::string& model_type) {
  FamilyCase family = family_of(model_type, kBertKeys);
  family.config.update({{"layer_norm_eps", 1e-5}, {"type_vocab_size", 1}, {"pad_token_id", 1}});
  family.meaning.max_positions = kRows - 2;
  family.meaning.norm_eps = 1e-5f;
  family.meaning.embedding_norm = true;
  family.meaning.position = {
      .kind = PositionKind::kLearned, .first_position = 2, .uncounted_token = 1};
  family.extras = {.token_types = 1, .mlm_head = true};
  family.names =
      with(wrapped("roberta.", bert_names()),
           names_of("", "mlm.dense lm_head.dense mlm.norm lm_head.layer_norm mlm lm_head"));
  return family;
}

FamilyCase electra_case(int64_t embedding_size) {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "electra";
  family.config["embedding_size"] = embedding_size;
  if (embedding_size != kWidth) family.meaning.d_embedding = embedding_size;
  family.names = with(wrapped("electra.", bert_names()), names_of("", R"(
      embedding_map electra.embeddings_project  mlm generator_lm_head
      mlm.dense generator_predictions.dense  mlm.norm generator_predictions.LayerNorm)"));
  return family;
}

/// An ELECTRA whose queries and keys turn.
FamilyCase roformer_case(int64_t embedding_size) {
  FamilyCase family = electra_case(embedding_size);
  family.config["model_type"] = family.meaning.family = "roformer";
  family.config["rotary_value"] = false;
  family.meaning.position = {.rotary = RotaryConfig{.interleaved = true}};
  family.names = with(wrapped("roformer.", bert_names()), bert_head_names());
  family.names["embedding_map"] = "roformer.embeddings_project";
  return family;
}

/// Jina's BERT with ALiBi and a gated MLP.
FamilyCase jina_case() {
  FamilyCase family = bert_case();
  family.config.update(json::parse(R"({
      "_name_or_path": "jinaai/jina-bert-implementation", "position_embedding_type": "alibi",
      "auto_map": {"AutoModel": "jinaai/jina-bert-implementation--modeling_bert.JinaBertModel"},
      "feed_forward_type": "geglu", "emb_pooler": "mean"})"));
  family.meaning.gated_mlp = true;
  family.meaning.position = {.bias = ScoreBias::kAlibi};
  family.extras.change = without_gate_biases;
  family.names = with(names_of("bert.encoder.layer.{l}.mlp.", R"(.mlp.gate gated_layers[0]
      .mlp.up gated_layers[1]  .mlp.down wo  .mlp_norm layernorm)"),
                      family.names);
  return family;
}

/// DeBERTa-v3's layout.
FamilyCase deberta_case() {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "deberta-v2";
  family.config.update(json::parse(R"({
      "type_vocab_size": 0, "layer_norm_eps": 1e-7, "relative_attention": true,
      "max_relative_positions": -1, "position_buckets": 8, "norm_rel_ebd": "layer_norm",
      "share_att_key": true, "pos_att_type": ["p2c", "c2p"], "position_biased_input": false})"));
  family.meaning.norm_eps = 1e-7f;
  family.meaning.position = {.disentangled =
                                 DisentangledConfig{.num_buckets = 8, .max_distance = kRows}};
  family.extras.token_types = 0;
  family.names = with(names_of("encoder.layer.{l}.attention.self.", R"(.attn.q query_proj
      .attn.k key_proj  .attn.v value_proj  relative_table encoder.rel_embeddings
      relative_norm encoder.LayerNorm)"),
                      bert_names());
  family.names = with(wrapped("deberta.", family.names), bert_head_names());
  return family;
}

FamilyCase modernbert_case(bool new_keys) {
  FamilyCase family = family_of("modernbert", R"({
      "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 5, "num_attention_heads": 3,
      "vocab_size": 23, "max_position_embeddings": 16, "hidden_activation": "gelu",
      "classifier_activation": "gelu", "norm_eps": 1e-3, "norm_bias": false,
      "attention_bias": false, "mlp_bias": false, "classifier_bias": false, "decoder_bias": true,
      "global_attn_every_n_layers": 3, "local_attention": 4})",
                                "model.layers.{l}.", R"(
      token_embedding model.embeddings.tok_embeddings  embedding_norm model.embeddings.norm
      .attn_norm attn_norm  .attn.q attn.Wqkv[0]  .attn.k attn.Wqkv[1]  .attn.v attn.Wqkv[2]
      .attn.out attn.Wo
      .mlp_norm mlp_norm  .mlp.gate mlp.Wi[0]  .mlp.up mlp.Wi[1]  .mlp.down mlp.Wo
      final_norm model.final_norm  mlm.dense head.dense  mlm.norm head.norm  mlm decoder)");
  // The old files' layer_norm_eps and position_embedding_type are of no effect.
  family.config.update(json::parse(new_keys ? R"({
      "layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                      "full_attention", "sliding_attention"],
      "rope_parameters": {
          "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
          "sliding_attention": {"rope_type": "default", "rope_theta": 30.0}}})"
                                            : R"({
      "global_rope_theta": 5000.0, "local_rope_theta": 30.0,
      "layer_norm_eps": 1e-5, "position_embedding_type": "absolute"})"));
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
  return family;
}

FamilyCase nomic_case(bool new_keys) {
  const std::string old_keys = R"({
      "n_embd": 12, "n_inner": 20, "n_layer": 2, "n_head": 3, "n_positions": 16,
      "vocab_size": 23, "type_vocab_size": 2, "layer_norm_epsilon": 1e-12,
      "activation_function": "swiglu", "qkv_proj_bias": false, "mlp_fc1_bias": false,
      "mlp_fc2_bias": false, "prenorm": false, "use_rms_norm": false, "parallel_block": false,
      "causal": false, "pad_vocab_size_multiple": 64, "scale_attn_weights": true,
      "scale_attn_by_inverse_layer_idx": false, "rotary_emb_base": 700,
      "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": false,
      "rotary_emb_scale_base": null, "rotary_scaling_factor": null,
      "max_trained_positions": 6})";
  FamilyCase family =
      family_of("nomic_bert", new_keys ? kBertKeys : old_keys, "encoder.layers.{l}.", R"(
      token_embedding embeddings.word_embeddings
      token_type_embedding embeddings.token_type_embeddings  embedding_norm emb_ln
      .attn.q attn.Wqkv[0]  .attn.k attn.Wqkv[1]  .attn.v attn.Wqkv[2]  .attn.out attn.out_proj
      .attn_norm norm1  .mlp.up mlp.fc11  .mlp.gate mlp.fc12  .mlp.down mlp.fc2
      .mlp_norm norm2)");
  if (new_keys) {
    family.config["hidden_act"] = "silu";
    family.config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 700.0}};
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
  return family;
}

/// GTE v1.5 with NTK scaling. Its oracle is the C++ one on this case: there is no checkpoint with
/// hidden states, and a program for this family alone would repeat the same few lines.
FamilyCase gte_case(int64_t token_types) {
  FamilyCase family = bert_case();
  family.config["model_type"] = family.meaning.family = "new";
  family.config["type_vocab_size"] = token_types;
  family.config.update(json::parse(R"({
      "layer_norm_eps": 1e-12, "layer_norm_type": "layer_norm", "position_embedding_type": "rope",
      "rope_theta": 500.0, "rope_scaling": {"type": "ntk", "factor": 4.0}, "pack_qkv": true,
      "logn_attention_scale": false, "logn_attention_clip1": false, "unpad_inputs": false,
      "use_memory_efficient_attention": false})"));
  family.meaning.gated_mlp = true;
  // 4 columns turn: the frequencies are divided by 4^(2/4).
  family.meaning.position = {.rotary = RotaryConfig{.base = 2000.0, .factor = 0.5}};
  family.extras.token_types = token_types;
  family.extras.change = without_gate_biases;
  family.names = names_of("new.encoder.layer.{l}.", R"(
      token_embedding new.embeddings.word_embeddings
      token_type_embedding new.embeddings.token_type_embeddings
      embedding_norm new.embeddings.LayerNorm
      .attn.q attention.qkv_proj[0]  .attn.k attention.qkv_proj[1]  .attn.v attention.qkv_proj[2]
      .attn.out attention.o_proj  .attn_norm attn_ln
      .mlp.up mlp.up_gate_proj[0]  .mlp.gate mlp.up_gate_proj[1]  .mlp.down mlp.down_proj
      .mlp_norm mlp_ln  mlm.dense lm_head.dense  mlm.norm lm_head.norm  mlm lm_head.decoder)");
  return family;
}

FamilyCase mpnet_case() {
  FamilyCase family = roberta_case("mpnet");
  family.config["relative_attention_num_buckets"] = 8;
  family.meaning.position.bias = ScoreBias::kBuckets;
  family.meaning.position.num_buckets = 8;
  family.extras.token_types = 0;
  family.names = names_of("mpnet.encoder.layer.{l}.", R"(
      relative_bias mpnet.encoder.relative_attention_bias
      token_embedding mpnet.embeddings.word_embeddings
      position_embedding mpnet.embeddings.position_embeddings
      embedding_norm mpnet.embeddings.LayerNorm
      .attn.q attention.attn.q  .attn.k attention.attn.k  .attn.v attention.attn.v
      .attn.out attention.attn.o  .attn_norm attention.LayerNorm
      .mlp.up intermediate.dense  .mlp.down output.dense  .mlp_norm output.LayerNorm
      mlm.dense lm_head.dense  mlm.norm lm_head.layer_norm  mlm lm_head)");
  return family;
}

FamilyCase distilbert_case(bool sinusoidal) {
  FamilyCase family = family_of("distilbert", R"({
      "dim": 12, "hidden_dim": 20, "n_layers": 2, "n_heads": 3, "vocab_size": 23,
      "activation": "relu", "max_position_embeddings": 16, "pad_token_id": 0})",
                                "distilbert.transformer.layer.{l}.", R"(
      token_embedding distilbert.embeddings.word_embeddings
      position_embedding distilbert.embeddings.position_embeddings
      embedding_norm distilbert.embeddings.LayerNorm
      .attn.q attention.q_lin  .attn.k attention.k_lin  .attn.v attention.v_lin
      .attn.out attention.out_lin  .attn_norm sa_layer_norm
      .mlp.up ffn.lin1  .mlp.down ffn.lin2  .mlp_norm output_layer_norm
      mlm.dense vocab_transform  mlm.norm vocab_layer_norm  mlm vocab_projector)");
  family.config["sinusoidal_pos_embds"] = sinusoidal;
  family.meaning.norm_eps = 1e-12f;
  family.meaning.activation = Activation::kRelu;
  family.meaning.embedding_norm = true;
  family.meaning.position.kind = sinusoidal ? PositionKind::kSinusoidal : PositionKind::kLearned;
  family.extras = {.mlm_head = true};
  return family;
}

FamilyCase albert_case() {
  FamilyCase family =
      family_of("albert", kBertKeys, "albert.encoder.albert_layer_groups.{l}.albert_layers.0.", R"(
      token_embedding albert.embeddings.word_embeddings
      position_embedding albert.embeddings.position_embeddings
      token_type_embedding albert.embeddings.token_type_embeddings
      embedding_norm albert.embeddings.LayerNorm
      embedding_map albert.encoder.embedding_hidden_mapping_in
      .attn.q attention.query  .attn.k attention.key  .attn.v attention.value
      .attn.out attention.dense  .attn_norm attention.LayerNorm
      .mlp.up ffn  .mlp.down ffn_output  .mlp_norm full_layer_layer_norm
      mlm.dense predictions.dense  mlm.norm predictions.LayerNorm  mlm predictions)");
  family.config.update(json::parse(R"({"embedding_size": 7, "num_hidden_layers": 5,
      "num_hidden_groups": 2, "inner_group_num": 1, "hidden_act": "gelu_new"})"));
  ModelConfig& config = family.meaning;
  config.d_embedding = 7;
  config.num_layers = 5;  // layers 0, 1, 2 are of the first group
  config.num_layer_groups = 2;
  config.activation = Activation::kGeluTanh;
  config.embedding_norm = true;
  config.norm_eps = 1e-12f;
  config.position = {.kind = PositionKind::kLearned};
  family.extras = {.token_types = 2, .mlm_head = true};
  return family;
}

FamilyCase t5_case(bool gated) {
  FamilyCase family = family_of("t5", R"({
      "d_model": 12, "d_kv": 5, "d_ff": 20, "num_layers": 2, "num_decoder_layers": 7,
      "num_heads": 3, "vocab_size": 23, "relative_attention_num_buckets": 8,
      "relative_attention_max_distance": 6, "layer_norm_epsilon": 1e-6})",
                                "encoder.block.{l}.layer.", R"(
      token_embedding shared  final_norm encoder.final_layer_norm
      relative_bias encoder.block.0.layer.0.SelfAttention.relative_attention_bias
      .attn.q 0.SelfAttention.q  .attn.k 0.SelfAttention.k  .attn.v 0.SelfAttention.v
      .attn.out 0.SelfAttention.o  .attn_norm 0.layer_norm
      .mlp.gate 1.DenseReluDense.wi_0  .mlp.up 1.DenseReluDense.wi_1
      .mlp.down 1.DenseReluDense.wo  .mlp_norm 1.layer_norm)");
  family.config["feed_forward_proj"] = gated ? "gated-gelu" : "relu";
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
  if (!gated) family.names["blocks.{l}.mlp.up"] = "encoder.block.{l}.layer.1.DenseReluDense.wi";
  return family;
}

namespace {

/// A decoder of its own, in memory that stays.
Tensor untied_decoder() {
  static const std::vector<float> values = [] {
    std::vector<float> some(kVocabulary * kWidth);
    for (size_t i = 0; i < some.size(); ++i) some[i] = std::sin(static_cast<float>(i));
    return some;
  }();
  return {
      DType::kFloat32, {kVocabulary, kWidth}, reinterpret_cast<const std::byte*>(values.data())};
}

}  // namespace

/// Blocks like Llama's: eurobert, qwen3, gemma3_text or t5gemma.
FamilyCase llama_case(const std::string& model_type) {
  const bool t5 = model_type == "t5gemma";
  FamilyCase family = family_of(model_type, R"({
      "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 6, "vocab_size": 23, "max_position_embeddings": 16,
      "hidden_act": "silu", "rms_norm_eps": 1e-4, "rope_theta": 500.0, "attention_bias": false})",
                                "layers.{l}.", R"(
      token_embedding embed_tokens  final_norm norm
      .attn.q self_attn.q_proj  .attn.k self_attn.k_proj  .attn.v self_attn.v_proj
      .attn.q_norm self_attn.q_norm  .attn.k_norm self_attn.k_norm
      .attn.out self_attn.o_proj  .attn_norm input_layernorm
      .mlp.gate mlp.gate_proj  .mlp.up mlp.up_proj  .mlp.down mlp.down_proj
      .mlp_norm post_attention_layernorm)");
  ModelConfig& config = family.meaning;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.d_head = 6;
  config.norm_order = NormOrder::kPreNorm;
  config.norm = NormKind::kRmsNorm;
  config.norm_eps = 1e-4f;
  config.activation = Activation::kSilu;
  config.gated_mlp = config.final_norm = true;
  config.position = {.rotary = RotaryConfig{.base = 500.0}};
  config.qk_norm = model_type == "qwen3" || model_type == "gemma3_text";
  config.causal = model_type == "qwen3";
  if (model_type == "eurobert") {
    family.extras.mlm_head = true;
  } else if (t5 || model_type == "gemma3_text") {
    family.config.update(json::parse(R"({"hidden_act": "gelu_pytorch_tanh", "sliding_window": 5,
        "query_pre_attn_scalar": 9, "attn_logit_softcapping": 2.5,
        "layer_types": ["sliding_attention", "full_attention"]})"));
    config.activation = Activation::kGeluTanh;
    config.embedding_scale = std::sqrt(static_cast<float>(kWidth));
    config.branch_norms = family.norms_less_one = true;
    config.score_width = 9;
    config.score_cap = 2.5;
    config.layer_attention = {{.window = 5, .rotary_base = 500.0}, {}};
    const std::string attention = t5 ? "post_self_attn" : "post_attention";
    family.names["blocks.{l}.attn_branch_norm"] = "layers.{l}." + attention + "_layernorm";
    family.names["blocks.{l}.mlp_norm"] = "layers.{l}.pre_feedforward_layernorm";
    family.names["blocks.{l}.mlp_branch_norm"] = "layers.{l}.post_feedforward_layernorm";
    if (t5) family.names["blocks.{l}.attn_norm"] = "layers.{l}.pre_self_attn_layernorm";
  }
  if (model_type == "gemma3_text") {
    family.config.update({{"use_bidirectional_attention", true}, {"rope_local_base_freq", 30.0}});
    config.layer_attention[0] = {.window = 2, .rotary_base = 30.0};  // 2 on either side
  }
  if (t5) family.config = {{"encoder", family.config}, {"model_type", model_type}};
  family.extras.change = [](Weights& weights) {
    without_linear_biases(weights);
    if (auto& head = weights.mlm_head) {
      head->dense = {};
      head->norm = {};
      head->bias = {};
      head->decoder = untied_decoder();
    }
  };
  family.names = wrapped(t5 ? "model.encoder." : "model.", family.names);
  family.names["mlm.decoder"] = "lm_head";
  return family;
}

FamilyCase fairseq_case(const std::string& model_type) {
  FamilyCase family = family_of(model_type, R"({
      "d_model": 12, "encoder_ffn_dim": 20, "encoder_layers": 2, "encoder_attention_heads": 3,
      "decoder_layers": 7, "vocab_size": 23, "max_position_embeddings": 16,
      "activation_function": "swish", "scale_embedding": true, "pad_token_id": 1})",
                                "model.encoder.layers.{l}.", R"(
      token_embedding model.shared  position_embedding model.encoder.embed_positions
      embedding_norm model.encoder.layernorm_embedding  final_norm model.encoder.layer_norm
      .attn.q self_attn.q_proj  .attn.k self_attn.k_proj  .attn.v self_attn.v_proj
      .attn.out self_attn.out_proj  .attn_norm self_attn_layer_norm
      .mlp.up fc1  .mlp.down fc2  .mlp_norm final_layer_norm)");
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
  return family;
}

namespace {

/// A checkpoint, the prefix (FamilyCase::prefix), and the classification head, where there is one:
/// its two maps in the file, and the activation between them.
struct FamilyRow {
  FamilyCase family;
  std::string prefix = {}, dense = {}, out = {};
  Activation activation = Activation::kTanh;
};

std::vector<FamilyRow> rows() {
  using enum Activation;
  FamilyCase stored = distilbert_case(false), stored_sinusoid = distilbert_case(true);
  stored.extras.store_position_table = stored_sinusoid.extras.store_position_table = true;
  return {{bert_case(), "bert.", "bert.pooler.dense", "classifier"},
          {roberta_case("roberta"), "roberta.", "classifier.dense", "classifier.out_proj"},
          {roberta_case("xlm-roberta")},
          {roberta_case("camembert")},
          // With an embedding of another width than d_model, and without.
          {electra_case(7), "electra.", "classifier.dense", "classifier.out_proj", kGeluErf},
          {electra_case(12), "electra."},
          {mpnet_case(), "mpnet.", "classifier.dense", "classifier.out_proj"},
          {roformer_case(7), "", "classifier.dense", "classifier.out_proj", kRelu},
          {roformer_case(12), "roformer."},
          {jina_case(), "bert.", "bert.pooler.dense", "classifier"},
          {deberta_case(), "deberta.", "pooler.dense", "classifier", kGeluErf},
          {modernbert_case(false), "model."},
          {modernbert_case(true), "model.", "head.dense", "classifier", kGeluErf},
          {nomic_case(false)},
          {nomic_case(true)},
          {gte_case(0), "new."},
          {gte_case(2), "new.", "new.pooler.dense", "classifier"},
          {distilbert_case(false), "distilbert.", "pre_classifier", "classifier", kRelu},
          {distilbert_case(true)},
          {stored},
          {stored_sinusoid},
          {albert_case(), "albert.", "albert.pooler", "classifier"},
          {t5_case(false)},
          {t5_case(true)},
          {llama_case("eurobert"), "model.", "dense", "classifier", kGeluErf},
          {llama_case("qwen3"), "model."},
          {llama_case("gemma3_text"), "model."},
          {llama_case("t5gemma"), "model."},
          {fairseq_case("bart"), "model."},
          {fairseq_case("marian")},
          {fairseq_case("mbart")},
          {fairseq_case("pegasus")},
          {fairseq_case("m2m_100")}};
}

}  // namespace

std::vector<FamilyCase> all_families() {
  std::vector<FamilyCase> all;
  for (const FamilyRow& row : rows()) all.emplace_back(row.family).prefix = row.prefix;
  return all;
}

std::vector<FamilyCase> all_classifiers() {
  std::vector<FamilyCase> all;
  for (const FamilyRow& row : rows()) {
    if (row.dense.empty()) continue;
    FamilyCase& family = all.emplace_back(row.family);
    const std::string model_type = family.meaning.family;
    family.config["architectures"] = {"SomeForSequenceClassification"};
    family.config["id2label"] = {{"0", "no"}, {"1", "yes"}, {"2", "maybe"}};
    family.extras.mlm_head = false;
    family.extras.classifier =
        ClassifierHead{.activation = row.activation, .labels = {"no", "yes", "maybe"}};
    if (model_type == "roformer") {  // its head has the encoder's activation
      family.config["hidden_act"] = "relu";
      family.meaning.activation = Activation::kRelu;
    }
    if (model_type == "modernbert" || model_type == "eurobert") {
      family.config["classifier_pooling"] = "mean";
      family.extras.classifier->pooling = PoolingMode::kMean;
    }
    family.extras.classifier_norm = model_type == "modernbert";
    family.names["classifier.norm"] = "head.norm";
    family.names["classifier.dense"] = row.dense;
    family.names["classifier.out"] = row.out;
  }
  return all;
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
    std::vector<float> values = tensor.to_float();
    if (family.norms_less_one && parameter.module.ends_with("norm")) {
      for (float& value : values) value -= 1;  // exact from 0.5 to 2
    }
    const TestTensor written = {.name = name + "." + std::string(parameter.leaf),
                                .shape = tensor.shape,
                                .bytes = float_bytes(values)};
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

std::vector<TestTensor> tensors_of(const FamilyCase& family) {
  return tensors_of(family, *random_model(family.meaning, 5, family.extras));
}

}  // namespace phasor
