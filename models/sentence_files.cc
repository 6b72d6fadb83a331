#include "models/sentence_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "models/config_reader.h"
#include "models/files.h"
#include "models/parameters.h"
#include "models/tensor_files.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kModules = "modules.json";
constexpr int64_t kMaxTokens = int64_t{1} << 30;
constexpr int64_t kMaxDenseWidth = int64_t{1} << 16;  // of a Dense module
constexpr size_t kMaxModules = 32;

/// A JSON object and the reader that borrows it; an empty object if the file is missing.
struct OptionalFile {
  explicit OptionalFile(const fs::path& file)
      : json(is_there(file) ? read_json_object(file) : JsonDocument()),
        reader(file.string(), *json) {}
  OptionalFile(const OptionalFile&) = delete;
  OptionalFile& operator=(const OptionalFile&) = delete;

  JsonDocument json;
  ConfigReader reader;
};

/// The newer form: "pooling_mode": "mean", or a list of such names.
std::vector<PoolingMode> modes_by_name(const ConfigReader& reader) {
  const bool list = reader.value("pooling_mode")->is_array();
  const std::vector<std::string> names =
      list ? reader.texts({"pooling_mode"}) : std::vector{reader.text({"pooling_mode"})};
  std::vector<PoolingMode> modes;
  for (const std::string& name : names) {
    try {
      const std::vector<PoolingMode> parsed = parse_pooling_modes(name);
      modes.insert(modes.end(), parsed.begin(), parsed.end());
    } catch (const InvalidArgument& error) {
      reader.fail(fmt::format("pooling_mode: {}", error.what()));
    }
  }
  return modes;
}

std::vector<PoolingMode> modes_by_flags(const ConfigReader& reader) {
  constexpr std::pair<std::string_view, PoolingMode> kFlags[] = {
      {"pooling_mode_cls_token", PoolingMode::kCls},
      {"pooling_mode_max_tokens", PoolingMode::kMax},
      {"pooling_mode_mean_tokens", PoolingMode::kMean},
      {"pooling_mode_mean_sqrt_len_tokens", PoolingMode::kMeanSqrtLen},
      {"pooling_mode_weightedmean_tokens", PoolingMode::kWeightedMean},
      {"pooling_mode_lasttoken", PoolingMode::kLastToken}};
  std::vector<PoolingMode> modes;
  for (const auto& [key, mode] : kFlags) {
    if (reader.boolean({key}, mode == PoolingMode::kMean)) modes.push_back(mode);
  }
  return modes;
}

std::vector<PoolingMode> read_pooling(const fs::path& file, int64_t width) {
  const JsonDocument object = read_json_object(file);
  const ConfigReader reader(file.string(), *object);
  constexpr std::string_view kKeys[] = {"word_embedding_dimension",
                                        "embedding_dimension",
                                        "pooling_mode",
                                        "pooling_mode_cls_token",
                                        "pooling_mode_max_tokens",
                                        "pooling_mode_mean_tokens",
                                        "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens",
                                        "pooling_mode_lasttoken",
                                        "include_prompt"};
  for (const std::string& key : reader.keys_besides(kKeys)) {
    if (key.starts_with("pooling_mode"))
      reader.fail(fmt::format("{} is not known", value_text(key)));
  }
  const int64_t stated =
      reader.integer({"word_embedding_dimension", "embedding_dimension"}, 1, kMaxTokens, width);
  if (stated != width) {
    reader.fail(fmt::format("it pools vectors of {}; this model's are {} wide", stated, width));
  }
  const std::vector<PoolingMode> modes =
      reader.has("pooling_mode") ? modes_by_name(reader) : modes_by_flags(reader);
  if (modes.empty()) reader.fail("every pooling mode is false; one at least must be true");
  if (!reader.boolean({"include_prompt"}, true)) {
    reader.refuse("include_prompt", "true: phasor pools all tokens", ErrorCode::kUnsupported);
  }
  return modes;
}

