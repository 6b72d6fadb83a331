// How each token of a text gets a vector: read_token_vector_config().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "files/config_reader.h"
#include "files/refuse.h"
#include "models/model_config.h"
#include "models/sentence_files.h"
#include "models/tensor_files.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {
namespace {

constexpr const char* kTokenMap = "colbert_linear.pt";  // of BGE-M3
constexpr const char* kTokenStates = "token_embeddings";
constexpr const char* kSkippedWords = "skiplist_words";
constexpr int64_t kMostTokens = int64_t{1} << 20;
constexpr int64_t kMostFilledUp = 4096;  // tokens of a query

/// Python's string.punctuation, which ColBERT leaves out of documents.
std::vector<std::string> punctuation() {
  std::vector<std::string> all;
  for (const char c : std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")) all.push_back({c});
  return all;
}

/// A map of states of width `in`.
Projection projection(const std::string& where, const Tensor& weight, const Tensor& bias,
                      int64_t in) {
  const std::vector<int64_t>& shape = weight.shape;
  const bool fits = shape.size() == 2 && shape[1] == in && shape[0] >= 1 &&
                    shape[0] <= kMaxDenseWidth &&
                    (!bias.present() || bias.num_elements() == shape[0]);
  if (!fits) {
    refuse<ModelError>(
        "{}: the map of states has weights of shape {} and biases of shape {}; they must be [E, {}]"
        " and [E]",
        where, shape_text(shape), shape_text(bias.shape), in);
  }
  return {.in = in,
          .out = shape[0],
          .weight = weight.to_float(),
          .bias = bias.present() ? bias.to_float() : std::vector<float>(shape[0])};
}

TokenVectorConfig by_map(const ModelPath& file, int64_t d_model) {
  const auto files = TensorFiles::open_torch(file);
  return {.projections = {projection(files->where(), files->tensor("weight"), files->tensor("bias"),
                                     d_model)},
          .skips_first = true,
          .mean = true,
          .source = kTokenMap};
}

/// Reads a ColBERT's folder.
class TokenVectorReader {
 public:
  TokenVectorReader(ModelFolder& transformer, ModelFolder& folder, const Model& model)
      : folder_(folder),
        model_(model.config()),
        tokenizer_(model.tokenizer()),
        text_(model.text()),
        sentence_(transformer.object(sentence_file(transformer))),
        options_(folder.object(kSentenceConfig)) {
    const int64_t count = std::min(tokenizer_.vocab_size(), model_.vocab_size);
    for (int32_t id = 0; id < count; ++id) ids_.emplace(tokenizer_.piece(id), id);
  }

  TokenVectorConfig by_modules() {
    const std::vector<Module> modules = listed_modules(folder_);
    const bool is_native = options_.text({"model_type"}, "") == "MultiVectorEncoder";
    config_.unit_length = !is_native;
    int64_t width = model_.d_model;
    for (size_t i = 1; i < modules.size(); ++i) {
      const auto& [kind, path] = modules[i];
      const std::string file = path + "/config.json";
      if (kind == "Dense" && !std::exchange(ends_, false)) {
        const ModelPath place = place_of(folder_, path);
        config_.projections.push_back(read_dense(folder_.needed(file), place, width, kTokenStates));
        width = config_.width();
        config_.source = file;
      } else if (kind == "Normalize") {
        if (!path.empty()) {
          place_of(folder_, path);
          require_names(folder_.object(file), kTokenStates);
        }
        config_.unit_length = ends_ = true;
      } else if (kind == "MultiVectorMask") {
        place_of(folder_, path);
        read_mask(folder_.needed(file));
      } else if (kind != "Dropout") {
        folder_.list(kModules).fail(
            ErrorCode::kUnsupported,
            "of a model that makes a vector of each token, phasor runs a Transformer, then Dense, "
            "then MultiVectorMask and Normalize; module {} is another",
            i);
      }
    }
    read_options(is_native);
    const std::string similarity = options_.text({"similarity_fn_name"}, "maxsim");
    config_.mean = similarity == "meanmaxsim";
    return std::move(config_);
  }

  /// Of ColBERT's own: artifact.metadata, and its map among the weights.
  TokenVectorConfig by_metadata(const TensorFiles& weights) {
    const ConfigReader metadata = folder_.object(kColbertMetadata);
    config_.source = weights.where();
    config_.projections.push_back(
        projection(weights.where(), weights.tensor(kTokenMapWeight), {}, model_.d_model));
    config_.query.marker = id_of(metadata, "query_token_id", "[unused0]");
    config_.document.marker = id_of(metadata, "doc_token_id", "[unused1]");
    config_.document.max_tokens = metadata.integer({"doc_maxlen"}, 1, kMostTokens, 0);
    expand({.length = metadata.integer({"query_maxlen"}, 1, kMostTokens, 32),
            .attended = metadata.boolean({"attend_to_mask_tokens"}, false)});
    if (metadata.boolean({"mask_punctuation"}, true)) skip(config_.document, punctuation());
    if (metadata.text({"similarity"}, "cosine") != "cosine")
      metadata.unsupported("similarity", "\"cosine\"");
    folder_.forget(kColbertMetadata);  // the others are training's
    return std::move(config_);
  }

 private:
  std::optional<int32_t> find(const std::string& piece) const {
    const auto found = ids_.find(piece);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  int32_t id_of(const ConfigReader& reader, const char* key, const std::string& fallback) const {
    const auto found = find(reader.text({key}, fallback));
    if (!found) reader.refuse(key, "a token of the vocabulary");
    return *found;
  }

  /// Words that are no single token are left.
  void skip(TokenVectorConfig::Side& side, const std::vector<std::string>& words) const {
    for (const std::string& word : words) {
      if (const auto id = find(word)) side.skipped.push_back(*id);
    }
    std::ranges::sort(side.skipped);
  }

  void read_mask(const ConfigReader& mask) {
    const nlohmann::json* const kept = mask.value("keep_only_token_ids");
    if (kept != nullptr && !kept->empty()) mask.unsupported("keep_only_token_ids", "null");
    has_mask_ = true;
    const std::vector<std::string> words = mask.texts({kSkippedWords});
    const nlohmann::json* const given = mask.value("skiplist_tasks");
    std::vector<std::string> tasks = {"document"};
    if (given != nullptr)
      tasks = given->is_string() ? std::vector{mask.text({"skiplist_tasks"})}
                                 : mask.texts({"skiplist_tasks"});
    for (const std::string& task : tasks) {
      if (task != "query" && task != "document")
        mask.unsupported("skiplist_tasks", "a list of \"query\" and \"document\"");
      skip(task == "query" ? config_.query : config_.document, words);
    }
  }

  /// What sentence_bert_config.json says, or else, of PyLate, config_sentence_transformers.json.
  void read_options(bool is_native) {
    const auto length = [&](const char* key) {
      return sentence_.integer({key}, 1, kMostTokens, options_.integer({key}, 1, kMostTokens, 0));
    };
    config_.document.max_tokens = length("document_length");
    config_.query.max_tokens = length("query_length");
    for (const ConfigReader* const reader : {&options_, &sentence_}) {
      if (reader->has("query_expansion")) read_expansion(reader->object("query_expansion"));
    }
    if (is_native) {
      if (config_.expansion && !has_mask_) {
        folder_.list(kModules).fail(ErrorCode::kUnsupported,
                                    "query_expansion needs a MultiVectorMask, and there is none");
      }
      return;
    }
    for (const auto& [key, side] : {std::pair("query_prefix", &config_.query),
                                    std::pair("document_prefix", &config_.document)}) {
      const std::string prefix = options_.text({key}, "");
      const bool is_query = side == &config_.query;
      const bool in_prompt = text_.prompt_for(is_query).starts_with(prefix);
      if (!prefix.empty() && !in_prompt) side->marker = marker(key);
    }
    const std::vector<std::string> keys = options_.keys();  // null turns it off
    const bool says_expansion = std::ranges::find(keys, "query_expansion") != keys.end();
    if (options_.boolean({"do_query_expansion"}, true) && !says_expansion && !config_.expansion) {
      const bool attended = options_.boolean({"attend_to_mask_tokens"}, false);
      expand({.length = std::exchange(config_.query.max_tokens, 0),
              .attended = options_.boolean({"attend_to_expansion_tokens"}, attended)});
    }
    skip(config_.document,
         options_.has(kSkippedWords) ? options_.texts({kSkippedWords}) : punctuation());
  }

  /// Of a prefix, "[Q] ", which is a token with its space or without.
  int32_t marker(const char* key) const {
    const std::string prefix = options_.text({key});
    const auto whole = find(prefix);
    const auto found = whole ? whole : find(prefix.substr(0, prefix.find(' ')));
    if (!found) options_.refuse(key, "a token of the vocabulary");
    return *found;
  }

  void read_expansion(const ConfigReader& reader) {
    const std::string strategy = reader.text({"strategy"});
    if (strategy != "fixed" && strategy != "min")
      reader.unsupported("strategy", "\"fixed\" or \"min\"");
    TokenVectorConfig::Expansion expansion = {
        .length = reader.integer({"length"}, 1, kMostFilledUp),
        .attended = reader.boolean({"attend"}, false),
        .cuts = strategy == "fixed"};
    if (reader.has("token")) expansion.token = id_of(reader, "token", "");
    expand(expansion, reader.has("token"));
  }

  void expand(TokenVectorConfig::Expansion expansion, bool has_token = false) {
    if (expansion.length == 0) expansion.length = 32;  // PyLate's
    const int64_t positions = model_.max_positions;
    const int64_t most = positions > 0 ? std::min(kMostFilledUp, positions) : kMostFilledUp;
    if (expansion.length > most) {
      refuse<ModelError>("{}: queries are filled up to {} tokens; at most {} are run",
                         folder_.path().string(), expansion.length, most);
    }
    for (const LayerAttention& layer : model_.layer_attention) {
      if (expansion.attended || layer.window == 0 || expansion.length <= layer.window + 1) continue;
      refuse<ModelError>(
          ErrorCode::kUnsupported,
          "{}: queries are filled up to {} tokens that nobody attends to; where a token sees {} to "
          "each side, at most {} are run",
          folder_.path().string(), expansion.length, layer.window, layer.window + 1);
    }
    if (!has_token) {
      const auto mask = tokenizer_.mask_id();
      if (!mask || *mask >= model_.vocab_size) {
        refuse<ModelError>("{}: queries are filled up with mask tokens, and the tokenizer has none",
                           folder_.path().string());
      }
      expansion.token = *mask;
    }
    config_.expansion = expansion;
  }

  ModelFolder& folder_;
  const ModelConfig& model_;
  const Tokenizer& tokenizer_;
  const TextConfig& text_;
  const ConfigReader sentence_, options_;
  std::map<std::string, int32_t> ids_;  // by piece
  bool ends_ = false;                   // a Normalize was there
  bool has_mask_ = false;               // a MultiVectorMask
  TokenVectorConfig config_;
};

}  // namespace

std::optional<TokenVectorConfig> read_token_vector_config(ModelFolder& transformer,
                                                          ModelFolder& folder, const Model& model,
                                                          const TensorFiles& weights,
                                                          bool is_colbert) {
  if (makes_token_vectors(listed_modules(folder)))
    return TokenVectorReader(transformer, folder, model).by_modules();
  if (is_colbert) return TokenVectorReader(transformer, folder, model).by_metadata(weights);
  if (folder.has(kTokenMap)) return by_map(folder.path() / kTokenMap, model.config().d_model);
  return std::nullopt;
}

}  // namespace phasor::internal
