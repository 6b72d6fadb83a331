#include <algorithm>
#include <cmath>

#include "models/config_keys.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMaxDistance = 4096;       // of a bias: a head has one for each distance
constexpr int64_t kMaxFirstPosition = 1024;  // of sinusoids, which are computed from 0 on
constexpr double kMaxBase = 1e30;

constexpr std::string_view kRotaryKeys[] = {
    "rope_parameters",        "rope_scaling",          "rope_theta",
    "rope_local_base_freq",   "rotary_emb_base",       "rotary_emb_fraction",
    "rotary_emb_interleaved", "rotary_scaling_factor", "rotary_value"};

void read_vectors(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  PositionConfig& position = config.position;
  const int64_t pad =
      reader.integer({"pad_token_id"}, 0, config.vocab_size - 1, family.default_pad);
  position.layout = family.layout;
  if (!family.sinusoidal_if.empty() && reader.boolean({family.sinusoidal_if}, false)) {
    position.kind = PositionKind::kSinusoidal;
  }
  if (family.first_position == FirstPosition::kTwo) position.first_position = 2;
  if (family.first_position == FirstPosition::kAfterPad) position.first_position = pad + 1;
  if (family.pad_is_uncounted) position.uncounted_token = static_cast<int32_t>(pad);
  const int64_t rows =
      reader.integer({"max_position_embeddings"}, 1, kMaxRows) + family.rows_beyond_maximum;
  config.max_positions = rows - position.first_position;
  if (config.max_positions < 1)
    reader.fail("{} position rows leave none after the first, {}", rows, position.first_position);
}

/// The part of a head's columns that turn; 0 stands for all.
int64_t turned_columns(const ConfigReader& reader, std::string_view key,
                       const ModelConfig& config) {
  const double fraction = reader.number({key}, 0.0, 1.0, 1.0);
  const auto columns = static_cast<int64_t>(fraction * static_cast<double>(config.head_dim()));
  if (columns == 0) reader.refuse(key, "a part of a head that has at least 2 columns");
  return columns == config.head_dim() ? 0 : columns;
}

/// Transformers' rope_scaling (old) or rope_parameters (new), and the type "ntk" of GTE's code.
void read_scaling(const ConfigReader& reader, const ModelConfig& config, RotaryConfig& rotary) {
  rotary.base = reader.number({"rope_theta"}, 1.0, kMaxBase, rotary.base);
  if (reader.has("partial_rotary_factor")) {
    rotary.dims = turned_columns(reader, "partial_rotary_factor", config);
  }
  const std::string type = reader.text({"rope_type", "type"}, "default");
  if (type == "default") return;
  const double factor = reader.number({"factor"}, 1e-6, 1e6);
  if (type == "linear") {
    rotary.factor = 1 / factor;
  } else if (type == "dynamic") {
    rotary.ntk_factor = factor;
    rotary.ntk_length =
        reader.integer({"original_max_position_embeddings"}, 1, kMaxRows, config.max_positions);
  } else if (type == "ntk") {
    const auto dims = static_cast<double>(rotary.dims > 0 ? rotary.dims : config.head_dim());
    rotary.base *= factor;
    rotary.factor = std::pow(factor, -2 / dims);
    if (reader.has("mixed_b")) {
      reader.unsupported("mixed_b", "absent: phasor implements NTK scaling without it");
    }
  } else {
    reader.unsupported(reader.has("rope_type") ? "rope_type" : "type",
                       "one of: default, linear, dynamic, ntk");
  }
}

void read_rotary(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  RotaryConfig& rotary = config.position.rotary.emplace(*family.rotary);
  rotary.base = reader.number({"rope_theta", "rotary_emb_base"}, 1.0, kMaxBase, rotary.base);
  rotary.interleaved = reader.boolean({"rotary_emb_interleaved"}, rotary.interleaved);
  constexpr std::string_view kPart = "partial_rotary_factor";
  rotary.dims = turned_columns(reader, reader.has(kPart) ? kPart : "rotary_emb_fraction", config);
  if (reader.has("rotary_scaling_factor")) {
    rotary.ntk_factor = reader.number({"rotary_scaling_factor"}, 0.0, 1e6);
    rotary.ntk_length = reader.integer({"max_trained_positions"}, 1, kMaxRows, 2048);
  }
  if (family.local) return;
  const nlohmann::json *const now = reader.value("rope_parameters"), *const before = reader.value(
                                                                         "rope_scaling");
  if (now != nullptr && before != nullptr && *now != *before)
    reader.refuse("rope_scaling", "absent where rope_parameters is there, or the same");
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (!reader.has(key)) continue;
    return read_scaling(reader.object(key), config, rotary);
  }
}

