#include "phasor/model_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "files/json_writer.h"
#include "phasor/errors.h"

namespace phasor {
namespace internal {
namespace {

/// An object that `write` writes, or the problem with the model's files.
template <typename Write>
void member_of_files(const char* name, JsonWriter& json, const Write& write) {
  JsonWriter member;
  try {
    member.object([&] { write(member); });
  } catch (const ModelError& error) {
    member = JsonWriter();
    member.object("problem", error.what());
  }
  json.key(name).raw(member.take());
}

void write_rotary(const RotaryConfig& rotary, int64_t head_dim, JsonWriter& json) {
  json.key("rotary").object([&] {
    json.member("base", rotary.base, "columns", rotary.dims > 0 ? rotary.dims : head_dim,
                "interleaved", rotary.interleaved);
    if (rotary.factor != 1) json.member("factor", rotary.factor);
    if (rotary.ntk_length == 0) return;
    json.member("ntk_factor", rotary.ntk_factor, "ntk_length", rotary.ntk_length);
  });
}

void write_disentangled(const DisentangledConfig& terms, JsonWriter& json) {
  json.key("disentangled").object([&] {
    json.member("content_to_position", terms.content_to_position, "position_to_content",
                terms.position_to_content, "buckets", terms.num_buckets);
    if (terms.max_distance > 0) json.member("max_distance", terms.max_distance);
  });
}

/// Layers that see only a part of the text, counted from 1.
void write_local_layers(const ModelConfig& config, JsonWriter& json) {
  std::vector<int64_t> layers;
  for (int64_t layer = 0; layer < std::ssize(config.layer_attention); ++layer) {
    if (config.window(layer) > 0) layers.push_back(layer + 1);
  }
  if (layers.empty()) return;
  json.key("local_attention").object([&] {
    const int64_t last = layers.back() - 1;
    json.member("tokens_each_side", config.window(last));
    if (config.position.rotary) json.member("rotary_base", config.rotary_base(last));
    json.member("layers", layers);
  });
}

void write_positions(const Model& model, JsonWriter& json) {
  const PositionConfig& position = model.config().position;
  const Tensor& table = model.weights().position_table;
  const bool added = position.kind != PositionKind::kNone;
  const int64_t rows = table.present() ? table.shape.at(0) : 0;
  const int64_t trained = model.config().max_positions;
  std::vector<std::string_view> kinds;
  if (added) kinds.push_back(to_string(position.kind));
  if (position.bias != ScoreBias::kNone) kinds.emplace_back("bias");
  if (position.rotary) kinds.emplace_back("rotary");
  if (position.disentangled) kinds.emplace_back("disentangled");
  json.member("kind", kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " + ")));
  if (position.kind == PositionKind::kSinusoidal) {
    json.member("layout", to_string(position.layout), "base", position.base);
  }
  if (position.bias != ScoreBias::kNone) json.member("bias", to_string(position.bias));
  if (position.bias == ScoreBias::kBuckets) {
    json.member("buckets", position.num_buckets, "max_distance", position.max_distance);
  }
  if (position.rotary) write_rotary(*position.rotary, model.config().head_dim(), json);
  if (position.disentangled) write_disentangled(*position.disentangled, json);
  write_local_layers(model.config(), json);
  if (added) json.member("first_position", position.first_position);
  if (rows > 0) {
    json.member("table_rows", rows, "usable_positions", rows - position.first_position);
  }
  if (trained > 0) json.member("trained_length", trained);
}

/// The special tokens round a text: "[CLS] … [SEP]".
std::string frame_of(const Tokenizer& tokenizer) {
  const std::vector<std::string> pieces = tokenizer.encode("a").pieces;
  std::vector<std::string> special;
  try {
    special = tokenizer.encode("").pieces;
  } catch (const InvalidArgument&) {  // there are none
  }
  const auto before = std::ranges::mismatch(special, pieces).in1;
  std::vector<std::string> frame(special.begin(), before);
  frame.emplace_back("…");
  frame.insert(frame.end(), before, special.end());
  return fmt::format("{}", fmt::join(frame, " "));
}

/// How texts are prepared for vectors and for a classification head.
void write_text(const TextConfig& text, JsonWriter& json) {
  if (text.max_tokens > 0) json.member("max_tokens", text.max_tokens);
  json.member("special_tokens", text.special_tokens);
  if (!text.prompt.empty()) json.member("prompt", text.prompt);
  if (!text.prompts.empty()) json.member("prompts", text.prompts);
  if (text.query_prompt()) json.member("query_prompt", text.query_prompt());
  if (text.document_prompt()) json.member("document_prompt", text.document_prompt());
}

void write_sentence(const Model& model, JsonWriter& json) {
  const SentenceConfig& sentence = model.sentence();
  json.member("pooling", to_string(sentence.pooling), "width",
              sentence.pooling.width(model.config().d_model), "similarity",
              to_string(sentence.similarity), "source",
              sentence.source.empty() ? "default" : sentence.source);
}

void write_sparse(const Model& model, JsonWriter& json) {
  if (!model.has_sparse()) return json.member("sparse", false);
  const SparseConfig& sparse = model.sparse();
  const bool of_tokens = sparse.kind == SparseConfig::Kind::kTokens;
  json.key("sparse").object("of", of_tokens ? "tokens" : "vocabulary", "pooling",
                            of_tokens || !sparse.sum ? "max" : "sum", "similarity",
                            to_string(sparse.similarity), "looks_up_queries",
                            !sparse.query_weights.empty(), "source", sparse.source);
}

void write_token_vectors(const Model& model, JsonWriter& json) {
  if (!model.has_token_vectors()) return json.member("token_vectors", false);
  const TokenVectorConfig& config = model.token_vectors();
  json.key("token_vectors").object([&] {
    json.member("width", config.width(), "similarity", config.mean ? "meanmaxsim" : "maxsim");
    if (config.expansion) json.member("query_tokens", config.expansion->length);
    json.member("source", config.source);
  });
}

void write_classifier(const Weights& weights, JsonWriter& json) {
  const auto& of_tokens = weights.token_classifier;
  if (!of_tokens && !weights.classifier) return json.member("classifier", false);
  json.key("classifier").object([&] {
    if (of_tokens) {
      json.member("labels", of_tokens->labels);
      return json.member("of", "tokens");
    }
    const ClassifierHead& head = *weights.classifier;
    json.member("labels", head.labels, "pooling",
                head.mean_of_logits ? "late" : to_string(head.pooling));
    if (head.dense.weight.present()) json.member("activation", to_string(head.activation));
    json.member("output", to_string(head.output));
  });
}

/// Bytes of the used tensors by dtype.
std::map<std::string, int64_t> disk(const Model& model) {
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : model.parameters()) {
    bytes[fmt::format("{}_bytes", to_string(tensor.dtype))] += tensor.num_bytes();
  }
  return bytes;
}

