#include "models/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "models/files.h"
#include "models/position_keys.h"

namespace phasor::internal {
namespace {

/// Types of decoders, which users often try.
constexpr std::string_view kDecoders[] = {
    "bloom",   "codegen", "cohere",  "dbrx",     "deepseek_v2", "deepseek_v3", "falcon",
    "gemma",   "gemma2",  "gemma3",  "gpt2",     "gpt_bigcode", "gpt_neo",     "gpt_neox",
    "gpt_oss", "gptj",    "granite", "internlm", "llama",       "llama4",      "mamba",
    "mistral", "mixtral", "mpt",     "olmo",     "opt",         "phi",         "phi3",
    "qwen",    "qwen2",   "qwen3",   "rwkv",     "stablelm",    "starcoder2",  "xglm"};

/// In every family; null means that the key must not be set.
constexpr FixedKey kEverywhere[] = {{"is_decoder", "false"},
                                    {"pruned_heads", "{}"},
                                    {"quantization_config", "null"},
                                    {"sliding_window", "null"}};

constexpr const char* kPositionType = "position_embedding_type";

/// Prefixes of keys about positions, which phasor follows in some families only. Encoders with
/// custom code keep the model_type of the family they derive from.
constexpr std::string_view kOtherPositions[] = {"alibi", "relative_key", "rope", "rotary"};

/// The keys that models/model_config.cc reads for some family.
constexpr std::string_view kRead[] = {"activation",
                                      "activation_function",
                                      "architectures",
                                      "classifier_activation",
                                      "classifier_pooling",
                                      "d_ff",
                                      "d_kv",
                                      "d_model",
                                      "dense_act_fn",
                                      "dim",
                                      "embedding_size",
                                      "encoder_attention_heads",
                                      "encoder_ffn_dim",
                                      "encoder_layers",
                                      "feed_forward_proj",
                                      "global_attn_every_n_layers",
                                      "global_rope_theta",
                                      "hidden_act",
                                      "hidden_activation",
                                      "hidden_dim",
                                      "hidden_size",
                                      "id2label",
                                      "intermediate_size",
                                      "is_gated_act",
                                      "layer_norm_eps",
                                      "layer_norm_epsilon",
                                      "layer_types",
                                      "local_attention",
                                      "local_rope_theta",
                                      "max_position_embeddings",
                                      "max_relative_positions",
                                      "max_trained_positions",
                                      "model_type",
                                      "n_embd",
                                      "n_head",
                                      "n_heads",
                                      "n_inner",
                                      "n_layer",
                                      "n_layers",
                                      "n_positions",
                                      "norm_eps",
                                      "norm_rel_ebd",
                                      "num_attention_heads",
                                      "num_heads",
                                      "num_hidden_groups",
                                      "num_hidden_layers",
                                      "num_layers",
                                      "pad_token_id",
                                      "pad_vocab_size_multiple",
                                      "partial_rotary_factor",
                                      "pooler_hidden_act",
                                      "pos_att_type",
                                      "position_biased_input",
                                      "position_buckets",
                                      "problem_type",
                                      "relative_attention",
                                      "relative_attention_max_distance",
                                      "relative_attention_num_buckets",
                                      "rope_parameters",
                                      "rope_scaling",
                                      "rope_theta",
                                      "rotary_emb_base",
                                      "rotary_emb_fraction",
                                      "rotary_emb_interleaved",
                                      "rotary_scaling_factor",
                                      "sbert_ce_default_activation_function",
                                      "scale_embedding",
                                      "sentence_transformers",
                                      "sinusoidal_pos_embds",
                                      "tie_word_embeddings",
                                      "type_vocab_size",
                                      "vocab_size"};

void check(const ConfigReader& reader, const FixedKey& fixed, const Family& family) {
  const nlohmann::json* const value = reader.value(fixed.key);
  if (value == nullptr || *value == *parse_json(fixed.value, fixed.key)) return;
  reader.refuse(fixed.key,
                fmt::format("{}: phasor implements nothing else for {} models",
                            fixed.value == "null" ? "absent" : fixed.value, family.model_type),
                ErrorCode::kUnsupported);
}

bool asks_for_nothing(const nlohmann::json& value) {
  return value.is_null() || value == false || value == 0;
}

}  // namespace

const Family& family_of(const ConfigReader& reader) {
  std::vector<std::string_view> known;
  for (const Family& row : families()) {
    if (known.empty() || known.back() != row.model_type) known.push_back(row.model_type);
  }
  const std::string allowed = fmt::format("one of: {}", fmt::join(known, ", "));
  if (!reader.has("model_type")) {
    reader.refuse("model_type",
                  allowed + R"(. Old files lack it: add a line like "model_type": "bert",)");
  }
  const std::string model_type = reader.text({"model_type"});
  const nlohmann::json* const positions = reader.value(kPositionType);
  const Family* const family =
      find_family(model_type, positions == nullptr ? "\"absolute\"" : positions->dump());
  if (family != nullptr) return *family;
  if (std::find(std::begin(kDecoders), std::end(kDecoders), model_type) != std::end(kDecoders)) {
    reader.refuse("model_type",
                  fmt::format("{}. This one is a decoder, which writes text, and phasor runs "
                              "encoders; for decoders there are llama.cpp and Transformers",
                              allowed),
                  ErrorCode::kUnsupported);
  }
  const std::string version = reader.text({"transformers_version"}, "");
  reader.refuse("model_type",
                version.empty() ? allowed
                                : fmt::format("{}. The file is from Transformers {}; a later "
                                              "phasor may know this type",
                                              allowed, version),
                ErrorCode::kUnsupported);
}

void refuse_other_architectures(const ConfigReader& reader, const Family& family) {
  for (const FixedKey& fixed : kEverywhere) check(reader, fixed, family);
  for (const FixedKey& fixed : family.fixed_keys) check(reader, fixed, family);
  check(reader, {kPositionType, family.position_embedding_type}, family);
  for (const std::string& key : reader.keys_besides({})) {
    const bool other =
        std::any_of(std::begin(kOtherPositions), std::end(kOtherPositions),
                    [&](std::string_view beginning) { return key.starts_with(beginning); });
    if (!other || (family.rotary && is_rotary_key(key))) continue;
    const nlohmann::json* const value = reader.value(key);
    if (value != nullptr && !asks_for_nothing(*value)) {
      reader.refuse(key, "absent: phasor implements no such positions", ErrorCode::kUnsupported);
    }
  }
}

std::vector<std::string> unread_keys(const ConfigReader& reader, const Family& family) {
  std::vector<std::string_view> known(std::begin(kRead), std::end(kRead));
  for (const FixedKey& fixed : kEverywhere) known.push_back(fixed.key);
  for (const FixedKey& fixed : family.fixed_keys) known.push_back(fixed.key);
  known.emplace_back(kPositionType);
  return reader.keys_besides(known);
}

}  // namespace phasor::internal
