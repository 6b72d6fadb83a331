// The different names of a size in config.json; those of positions are in position_keys.cc.
#include "models/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "files/config_reader.h"
#include "files/files.h"
#include "files/refuse.h"
#include "models/config_keys.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 17;
constexpr int64_t kMaxLayers = 1000;

/// `name` is the value of `key` or a part of it.
Activation activation_of(const ConfigReader& reader, std::string_view key, std::string_view name) {
  constexpr std::pair<std::string_view, Activation> kOtherNames[] = {
      {"gelu_python", Activation::kGeluErf},
      {"geglu", Activation::kGeluErf},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"gelu_accurate", Activation::kGeluTanh},
      {"gelu_python_tanh", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"swish", Activation::kSilu},
      {"swiglu", Activation::kSilu}};
  const auto& all = phasor::names<Activation>().all;
  std::vector<std::string_view> known(all.begin(), all.end());
  if (std::ranges::find(known, name) != known.end()) return parse<Activation>(name);
  for (const auto& [other, activation] : kOtherNames) {
    if (other == name) return activation;
    known.push_back(other);
  }
  reader.refuse(key, "one of: {}", fmt::join(known, ", "));
}

void read_activation(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  config.activation = family.default_activation;
  config.gated_mlp = family.default_gate;
  reader.agree({"activation_function", "hidden_act", "hidden_activation", "activation"});
  for (const std::string_view key :
       {"activation_function", "hidden_act", "hidden_activation", "activation"}) {
    if (!reader.has(key)) continue;
    config.activation = activation_of(reader, key, reader.text({key}));
    return;
  }
  // T5's names: "relu", or "gated-gelu", where gelu always means the tanh approximation.
  constexpr std::string_view kKey = "feed_forward_proj", kGated = "gated-";
  if (reader.has(kKey)) {
    std::string name = reader.text({kKey});
    config.gated_mlp = name.starts_with(kGated);
    if (config.gated_mlp) name.erase(0, kGated.size());
    const bool gated_gelu = config.gated_mlp && name == "gelu";
    config.activation = gated_gelu ? Activation::kGeluTanh : activation_of(reader, kKey, name);
  }
  // Transformers also writes the values derived from it, and reads those.
  constexpr std::string_view kActivation = "dense_act_fn";
  if (reader.has(kActivation)) {
    config.activation = activation_of(reader, kActivation, reader.text({kActivation}));
  }
  config.gated_mlp = reader.boolean({"is_gated_act"}, config.gated_mlp);
  if (config.gated_mlp != family.default_gate && !family.gate_by_key) {
    reader.unsupported(reader.has("is_gated_act") ? "is_gated_act" : kKey,
                       "absent: the MLP of {} models is {}gated", family.model_type,
                       family.default_gate ? "" : "not ");
  }
}

void read_sizes(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  // The encoder's own keys alone count beside a decoder: num_hidden_layers may include it.
  const auto read = [&](std::string_view of_encoder, ConfigReader::Keys keys, int64_t most) {
    if (family.has_decoder && reader.has(of_encoder)) return reader.integer({of_encoder}, 1, most);
    reader.agree(keys);
    return reader.integer(keys, 1, most);
  };
  config.d_model = read("d_model", {"d_model", "hidden_size", "dim", "n_embd"}, kMaxWidth);
  config.d_ff = read("encoder_ffn_dim", {"intermediate_size", "d_ff", "hidden_dim", "n_inner"},
                     8 * kMaxWidth);
  config.num_layers = read("encoder_layers",
                           {"num_hidden_layers", "num_layers", "n_layers", "n_layer"}, kMaxLayers);
  config.num_heads =
      read("encoder_attention_heads", {"num_attention_heads", "num_heads", "n_heads", "n_head"},
           config.d_model);
  config.vocab_size = reader.integer({"vocab_size"}, 1, kMaxRows);
  const int64_t multiple = reader.integer({"pad_vocab_size_multiple"}, 1, kMaxWidth, 1);
  config.vocab_size = (config.vocab_size + multiple - 1) / multiple * multiple;
  if (family.spelled_out) config.d_head = reader.integer({"d_head"}, 0, kMaxWidth, 0);
  if (family.default_d_head > 0) {
    config.d_head = reader.integer({"d_kv"}, 1, kMaxWidth, family.default_d_head);
  }
  if (family.sets_head_dim) config.d_head = reader.integer({"head_dim"}, 1, kMaxWidth, 0);
  if (family.groups_queries) {
    config.num_kv_heads = reader.integer({"num_key_value_heads"}, 1, kMaxWidth, config.num_heads);
  }
  if (family.rotary && !family.sets_head_dim && reader.has("head_dim")) {
    const int64_t width = config.d_model / config.num_heads;
    if (reader.integer({"head_dim"}, 1, kMaxWidth) != width) {
      reader.unsupported("head_dim", "{}, the width over the number of heads", width);
    }
  }
  if (config.d_head == 0 && config.d_model % config.num_heads != 0) {
    reader.fail("the width of {} is not a multiple of the {} attention heads", config.d_model,
                config.num_heads);
  }
}

