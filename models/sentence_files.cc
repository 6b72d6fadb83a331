#include "models/sentence_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "files/config_reader.h"
#include "files/files.h"
#include "files/refuse.h"
#include "models/model_config.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMaxTokens = int64_t{1} << 30;
constexpr const char* kPooling = "1_Pooling/config.json";
constexpr const char* kTextVector = "sentence_embedding";
constexpr size_t kMaxModules = 32;

/// The newer form: "pooling_mode": "mean", or a list of such names.
std::vector<PoolingMode> modes_by_name(const ConfigReader& reader) {
  const bool list = reader.value("pooling_mode")->is_array();
  const std::vector<std::string> names =
      list ? reader.texts({"pooling_mode"}) : std::vector{reader.text({"pooling_mode"})};
  std::vector<PoolingMode> modes;
  for (const std::string& name : names) {
    try {
      modes.push_back(parse<PoolingMode>(name));
    } catch (const InvalidArgument& error) {
      reader.fail("pooling_mode: {}", error.what());
    }
  }
  constexpr size_t kMostModes = 32;
  if (modes.empty() || modes.size() > kMostModes)
    reader.fail("pooling_mode lists {} modes; it must be 1 to {}", modes.size(), kMostModes);
  return modes;
}

constexpr std::pair<std::string_view, PoolingMode> kFlags[] = {
    {"pooling_mode_cls_token", PoolingMode::kCls},
    {"pooling_mode_max_tokens", PoolingMode::kMax},
    {"pooling_mode_mean_tokens", PoolingMode::kMean},
    {"pooling_mode_mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLen},
    {"pooling_mode_weightedmean_tokens", PoolingMode::kWeightedMean},
    {"pooling_mode_lasttoken", PoolingMode::kLastToken}};

/// The older form: true or false for each mode. Where none is true it is the mean.
std::vector<PoolingMode> modes_by_flags(const ConfigReader& reader) {
  std::vector<PoolingMode> modes;
  for (const auto& [key, mode] : kFlags) {
    if (reader.boolean({key}, false)) modes.push_back(mode);
  }
  return modes.empty() ? std::vector{PoolingMode::kMean} : modes;
}

Pooling read_pooling(const ConfigReader& reader, int64_t width) {
  for (const std::string& key : reader.keys()) {
    const bool known =
        std::ranges::find(kFlags, key, &std::pair<std::string_view, PoolingMode>::first) !=
        std::end(kFlags);
    if (key.starts_with("pooling_mode_") && !known) reader.fail("{} is not known", value_text(key));
  }
  const int64_t stated =
      reader.integer({"word_embedding_dimension", "embedding_dimension"}, 1, kMaxTokens, width);
  if (stated != width)
    reader.fail("it pools vectors of {}; this model's are {} wide", stated, width);
  return {.modes = reader.has("pooling_mode") ? modes_by_name(reader) : modes_by_flags(reader),
          .include_prompt = reader.boolean({"include_prompt"}, true)};
}

VectorNorm read_norm(const ConfigReader& reader, const ModelPath& folder, int64_t width) {
  if (reader.integer({"dimension"}, 1, kMaxDenseWidth) != width)
    reader.refuse("dimension", "{}, the width of what comes before", width);
  return {.weight = read_tensor(folder, "norm.weight", {width}),
          .bias = read_tensor(folder, "norm.bias", {width})};
}

/// modules.json: a list of {"path", "type"}, in the order in which they run.
class ModuleReader {
 public:
  ModuleReader(ModelFolder& folder, int64_t d_model) : folder_(folder), d_model_(d_model) {}

  SentenceConfig read() {
    makes_token_vectors_ = makes_token_vectors(listed_modules(folder_));
    const ConfigReader list = folder_.list(kModules);
    size_t count = 0;
    list.for_each_object([&](const ConfigReader& module) {
      if (++count > kMaxModules) list.fail("more than {} modules", kMaxModules);
      add(module, module.text({"type"}), module.text({"path"}, ""));
    });
    if (config_.source.empty()) list.fail("no Pooling module is in it");
    return std::move(config_);
  }

 private:
  void add(const ConfigReader& module, const std::string& type, const fs::path& path) {
    const std::string kind = module_kind(type);
    if (path.native().find('\0') != path.native().npos || path.is_absolute() ||
        std::find(path.begin(), path.end(), "..") != path.end()) {
      module.refuse("path", "a folder inside the model's own, without \"..\"");
    }
    const ModelPath where = folder_.path() / path;
    refuse_link_out(folder_.path(), where);
    if (!type.starts_with("sentence_transformers.")) {
      module.unsupported("type", "a class of sentence_transformers: phasor runs no other code");
    }
    const std::string config = (path / "config.json").string();
    Pooling& pooling = config_.pooling;
    const bool first = config_.source.empty();
    if (makes_token_vectors_) {
      module.fail(ErrorCode::kUnsupported,
                  "the model makes a vector of each token, not sentence vectors: ask for vectors "
                  "of the kind tokens (infer embed --tokens)");
    }
    if (kind == "MLMTransformer" || kind == "SpladePooling") {
      module.fail(ErrorCode::kUnsupported,
                  "the model makes sparse vectors, not sentence vectors: ask for vectors of the "
                  "kind sparse (infer embed --sparse)");
    }
    if (kind == "Transformer" && first && !seen_transformer_) {
      if (!path.empty() && transformer_of(folder_.path()) != where)
        module.refuse("path", "a folder in the model's own with a config.json");
      seen_transformer_ = true;
    } else if (kind == "Pooling" && first && seen_transformer_) {
      config_.source = config;
      pooling = read_pooling(folder_.needed(config), d_model_);
    } else if ((kind == "Dense" || kind == "LayerNorm") && !first) {
      const ModelPath one = where / "model.safetensors";
      if (!weights_.insert(file_id(is_there(one) ? one : where / "pytorch_model.bin")).second)
        module.refuse("path", "a folder with weights of its own");
      const int64_t width = pooling.width(d_model_);
      if (std::exchange(pooling.normalize, false)) pooling.steps.emplace_back(UnitLength());
      const ConfigReader reader = folder_.needed(config);
      if (kind == "Dense") {
        pooling.steps.emplace_back(read_dense(reader, where, width, kTextVector));
      } else {
        pooling.steps.emplace_back(read_norm(reader, where, width));
      }
    } else if (kind == "Normalize" && !first) {
      if (!path.empty()) require_names(folder_.object(config), kTextVector);
      pooling.normalize = true;
    } else if (kind != "Dropout" || first) {  // which does nothing in a trained model
      module.unsupported("type",
                         "a Transformer, then a Pooling, then any of Dense, LayerNorm, Normalize "
                         "and Dropout: phasor runs no others and no other order");
    }
  }

  ModelFolder& folder_;
  int64_t d_model_;
  bool seen_transformer_ = false, makes_token_vectors_ = false;
  std::set<std::pair<uint64_t, uint64_t>> weights_;  // the files that were read
  SentenceConfig config_;
};

SentenceConfig read_modules(ModelFolder& folder, int64_t d_model, std::vector<std::string>& notes) {
  if (folder.has(kModules)) return ModuleReader(folder, d_model).read();
  SentenceConfig config;
  if (!has_modules(folder)) return config;
  const std::string pooling = kPooling;
  refuse_link_out(folder.path(), folder.path() / pooling);
  config.source = pooling;
  config.pooling = read_pooling(folder.needed(pooling), d_model);
  notes.push_back(
      "there is 1_Pooling but no modules.json, which would say whether vectors are normalised; "
      "they are not");
  return config;
}

/// The file's options for vectors: how many numbers are kept, and how vectors are compared.
void read_vectors(const ConfigReader& file, int64_t d_model, SentenceConfig& config) {
  Pooling& pooling = config.pooling;
  config.similarity = file.choice<Similarity>(
      "similarity_fn_name",
      {Similarity::kCosine, Similarity::kDot, Similarity::kEuclidean, Similarity::kManhattan},
      config.similarity);
  if (constexpr const char* kKey = "truncate_dim"; file.has(kKey)) {
    const int64_t width = pooling.width(d_model);
    const int64_t kept = file.integer({kKey}, 1, kMaxTokens);
    if (kept >= width) return;
    if (std::exchange(pooling.normalize, false)) pooling.steps.emplace_back(UnitLength());
    pooling.steps.emplace_back(FirstNumbers{kept});
  }
}

}  // namespace

