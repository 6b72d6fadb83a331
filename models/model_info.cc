#include "models/model_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

/// The text of a JSON value; empty for null. Not nlohmann's values, whose destructors allocate, and
/// end the process where there is no memory.
class Json {
 public:
  Json(std::nullptr_t = nullptr) {}
  template <typename T>
  requires(std::is_arithmetic_v<T> || std::is_convertible_v<const T&, std::string_view>)
      Json(const T& value)
      : text_(
            nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) {}
  template <typename T>
  Json(const std::vector<T>& values) {
    for (const T& value : values) text_ += (text_.empty() ? "" : ",") + Json(value).text_;
    text_ = "[" + text_ + "]";
  }
  template <typename T>
  Json(const std::map<std::string, T>& members) {
    for (const auto& [name, value] : members) add(name, value);
    text_ = "{" + text_ + "}";
  }
  /// Members that are null are left out.
  Json(std::initializer_list<std::pair<std::string_view, Json>> members) {
    for (const auto& [name, value] : members) add(name, value);
    text_ = "{" + text_ + "}";
  }

  const std::string& text() const { return text_; }

 private:
  void add(std::string_view name, const Json& value) {
    if (value.text_.empty()) return;
    text_ += (text_.empty() ? "" : ",") + Json(name).text_ + ":" + value.text_;
  }

  std::string text_;
};

/// Null where a model does not have it: then it is left out.
template <typename T>
Json value_if(bool there, const T& value) {
  return there ? Json(value) : Json();
}

Json value_of(const std::optional<std::string>& value) { return value ? Json(*value) : Json(); }