/// Values from the family's row, for the families of Transformers.
void read_by_row(const ConfigReader& reader, const Family& family, ModelConfig& config) {
  config.norm_order = family.norm_order;
  config.norm = family.norm;
  config.linear_bias = family.linear_bias;
  config.scale_scores = family.scale_scores;
  config.qk_norm = family.qk_norm;
  config.branch_norms = family.branch_norms;
  if (family.scores_by_keys) {
    config.score_width = reader.number({"query_pre_attn_scalar"}, 1e-6, 1e9, 256.0);
    config.score_cap = reader.number({"attn_logit_softcapping"}, 1e-6, 1e9, 0.0);
  }
  if (family.causal) {
    config.causal = reader.boolean({"is_causal"}, true) &&
                    !reader.boolean({"use_bidirectional_attention"}, false);
  }
  if (config.causal && family.encoders_only) {
    reader.unsupported("use_bidirectional_attention",
                       "true: without it, this is a decoder, which writes text");
  }
  if (family.embedding_map != EmbeddingMap::kNever) {
    config.d_embedding =
        reader.integer({"embedding_size"}, 1, kMaxWidth, family.default_embedding_size);
    if (config.d_embedding == 0) config.d_embedding = config.d_model;
  }
  if (family.embedding_map == EmbeddingMap::kIfWidthsDiffer &&
      config.d_embedding == config.d_model) {
    config.d_embedding = 0;
  }
  if (family.layer_groups) {
    config.num_layer_groups = reader.integer({"num_hidden_groups"}, 1, config.num_layers, 1);
  }
  config.embedding_norm = family.embedding_norm;
  config.final_norm = family.final_norm;
  if (family.scale_embedding && reader.boolean({"scale_embedding"}, family.scale_embedding)) {
    config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.d_model)));
  }

  config.first_attn_norm = family.first_attn_norm;
  read_positions(reader, family, config);
}

/// id2label's names, by their numbers; empty if it is missing.
std::vector<std::string> read_labels(const ConfigReader& reader) {
  constexpr std::string_view kKey = "id2label";
  if (!reader.has(kKey)) return {};
  constexpr size_t kMostBytes = 1024;
  const ConfigReader names = reader.object(kKey);
  std::vector<std::string> labels(names.keys().size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const std::string number = std::to_string(i);
    if (!names.has(number))
      reader.refuse(kKey, "an object of names for 0 to {}", labels.size() - 1);
    labels[i] = names.text({number});
    if (labels[i].size() > kMostBytes) {
      reader.refuse(kKey, "an object of names of at most {} bytes; that of {} has {}", kMostBytes,
                    number, labels[i].size());
    }
  }
  if (labels.empty()) reader.refuse(kKey, R"(an object of names, like {{"0": "LABEL_0"}})");
  return labels;
}

/// The function from logits to probabilities, if it is in sentence-transformers' own file, or in
/// config.json under its new or old name.
std::optional<ClassifierHead::Output> read_output(const ConfigReader& reader, ModelFolder& folder,
                                                  std::vector<std::string>& notes) {
  using Output = ClassifierHead::Output;
  constexpr std::string_view kKey = "activation_fn";
  constexpr std::pair<std::string_view, Output> kFunctions[] = {{".Identity", Output::kIdentity},
                                                                {".Sigmoid", Output::kSigmoid},
                                                                {".Softmax", Output::kSoftmax},
                                                                {".Tanh", Output::kTanh}};
  std::string function = folder.object(kSentenceConfig).text({kKey}, "");  // a class of torch
  if (function.empty() && reader.has("sentence_transformers")) {
    function = reader.object("sentence_transformers").text({kKey}, "");
  }
  if (function.empty()) function = reader.text({"sbert_ce_default_activation_function"}, "");
  if (function.starts_with("torch.")) {
    for (const auto& [name, output] : kFunctions) {
      if (function.ends_with(name)) return output;
    }
    refuse<ModelError>(
        ErrorCode::kUnsupported,
        "{}: activation_fn is {}; it must be torch's Identity, Sigmoid, Softmax or Tanh",
        folder.path().string(), value_text(function));
  }
  if (!function.empty()) {
    notes.push_back(
        fmt::format("the activation_fn {} is Python code of the model's own, which is "
                    "not run",
                    value_text(function)));
  }
  const std::string type = reader.text({"problem_type"}, "");
  if (type == "regression") return Output::kIdentity;
  if (type == "multi_label_classification") return Output::kSigmoid;
  return {};
}

