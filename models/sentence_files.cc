#include "models/sentence_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "models/config_reader.h"
#include "models/files.h"
#include "models/parameters.h"
#include "models/tokenizer_settings.h"
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
  if (!is_file(weights) && is_file(folder / "pytorch_model.bin")) {
    throw ModelError(
        fmt::format("{}: its weights are a Python pickle, which phasor does not read; save the "
                    "model again with a newer sentence-transformers",
                    folder.string()),
        ErrorCode::kUnsupported);
  }
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

/// A length in tokens that a tokenizer or a call is given; those without a limit have 1e30.
int64_t read_length(const ConfigReader& reader, ConfigReader::Keys keys) {
  const double limit = reader.number(keys, 0, 1e300, 1e30);
  if (limit < 1) reader.refuse(*keys.begin(), "a number of tokens");
  return limit < static_cast<double>(kMaxTokens) ? static_cast<int64_t>(limit) : 0;
}

/// What sentence-transformers gives the tokenizer when it loads it.
void read_loading(const ConfigReader& sentence, TextConfig& config) {
  for (const char* const key : {"processor_kwargs", "tokenizer_args"}) {
    if (!sentence.has(key)) continue;
    const ConfigReader options = sentence.object(key);
    if (options.has("model_max_length")) config.max_tokens = read_length(options, {"model_max_length"});
    for (const std::string& other : options.keys()) {
      if (other == "model_max_length" || other == "use_fast" || other == "padding_side") continue;
      options.refuse(other, "absent: phasor takes the tokenizer as its own files have it",
                     ErrorCode::kUnsupported);
    }
  }
  for (const char* const key : {"model_kwargs", "model_args"}) {
    if (sentence.has(key)) sentence.object(key);  // its keys are known, or noted
  }
  for (const char* const key : {"config_kwargs", "config_args"}) {
    const nlohmann::json* const options = sentence.value(key);
    if (options != nullptr && !options->empty()) {
      sentence.refuse(key, "empty: phasor takes config.json as it is", ErrorCode::kUnsupported);
    }
  }
}

/// What it gives the tokenizer with every text: {"text": {"max_length": 128, …}, …}.
void read_processing(const ConfigReader& sentence, TextConfig& config) {
  if (!sentence.has("processing_kwargs")) return;
  const ConfigReader all = sentence.object("processing_kwargs");
  for (const char* const key : {"common", "text"}) {
    if (!all.has(key)) continue;
    const ConfigReader options = all.object(key);
    if (options.has("max_length")) config.max_tokens = read_length(options, {"max_length"});
    config.special_tokens = options.boolean({"add_special_tokens"}, config.special_tokens);
    const nlohmann::json* const truncation = options.value("truncation");
    if (truncation != nullptr && *truncation != true && *truncation != "longest_first") {
      options.refuse("truncation", "true or \"longest_first\"", ErrorCode::kUnsupported);
    }
    for (const std::string& other : options.keys()) {
      constexpr std::string_view kFollowed[] = {
          "add_special_tokens", "max_length", "padding", "padding_side", "pad_to_multiple_of",
          "return_tensors",     "truncation"};
      if (std::ranges::find(kFollowed, other) != std::end(kFollowed)) continue;
      options.refuse(other, "absent: phasor does not follow it", ErrorCode::kUnsupported);
    }
  }
}

/// What the Transformer module computes: one row of the last hidden state for each token, or logits.
void check_task(const ConfigReader& sentence) {
  const auto check = [](const ConfigReader& reader, const char* key,
                        std::initializer_list<std::string_view> allowed) {
    const std::string value = reader.text({key}, std::string(*allowed.begin()));
    if (std::ranges::find(allowed, value) != allowed.end()) return;
    reader.refuse(key, fmt::format("one of: {}", fmt::join(allowed, ", ")),
                  ErrorCode::kUnsupported);
  };
  check(sentence, "transformer_task", {"feature-extraction", "sequence-classification", "fill-mask"});
  check(sentence, "module_output_name", {"token_embeddings", "scores"});
  if (!sentence.has("modality_config")) return;
  const ConfigReader modalities = sentence.object("modality_config");
  if (!modalities.has("text")) modalities.refuse("text", "there: phasor runs texts alone");
  const ConfigReader text = modalities.object("text");
  check(text, "method", {"forward"});
  check(text, "method_output_name", {"last_hidden_state", "logits"});
}

/// How many tokens of a text are run: sentence_bert_config.json's, otherwise the tokenizer's own.
void read_lengths(ModelFolder& folder, TextConfig& config) {
  config.max_tokens = read_length(folder.object(kTokenizerConfig), {"model_max_length", "max_len"});
  const ConfigReader sentence = folder.object(sentence_file(folder));
  check_task(sentence);
  read_loading(sentence, config);
  if (sentence.has("max_seq_length")) {
    config.max_tokens = sentence.integer({"max_seq_length"}, 1, kMaxTokens);
  }
  read_processing(sentence, config);
}

void read_prompts(const ConfigReader& file, TextConfig& config) {
  constexpr size_t kMostBytes = 1 << 16, kMostPrompts = 1024;
  if (file.has("prompts")) {
    const ConfigReader prompts = file.object("prompts");
    const std::vector<std::string> names = prompts.keys();
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
  const std::string name = file.text({"default_prompt_name"}, "");
  if (name.empty()) return;
  const auto found = config.prompts.find(name);
  if (found == config.prompts.end()) {
    file.refuse("default_prompt_name", "a name of one of its prompts");
  }
  config.prompt = found->second;
}

}  // namespace

TextConfig read_text_config(ModelFolder& folder) {
  TextConfig config;
  read_lengths(folder, config);
  read_prompts(folder.object(kSentenceConfig), config);
  return config;
}

SentenceConfig read_sentence_config(ModelFolder& folder, int64_t d_model, const TextConfig& text,
                                    std::vector<std::string>& notes) {
  SentenceConfig config = read_modules(folder.path(), d_model, notes);
  static_cast<TextConfig&>(config) = text;
  return config;
}

}  // namespace phasor::internal