void refuse_scaling(const ConfigReader& reader) {
  for (const std::string_view key : {"rope_type", "type"}) {
    if (reader.text({key}, "default") == "default") continue;
    reader.unsupported(key, "\"default\": phasor scales no rotation in this family");
  }
  if (reader.number({"partial_rotary_factor"}, 0.0, 1.0, 1.0) != 1) {
    reader.unsupported("partial_rotary_factor", "1: phasor turns whole heads in this family");
  }
}

/// Global layers, which see all keys, and local ones, each kind with its own base.
void read_layers(const ConfigReader& reader, const LocalLayers& family, ModelConfig& config) {
  constexpr std::string_view kGlobal = "full_attention", kLocal = "sliding_attention";
  const auto base_of = [&](std::string_view kind, std::string_view old_key, double fallback) {
    const double base = reader.number({old_key, family.other_base_key}, 1.0, kMaxBase, fallback);
    if (!reader.has("rope_parameters")) return base;
    const ConfigReader both = reader.object("rope_parameters");
    refuse_scaling(both);
    if (!both.has(kind)) return both.number({"rope_theta"}, 1.0, kMaxBase, base);
    const ConfigReader own = both.object(kind);
    refuse_scaling(own);
    return own.number({"rope_theta"}, 1.0, kMaxBase, base);
  };
  const double local_base = base_of(kLocal, family.local_base_key, family.default_local_base);
  config.position.rotary->base =
      base_of(kGlobal, family.global_base_key, family.default_global_base);
  const int64_t window =
      reader.integer({family.window_key}, family.divisor, kMaxRows, family.default_window) /
      family.divisor;
  const int64_t every = reader.integer({family.period_key}, 1, kMaxRows, family.default_period);
  const std::vector<std::string> types = reader.texts({"layer_types"});
  if (!types.empty() && std::ssize(types) != config.num_layers)
    reader.fail("layer_types names {} layers of {}", types.size(), config.num_layers);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    bool local = layer % every != (family.global_first ? 0 : every - 1);
    if (!types.empty()) {
      local = types[layer] == kLocal;
      if (!local && types[layer] != kGlobal) {
        reader.unsupported("layer_types", "a list of {} and {}", kGlobal, kLocal);
      }
    }
    config.layer_attention.push_back(local ? LayerAttention{window, local_base} : LayerAttention());
  }
}

/// Transformers writes layer_types for all families that share Llama's code.
void check_layer_types(const ConfigReader& reader, const Family& family) {
  if (!family.groups_queries) return;
  for (const std::string& type : reader.texts({"layer_types"})) {
    if (type != "full_attention")
      reader.unsupported("layer_types", "a list of full_attention in this family");
  }
}