Projection read_dense(const fs::path& folder, int64_t width) {
  const fs::path config = folder / "config.json";
  const JsonDocument object = read_json_object(config);
  const ConfigReader reader(config.string(), *object);
  Projection projection;
  projection.in = reader.integer({"in_features"}, 1, kMaxDenseWidth);
  projection.out = reader.integer({"out_features"}, 1, kMaxDenseWidth);
  if (projection.in != width) {
    reader.refuse("in_features", fmt::format("{}, the width of what comes before", width));
  }
  const std::string function =
      reader.text({"activation_function"}, "torch.nn.modules.activation.Tanh");
  projection.tanh = function.ends_with(".Tanh");
  if (!projection.tanh && !function.ends_with(".Identity")) {
    reader.refuse("activation_function", "Tanh or Identity", ErrorCode::kUnsupported);
  }
  const fs::path weights = folder / "model.safetensors";
  if (!is_there(weights)) refuse_without_weights(folder);
  const auto file = SafetensorsFile::open(within_folder(weights));
  const auto read = [&](const std::string& name, std::vector<int64_t> shape) {
    const Tensor tensor = file->tensor(name);
    if (tensor.shape != shape) {
      throw ModelError(fmt::format("{}: the tensor '{}' has shape {}; config.json asks for {}",
                                   weights.string(), name, shape_text(tensor.shape),
                                   shape_text(shape)));
    }
    std::vector<float> values = tensor.to_float();
    if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
      throw ModelError(
          fmt::format("{}: the tensor '{}' holds NaN or an infinity", weights.string(), name));
    }
    return values;
  };
  projection.weight = read("linear.weight", {projection.out, projection.in});
  projection.bias = reader.boolean({"bias"}, true) ? read("linear.bias", {projection.out})
                                                   : std::vector<float>(projection.out);
  return projection;
}

/// "sentence_transformers.models.Pooling" -> "Pooling".
std::string module_kind(const std::string& type) { return type.substr(type.rfind('.') + 1); }

/// modules.json: a list of {"path", "type"}, in the order in which they run.
class ModuleReader {
 public:
  ModuleReader(const fs::path& folder, int64_t d_model) : folder_(folder), d_model_(d_model) {}

  SentenceConfig read() {
    const fs::path file = folder_ / kModules;
    const JsonDocument document = read_json(file);
    const json& modules = *document;
    const ConfigReader reader(file.string(), modules);
    if (!modules.is_array()) reader.fail(value_text(modules) + " is no list of modules");
    if (modules.size() > kMaxModules) {
      reader.fail(fmt::format("{} modules; at most {} are read", modules.size(), kMaxModules));
    }
    for (const json& entry : modules) {
      if (!entry.is_object()) reader.fail(value_text(entry) + " is no module");
      const ConfigReader module(file.string(), entry);
      add(module, module_kind(module.text({"type"})), module.text({"path"}, ""));
    }
    if (config_.source.empty()) reader.fail("no Pooling module is in it");
    return std::move(config_);
  }

 private:
  void add(const ConfigReader& module, const std::string& kind, const fs::path& path) {
    if (path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end()) {
      module.refuse("path", "a folder inside the model's own, without \"..\"");
    }
    refuse_link_out(folder_, folder_ / path);
    Pooling& pooling = config_.pooling;
    const bool first = config_.source.empty();
    if (kind == "Transformer" && first && !seen_transformer_) {
      seen_transformer_ = true;
    } else if (kind == "Pooling" && first && seen_transformer_) {
      config_.source = (path / "config.json").string();
      pooling.modes = read_pooling(folder_ / config_.source, d_model_);
    } else if (kind == "Dense" && !first && !pooling.normalize) {
      if (!dense_.insert(file_id(folder_ / path / "model.safetensors")).second) {
        module.refuse("path", "a folder with weights of its own");
      }
      pooling.projections.push_back(read_dense(folder_ / path, pooling.width(d_model_)));
    } else if (kind == "Normalize" && !first) {
      pooling.normalize = true;
    } else {
      module.refuse("type",
                    "a Transformer, then a Pooling, then Dense modules and Normalize: phasor runs "
                    "no others and no other order",
                    ErrorCode::kUnsupported);
    }
  }

  const fs::path& folder_;
  int64_t d_model_;
  bool seen_transformer_ = false;
  std::set<std::pair<uint64_t, uint64_t>> dense_;  // the weights that were read
  SentenceConfig config_;
};

SentenceConfig read_modules(const fs::path& folder, int64_t d_model,
                            std::vector<std::string>& notes) {
  if (is_there(folder / kModules)) return ModuleReader(folder, d_model).read();
  SentenceConfig config;
  const fs::path pooling = fs::path("1_Pooling") / "config.json";
  if (!is_there(folder / pooling)) return config;
  refuse_link_out(folder, folder / pooling);
  config.source = pooling.string();
  config.pooling.modes = read_pooling(folder / pooling, d_model);
  notes.push_back(
      "1_Pooling is here and modules.json is not: whether sentence vectors are normalised is not "
      "said; they are not");
  return config;
}