/// 1e-12, not 9.99999996e-13.
double as_written(float value) {
  const std::string text = fmt::format("{}", value);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The result of make(), or the problem with the model's files.
template <typename Make>
Json described(Make make) {
  try {
    return make();
  } catch (const ModelError& error) {
    return {{"problem", error.what()}};
  }
}

Json rotary(const ModelConfig& config) {
  if (!config.position.rotary) return nullptr;
  const RotaryConfig& rotary = *config.position.rotary;
  const bool by_length = rotary.ntk_length > 0;
  return {{"base", rotary.base},
          {"columns", rotary.dims > 0 ? rotary.dims : config.head_dim()},
          {"interleaved", rotary.interleaved},
          {"factor", value_if(rotary.factor != 1, rotary.factor)},
          {"ntk_factor", value_if(by_length, rotary.ntk_factor)},
          {"ntk_length", value_if(by_length, rotary.ntk_length)}};
}

Json disentangled(const PositionConfig& position) {
  if (!position.disentangled) return nullptr;
  const DisentangledConfig& terms = *position.disentangled;
  return {{"content_to_position", terms.content_to_position},
          {"position_to_content", terms.position_to_content},
          {"buckets", terms.num_buckets},
          {"max_distance", value_if(terms.max_distance > 0, terms.max_distance)}};
}

/// Layers that see only a part of the text, counted from 1.
Json local_layers(const ModelConfig& config) {
  std::vector<int64_t> layers;
  Json window, base;
  for (int64_t layer = 0; layer < std::ssize(config.layer_attention); ++layer) {
    if (config.window(layer) == 0) continue;
    layers.push_back(layer + 1);
    window = config.window(layer);
    if (config.position.rotary) base = config.rotary_base(layer);
  }
  if (layers.empty()) return nullptr;
  return {{"tokens_each_side", window}, {"rotary_base", base}, {"layers", layers}};
}

Json positions(const Model& model) {
  const PositionConfig& position = model.config().position;
  const Tensor& table = model.weights().position_table;
  const bool sinusoidal = position.kind == PositionKind::kSinusoidal;
  const bool buckets = position.bias == ScoreBias::kBuckets;
  const bool added = position.kind != PositionKind::kNone;
  const int64_t rows = table.present() ? table.shape.at(0) : 0;
  const int64_t trained = model.config().max_positions;
  std::vector<std::string_view> kinds;
  if (added) kinds.push_back(to_string(position.kind));
  if (position.bias != ScoreBias::kNone) kinds.emplace_back("bias");
  if (position.rotary) kinds.emplace_back("rotary");
  if (position.disentangled) kinds.emplace_back("disentangled");
  return {{"kind", kinds.empty() ? "none" : fmt::format("{}", fmt::join(kinds, " + "))},
          {"layout", value_if(sinusoidal, to_string(position.layout))},
          {"base", value_if(sinusoidal, position.base)},
          {"bias", value_if(position.bias != ScoreBias::kNone, to_string(position.bias))},
          {"buckets", value_if(buckets, position.num_buckets)},
          {"max_distance", value_if(buckets, position.max_distance)},
          {"rotary", rotary(model.config())},
          {"disentangled", disentangled(position)},
          {"local_attention", local_layers(model.config())},
          {"first_position", value_if(added, position.first_position)},
          {"table_rows", value_if(rows > 0, rows)},
          {"usable_positions", value_if(rows > 0, rows - position.first_position)},
          {"trained_length", value_if(trained > 0, trained)}};
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
Json text(const Model& model) {
  const TextConfig& text = model.text();
  return {{"max_tokens", value_if(text.max_tokens > 0, text.max_tokens)},
          {"special_tokens", text.special_tokens},
          {"prompt", value_if(!text.prompt.empty(), text.prompt)},
          {"prompts", value_if(!text.prompts.empty(), text.prompts)},
          {"query_prompt", value_of(text.query_prompt())},
          {"document_prompt", value_of(text.document_prompt())}};
}

Json sentence(const Model& model) {
  const SentenceConfig& sentence = model.sentence();
  return {{"pooling", to_string(sentence.pooling)},
          {"width", sentence.pooling.width(model.config().d_model)},
          {"similarity", to_string(sentence.similarity)},
          {"source", sentence.source.empty() ? "default" : sentence.source}};
}

Json sparse(const Model& model) {
  if (!model.has_sparse()) return false;
  const SparseConfig& sparse = model.sparse();
  const bool of_tokens = sparse.kind == SparseConfig::Kind::kTokens;
  return {{"of", of_tokens ? "tokens" : "vocabulary"},
          {"pooling", of_tokens || !sparse.sum ? "max" : "sum"},
          {"similarity", to_string(sparse.similarity)},
          {"looks_up_queries", !sparse.query_weights.empty()},
          {"source", sparse.source}};
}

Json token_vectors(const Model& model) {
  if (!model.has_token_vectors()) return false;
  const TokenVectorConfig& config = model.token_vectors();
  return {{"width", config.width()},
          {"similarity", config.mean ? "meanmaxsim" : "maxsim"},
          {"query_tokens", config.expansion ? Json(config.expansion->length) : Json(nullptr)},
          {"source", config.source}};
}

Json classifier(const Model& model) {
  const auto& of_tokens = model.weights().token_classifier;
  if (of_tokens) return {{"labels", of_tokens->labels}, {"of", "tokens"}};
  if (!model.weights().classifier) return false;
  const ClassifierHead& head = *model.weights().classifier;
  const bool dense = head.dense.weight.present();
  return {{"labels", head.labels},
          {"pooling", head.mean_of_logits ? "late" : to_string(head.pooling)},
          {"activation", value_if(dense, to_string(head.activation))},
          {"output", to_string(head.output)}};
}

/// Bytes of the used tensors by dtype.
Json disk(const Model& model) {
  std::map<std::string, int64_t> bytes;
  for (const auto& [name, tensor] : model.parameters()) {
    bytes[fmt::format("{}_bytes", to_string(tensor.dtype))] += tensor.num_bytes();
  }
  return bytes;
}

}  // namespace

std::string model_info(const Model& model) {
  const ModelConfig& config = model.config();
  const Json json = {
      {"folder", model.folder().string()},
      {"family", config.family},
      {"sizes",
       {{"layers", config.num_layers},
        {"layer_groups", value_if(config.num_layer_groups > 0, config.num_layer_groups)},
        {"d_model", config.d_model},
        {"heads", config.num_heads},
        {"head_dim", config.head_dim()},
        {"d_ff", config.d_ff},
        {"vocabulary", config.vocab_size}}},
      {"embedding",
       {{"width", config.embedding_width()}, {"scale", as_written(config.embedding_scale)}}},
      {"norm",
       {{"order", to_string(config.norm_order)},
        {"kind", to_string(config.norm)},
        {"eps", as_written(config.norm_eps)},
        {"after_embedding", config.embedding_norm},
        {"at_end", config.final_norm}}},
      {"linear",
       {{"bias", model.weights().blocks.front().q.bias.present()},
        {"scaled_scores", config.scale_scores}}},
      {"attention",
       {{"kv_heads", config.kv_heads()},
        {"causal", config.causal},
        {"qk_norm", config.qk_norm},
        {"branch_norms", config.branch_norms},
        {"score_cap", config.score_cap}}},
      {"mlp", {{"activation", to_string(config.activation)}, {"gated", config.gated_mlp}}},
      {"position", positions(model)},
      {"tokenizer", described([&]() -> Json {
         const Tokenizer& tokenizer = model.tokenizer();
         return {{"kind", tokenizer.description()}, {"frame", frame_of(tokenizer)}};
       })},
      {"text", described([&] { return text(model); })},
      {"sentence", described([&] { return sentence(model); })},
      {"sparse", sparse(model)},
      {"token_vectors", token_vectors(model)},
      {"mlm_head", model.weights().mlm_head.has_value()},
      {"classifier", classifier(model)},
      {"parameters", model.num_parameters()},
      {"disk", disk(model)},
      {"memory",  // embeddings are read from the mapped file as needed
       {{"mapped_bytes", model.weights().token_embedding.num_bytes() +
                             model.weights().position_table.num_bytes()}}},
      {"unused_tensors", model.unused_tensors()},
      {"unused_keys", model.unused_keys()},
      {"notes", model.notes()}};
  return json.text();
}

}  // namespace phasor::internal