/// A list, or a text like "c2p|p2c".
std::vector<std::string> attention_types(const ConfigReader& reader) {
  constexpr std::string_view kKey = "pos_att_type";
  const nlohmann::json* const value = reader.value(kKey);
  if (value == nullptr || !value->is_string()) return reader.texts({kKey});
  std::vector<std::string> types(1);
  for (const char c : reader.text({kKey})) {
    if (c == '|') types.emplace_back();
    if (c != '|' && c != ' ')
      types.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  std::erase(types, "");
  return types;
}

/// DeBERTa.
void read_disentangled(const ConfigReader& reader, ModelConfig& config) {
  if (!reader.boolean({"relative_attention"}, false)) {
    // Transformers then scales the scores as if these terms were there.
    if (!attention_types(reader).empty()) {
      reader.unsupported("pos_att_type", "empty where relative_attention is false");
    }
    return;
  }
  DisentangledConfig& terms = config.position.disentangled.emplace();
  terms.content_to_position = terms.position_to_content = false;
  for (const std::string& type : attention_types(reader)) {
    if (type != "c2p" && type != "p2c") {
      reader.unsupported("pos_att_type", "a list of c2p and p2c");
    }
    (type == "c2p" ? terms.content_to_position : terms.position_to_content) = true;
  }
  int64_t distance = reader.integer({"max_relative_positions"}, -1, kMaxDistance, -1);
  if (distance < 1) distance = reader.integer({"max_position_embeddings"}, 1, kMaxDistance);
  const int64_t buckets = reader.integer({"position_buckets"}, -1, kMaxDistance, -1);
  terms.num_buckets = buckets > 0 ? buckets : distance;
  terms.max_distance = buckets > 0 ? distance : 0;
  const std::string norm = reader.text({"norm_rel_ebd"}, "none");
  if (norm != "none" && norm != "layer_norm") {
    reader.unsupported("norm_rel_ebd", "\"none\" or \"layer_norm\"");
  }
  terms.norm = norm == "layer_norm";
}

}  // namespace

bool is_rotary_key(std::string_view key) {
  return std::ranges::find(kRotaryKeys, key) != std::end(kRotaryKeys);
}

void read_positions(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  PositionConfig& position = config.position;
  position.kind = family.position_kind;
  if (family.disentangled) {
    const bool added = reader.boolean({"position_biased_input"}, true);
    position.kind = added ? PositionKind::kLearned : PositionKind::kNone;
  }
  position.bias = family.bias;
  if (position.bias == ScoreBias::kBuckets) {
    position.num_buckets = reader.integer({"relative_attention_num_buckets"}, 4, kMaxDistance, 32);
    position.max_distance =
        reader.integer({"relative_attention_max_distance"}, 1, kMaxDistance, 128);
  }
  if (position.kind != PositionKind::kNone) {
    read_vectors(reader, family, config);
  } else if (position.bias != ScoreBias::kBuckets) {
    config.max_positions =
        reader.integer({"max_position_embeddings", "n_positions"}, 1, kMaxRows, 0);
  }
  if (family.rotary) read_rotary(reader, family, config);
  if (family.local) {
    read_layers(reader, *family.local, config);
  } else {
    check_layer_types(reader, family);
  }
  if (family.disentangled) read_disentangled(reader, config);
}

PositionConfig read_position(const ConfigReader& reader) {
  PositionConfig position;
  position.kind = reader.choice(
      "kind", {PositionKind::kSinusoidal, PositionKind::kLearned, PositionKind::kNone});
  position.bias = reader.choice<ScoreBias>(
      "bias", {ScoreBias::kNone, ScoreBias::kBuckets, ScoreBias::kAlibi}, position.bias);
  if (position.bias == ScoreBias::kBuckets) {
    position.num_buckets = reader.integer({"num_buckets"}, 4, kMaxDistance, position.num_buckets);
    position.max_distance =
        reader.integer({"max_distance"}, 1, kMaxDistance, position.max_distance);
  }
  if (position.kind == PositionKind::kSinusoidal) {
    position.layout = reader.choice(
        "layout", {SinusoidalLayout::kPaper, SinusoidalLayout::kMarian, SinusoidalLayout::kT2T,
                   SinusoidalLayout::kFairseq, SinusoidalLayout::kOpenNmt});
    position.base = reader.number({"base"}, 1.0, kMaxBase, 10000.0);
  }
  position.first_position = reader.integer({"first_position"}, 0, kMaxFirstPosition, 0);
  if (!reader.has("rotary")) return position;
  const ConfigReader keys = reader.object("rotary");
  RotaryConfig& rotary = position.rotary.emplace();
  rotary.base = keys.number({"base"}, 1.0, kMaxBase, rotary.base);
  rotary.dims = keys.integer({"dims"}, 0, kMaxRows, 0);
  rotary.interleaved = keys.boolean({"interleaved"}, false);
  return position;
}

}  // namespace phasor::internal