/// The maximum length of a text: from sentence_bert_config.json, otherwise the tokenizer's.
int64_t read_max_tokens(const fs::path& folder, const ConfigReader& tokenizer) {
  for (const char* const family :
       {"bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"}) {
    const fs::path file = folder / fmt::format("sentence_{}_config.json", family);
    if (!is_there(file)) continue;
    const OptionalFile sentence(file);
    if (sentence.reader.boolean({"do_lower_case"}, false) &&
        !tokenizer.boolean({"do_lower_case"}, false)) {
      sentence.reader.refuse("do_lower_case",
                             "false where the tokenizer does not lower-case by itself; lower-case "
                             "the texts and change the file");
    }
    if (sentence.reader.has("max_seq_length")) {
      return sentence.reader.integer({"max_seq_length"}, 1, kMaxTokens);
    }
  }
  // Tokenizers without a limit have 1e30.
  const double limit = tokenizer.number({"model_max_length"}, 0, 1e300, 1e30);
  if (limit > 0 && limit < 1) tokenizer.refuse("model_max_length", "a number of tokens");
  return limit < static_cast<double>(kMaxTokens) ? static_cast<int64_t>(limit) : 0;
}

void read_prompts(const fs::path& folder, SentenceConfig& config) {
  constexpr size_t kMostBytes = 1 << 16, kMostPrompts = 1024;
  const OptionalFile file(folder / "config_sentence_transformers.json");
  if (file.reader.has("prompts")) {
    const ConfigReader prompts = file.reader.object("prompts");
    const std::vector<std::string> names = prompts.keys_besides({});
    if (names.size() > kMostPrompts) {
      prompts.fail(
          fmt::format("it has {} prompts; at most {} are read", names.size(), kMostPrompts));
    }
    for (const std::string& name : names) {
      const std::string prompt = prompts.text({name}, "");
      if (prompt.size() > kMostBytes) {
        prompts.fail(fmt::format("the prompt {} has {} bytes; at most {} are read",
                                 value_text(name), prompt.size(), kMostBytes));
      }
      config.prompts.emplace(name, prompt);
    }
  }
  const std::string name = file.reader.text({"default_prompt_name"}, "");
  if (name.empty()) return;
  const auto found = config.prompts.find(name);
  if (found == config.prompts.end()) {
    file.reader.refuse("default_prompt_name", "a name of one of its prompts");
  }
  config.prompt = found->second;
}

}  // namespace

SentenceConfig read_sentence_config(const fs::path& folder, int64_t d_model,
                                    std::vector<std::string>& notes) {
  SentenceConfig config = read_modules(folder, d_model, notes);
  const OptionalFile tokenizer(folder / "tokenizer_config.json");
  config.max_tokens = read_max_tokens(folder, tokenizer.reader);
  read_prompts(folder, config);
  for (const char* const head : {"colbert_linear.pt", "sparse_linear.pt"}) {  // of BGE-M3
    if (is_there(folder / head)) notes.push_back(fmt::format("{} is not used", head));
  }
  return config;
}

void refuse_multi_vector(const fs::path& folder, const std::vector<std::string>& unused_tensors) {
  const OptionalFile config(folder / "config.json");
  const json* const architectures = config.reader.value("architectures");
  const auto has = [&](const char* name) {
    return std::ranges::find(unused_tensors, name) != unused_tensors.end();
  };
  std::string sign;
  if (architectures != nullptr && architectures->dump().find("ColBERT") != std::string::npos) {
    sign = fmt::format("config.json's architectures is {}", value_text(*architectures));
  } else if (is_there(folder / "artifact.metadata")) {
    sign = "artifact.metadata is in it";
  } else if (has("linear.weight") && !has("linear.bias")) {
    sign = "the tensor linear.weight is in it";
  } else {
    return;
  }
  throw ModelError(
      fmt::format("{}: it is a multi-vector model (ColBERT): {}; phasor does not make a vector of "
                  "each token; choose a model of sentence vectors, or give a pooling",
                  folder.string(), sign),
      ErrorCode::kUnsupported);
}

}  // namespace phasor::internal