void write_architecture(const Model& model, JsonWriter& json) {
  const ModelConfig& config = model.config();
  json.key("sizes").object([&] {
    json.member("layers", config.num_layers);
    if (config.num_layer_groups > 0) json.member("layer_groups", config.num_layer_groups);
    json.member("d_model", config.d_model, "heads", config.num_heads, "head_dim", config.head_dim(),
                "d_ff", config.d_ff, "vocabulary", config.vocab_size);
  });
  json.key("embedding").object("width", config.embedding_width(), "scale", config.embedding_scale);
  json.key("norm").object("order", to_string(config.norm_order), "kind", to_string(config.norm),
                          "eps", config.norm_eps, "after_embedding", config.embedding_norm,
                          "at_end", config.final_norm);
  json.key("linear").object("bias", model.weights().blocks.front().q.bias.present(),
                            "scaled_scores", config.scale_scores);
  json.key("attention")
      .object("kv_heads", config.kv_heads(), "causal", config.causal, "qk_norm", config.qk_norm,
              "branch_norms", config.branch_norms, "score_cap", config.score_cap);
  json.key("mlp").object("activation", to_string(config.activation), "gated", config.gated_mlp);
  json.key("position").object([&] { write_positions(model, json); });
}

void write_model(const Model& model, JsonWriter& json) {
  json.member("folder", model.folder().string(), "family", model.config().family);
  write_architecture(model, json);
  member_of_files("tokenizer", json, [&](JsonWriter& member) {
    const Tokenizer& tokenizer = model.tokenizer();
    member.member("kind", tokenizer.description(), "frame", frame_of(tokenizer));
  });
  member_of_files("text", json, [&](JsonWriter& member) { write_text(model.text(), member); });
  member_of_files("sentence", json, [&](JsonWriter& member) { write_sentence(model, member); });
  write_sparse(model, json);
  write_token_vectors(model, json);
  json.member("mlm_head", model.weights().mlm_head.has_value());
  write_classifier(model.weights(), json);
  json.member("parameters", model.num_parameters(), "disk", disk(model));
  json.key("memory").object([&] {  // embeddings are read from the mapped file as needed
    json.member("mapped_bytes", model.weights().token_embedding.num_bytes() +
                                    model.weights().position_table.num_bytes());
  });
  json.member("unused_tensors", model.unused_tensors(), "unused_keys", model.unused_keys(), "notes",
              model.notes());
}

}  // namespace
}  // namespace internal

std::string model_info(const Model& model) {
  internal::JsonWriter json;
  json.object([&] { internal::write_model(model, json); });
  return json.take();
}

}  // namespace phasor