/// A fault here disables the head, not the encoder.
void read_classifier(const ConfigReader& reader, ModelFolder& folder, const Family& family,
                     CheckpointConfig& checkpoint) {
  ClassifierHead& head = checkpoint.classifier;
  head.activation = family.classifier_activation.value_or(checkpoint.config.activation);
  try {
    const std::vector<std::string> architectures = reader.texts({"architectures"});
    const auto names = [&](std::string_view task) {
      return std::ranges::any_of(architectures,
                                 [task](const std::string& name) { return name.ends_with(task); });
    };
    const bool classifies = names("ForSequenceClassification");
    checkpoint.labels_tokens = !classifies && names("ForTokenClassification");
    if (!architectures.empty() && !classifies && !checkpoint.labels_tokens) {
      reader.refuse("architectures",
                    "one that ends in ForSequenceClassification or ForTokenClassification");
    }
    const std::string_view key = family.classifier_activation_key;
    if (!key.empty() && reader.has(key)) {
      head.activation = activation_of(reader, key, reader.text({key}));
    }
    if (family.pools_by_key) {
      const std::string pooling =
          reader.text({"classifier_pooling"}, std::string(family.default_pooling));
      head.mean_of_logits = pooling == "late";
      if (pooling != "cls" && pooling != "bos" && pooling != "mean" && pooling != "late")
        reader.unsupported("classifier_pooling", "one of: cls, bos, mean, late");
      head.pooling = pooling == "mean" ? PoolingMode::kMean : PoolingMode::kCls;
    }
    head.labels = read_labels(reader);
    checkpoint.classifier_output = read_output(reader, folder, checkpoint.notes);
  } catch (const ModelError& error) {
    checkpoint.classifier_problem = error.what();
  }
}

/// phasor's own type, whose config.json states everything.
void read_spelled_out(const ConfigReader& reader, CheckpointConfig& checkpoint) {
  ModelConfig& config = checkpoint.config;
  config.norm_order = reader.choice("norm_order", {NormOrder::kPostNorm, NormOrder::kPreNorm});
  config.embedding_scale = static_cast<float>(reader.number({"embedding_scale"}, 1e-9, 1e9, 1.0));
  config.embedding_norm = reader.boolean({"embedding_norm"}, false);
  config.final_norm = reader.boolean({"final_norm"}, false);
  config.max_positions = reader.integer({"max_positions"}, 0, kMaxRows, 0);
  config.norm =
      reader.choice<NormKind>("norm", {NormKind::kLayerNorm, NormKind::kRmsNorm}, config.norm);
  config.d_embedding = reader.integer({"d_embedding"}, 0, kMaxWidth, 0);
  config.num_layer_groups = reader.integer({"num_layer_groups"}, 0, config.num_layers, 0);
  config.gated_mlp = reader.boolean({"gated_mlp"}, false);
  config.linear_bias = reader.boolean({"linear_bias"}, true);
  config.scale_scores = reader.boolean({"scale_scores"}, true);
  checkpoint.needs_mlm_head = reader.boolean({"mlm_head"}, false);
  config.position = read_position(reader.object("position"));
  if (config.position.kind == PositionKind::kLearned && config.max_positions == 0)
    reader.refuse("max_positions", "at least 1 where positions are learned");
}

}  // namespace

CheckpointConfig read_model_config(ModelFolder& folder) {
  const ConfigReader outer = folder.object("config.json");
  CheckpointConfig checkpoint;
  const Family& family = family_of(outer);
  const ConfigReader reader = family.inner.empty() ? outer : outer.object(family.inner);
  refuse_other_architectures(reader, family);
  checkpoint.family = &family;
  ModelConfig& config = checkpoint.config;
  config.family = family.model_type;
  read_sizes(reader, family, config);
  read_activation(reader, family, config);
  config.norm_eps = static_cast<float>(family.default_eps);
  if (!family.fixed_eps) {
    config.norm_eps = static_cast<float>(
        reader.number({family.eps_key, "layer_norm_eps"}, 1e-30, 1.0, family.default_eps));
  }
  checkpoint.head_activation = family.head_activation.value_or(config.activation);
  if (family.spelled_out) {
    read_spelled_out(reader, checkpoint);
  } else {
    read_by_row(reader, family, config);
    checkpoint.needs_token_types =
        family.needs_token_types && reader.integer({"type_vocab_size"}, 0, kMaxRows, 1) > 0;
    checkpoint.ties_decoder = reader.boolean({"tie_word_embeddings"}, true);
    read_classifier(reader, folder, family, checkpoint);
    if (reader.has("auto_map") &&
        (family.code.empty() ||
         reader.value("auto_map")->dump().find(family.code) == std::string::npos)) {
      checkpoint.notes.push_back(
          fmt::format("config.json names Python code of the model's own (auto_map), which is not "
                      "run: what is computed is a plain {}",
                      family.model_type));
    }
  }
  try {
    validate(config);
  } catch (const InvalidArgument& error) {
    reader.fail("{}", error.what());
  }
  return checkpoint;
}

}  // namespace phasor::internal