ModelPath transformer_of(const ModelPath& folder) {
  const auto named = [&](const fs::path& name) {
    if (name.empty() || name.filename() != name || name == ".." || name == ".") return folder;
    refuse_link_out(folder, folder / name);
    return is_file(folder / name / "config.json") ? folder / name : folder;
  };
  try {
    if (!is_there(folder / kModules)) return folder;
    const JsonDocument modules = read_json(folder / kModules);
    if (!modules->is_array() || modules->empty() || !(*modules)[0].is_object()) return folder;
    const auto text = [&](const char* key) {
      const auto value = (*modules)[0].find(key);
      return value != (*modules)[0].end() && value->is_string() ? value->get<std::string>() : "";
    };
    if (module_kind(text("type")) != "Router") return named(text("path"));
  } catch (const ModelError&) {  // which read_sentence_config() meets as well
    return folder;
  }
  ModelFolder files(folder);
  return named(routed_transformer(files));
}

SentenceConfig read_sentence_config(ModelFolder& folder, int64_t d_model, const TextConfig& text,
                                    std::vector<std::string>& notes) {
  SentenceConfig config = read_modules(folder, d_model, notes);
  read_vectors(folder.object(kSentenceConfig), d_model, config);
  static_cast<TextConfig&>(config) = text;
  return config;
}

bool has_modules(const ModelFolder& folder) { return folder.has(kModules) || folder.has(kPooling); }

std::string sign_of_colbert(ModelFolder& folder, const TensorFiles& weights) {
  const json* const architectures = folder.object("config.json").value("architectures");
  if (architectures != nullptr && architectures->dump().find("ColBERT") != std::string::npos)
    return fmt::format("config.json's architectures is {}", value_text(*architectures));
  if (folder.has(kColbertMetadata)) return fmt::format("{} is in it", kColbertMetadata);
  if (weights.contains(kTokenMapWeight) && !weights.contains("linear.bias"))
    return fmt::format("the tensor {} is in it", kTokenMapWeight);
  return {};
}

}  // namespace phasor::internal
