// How sparse vectors are made: read_sparse_config().
#include <algorithm>
#include <cmath>
#include <utility>

#include "files/config_reader.h"
#include "files/refuse.h"
#include "models/sentence_files.h"
#include "models/tensor_files.h"
#include "tokenizer/files/tokenizer_settings.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRouter = "router_config.json";
constexpr const char* kTokenWeights = "sparse_linear.pt";  // of BGE-M3

/// The modules of a Router's `route`, "query" or "document".
std::vector<Module> route_of(ModelFolder& folder, const char* route) {
  const ConfigReader router = folder.needed(kRouter);
  const ConfigReader structure = router.object("structure"), types = router.object("types");
  std::vector<Module> modules;
  for (const std::string& name : structure.texts({route}))
    modules.push_back(module_of(types.text({name}, ""), name));
  if (router.has("parameters")) {
    const ConfigReader parameters = router.object("parameters");
    parameters.text({"default_route"}, "");
    parameters.boolean({"allow_empty_key"}, true);
    const bool maps = parameters.has("route_mappings");
    if (maps && !parameters.object("route_mappings").keys().empty())
      parameters.unsupported("route_mappings", "empty: phasor chooses the route by what is asked");
  }
  return modules;
}

bool is_splade(const std::vector<Module>& modules) {
  return modules.size() == 2 && modules[0].kind.ends_with("Transformer") &&
         modules[1].kind == "SpladePooling";
}

/// A tensor of one row or none, with finite numbers.
std::vector<float> read_row(const TensorFiles& files, const std::string& name, int64_t count) {
  const Tensor tensor = files.tensor(name);
  if (tensor.num_elements() != count) {
    refuse<ModelError>("{}: the tensor '{}' has shape {}; it must have {} numbers", files.where(),
                       name, shape_text(tensor.shape), count);
  }
  std::vector<float> values = tensor.to_float();
  if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); }))
    refuse<ModelError>("{}: the tensor '{}' holds NaN or an infinity", files.where(), name);
  return values;
}

/// SPLADE's, by the modules for documents.
SparseConfig splade(ModelFolder& folder, const std::vector<Module>& modules,
                    const ModelConfig& model) {
  SparseConfig config;
  config.source = modules[1].path + "/config.json";
  place_of(folder, config.source);
  const ConfigReader reader = folder.needed(config.source);
  const int64_t stated = reader.integer({"word_embedding_dimension", "embedding_dimension"}, 1,
                                        int64_t{1} << 30, model.vocab_size);
  if (stated != model.vocab_size)
    reader.fail("its vectors have {} weights; the model has {} pieces", stated, model.vocab_size);
  const std::string strategy = reader.text({"pooling_strategy"}, "max");
  const std::string function = reader.text({"activation_function"}, "relu");
  if (strategy != "max" && strategy != "sum")
    reader.unsupported("pooling_strategy", "\"max\" or \"sum\"");
  if (function != "relu" && function != "log1p_relu")
    reader.unsupported("activation_function", "\"relu\" or \"log1p_relu\"");
  config.sum = strategy == "sum";
  config.twice = function == "log1p_relu";
  return config;
}

/// Throws ModelError where queries would be looked up in another way than by the model's own
/// tokens.
void check_query_table(ModelFolder& folder, const ModelPath& transformer, const std::string& path) {
  const ConfigReader config = folder.object(path + "/config.json");
  if (config.has("path")) config.unsupported("path", "missing: weights lie in model.safetensors");
  config.boolean({"frozen"}, false);  // of training
  const ModelPath own = place_of(folder, path) / kTokenizerJson;
  if (is_there(own) && is_there(transformer / kTokenizerJson) &&
      read_model_file(own, kMaxTokenizerFile) !=
          read_model_file(transformer / kTokenizerJson, kMaxTokenizerFile)) {
    refuse<ModelError>(
        "{}: queries are looked up by this tokenizer, which is another than that of "
        "documents; phasor has one for both",
        own.string());
  }
}

}  // namespace

std::string routed_transformer(ModelFolder& folder) {
  const std::vector<Module> modules = route_of(folder, "document");
  return modules.empty() ? "" : modules[0].path;
}

std::optional<SparseConfig> read_sparse_config(ModelFolder& folder, const ModelConfig& model,
                                               bool has_mlm_head) {
  SparseConfig config;
  std::vector<Module> modules = listed_modules(folder);
  const bool routed = modules.size() == 1 && modules[0].kind == "Router";
  if (routed) modules = route_of(folder, "document");
  if (is_splade(modules)) {
    if (!has_mlm_head) {
      refuse<ModelError>(
          "{}: SpladePooling needs a masked-language-model head, and the weights "
          "have none that phasor runs",
          folder.path().string());
    }
    config = splade(folder, modules, model);
    if (routed) {
      const std::vector<Module> query = route_of(folder, "query");
      if (query.size() == 1 && query[0].kind == "SparseStaticEmbedding") {
        check_query_table(folder, place_of(folder, modules[0].path), query[0].path);
        config.query_weights = read_row(*TensorFiles::open(place_of(folder, query[0].path)),
                                        "weight", model.vocab_size);
      } else if (!is_splade(query) || query[0].path != modules[0].path ||
                 query[1].path != modules[1].path) {
        folder.needed(kRouter).fail(
            "its queries run through other modules than a SparseStaticEmbedding or those of its "
            "documents");
      }
    }
  } else if (folder.has(kTokenWeights)) {
    const auto files = TensorFiles::open_torch(folder.path() / kTokenWeights);
    config.kind = SparseConfig::Kind::kTokens;
    config.weight = read_row(*files, "weight", model.d_model);
    config.bias = read_row(*files, "bias", 1)[0];
    config.source = kTokenWeights;
    return config;
  } else {
    return std::nullopt;
  }
  config.similarity = folder.object(kSentenceConfig)
                          .choice<Similarity>("similarity_fn_name",
                                              {Similarity::kCosine, Similarity::kDot,
                                               Similarity::kEuclidean, Similarity::kManhattan},
                                              config.similarity);
  return config;
}

}  // namespace phasor::internal
