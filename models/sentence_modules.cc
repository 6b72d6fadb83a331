#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "files/files.h"
#include "files/refuse.h"
#include "models/sentence_files.h"
#include "models/tensor_files.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;

/// Of a class of torch: "torch.nn.modules.activation.Tanh".
Activation read_function(const ConfigReader& reader) {
  constexpr std::string_view kKey = "activation_function", kTorch = "torch.nn.";
  constexpr std::pair<std::string_view, Activation> kClasses[] = {
      {"Tanh", Activation::kTanh},           {"Identity", Activation::kIdentity},
      {"GELU", Activation::kGeluErf},        {"ReLU", Activation::kRelu},
      {"SiLU", Activation::kSilu},           {"Sigmoid", Activation::kSigmoid},
      {"ReLU6", Activation::kRelu6},         {"LeakyReLU", Activation::kLeakyRelu},
      {"Hardswish", Activation::kHardswish}, {"Mish", Activation::kMish}};
  const std::string function = reader.text({kKey}, "torch.nn.modules.activation.Tanh");
  std::vector<std::string_view> known;
  for (const auto& [name, activation] : kClasses) {
    if (function.starts_with(kTorch) && module_kind(function) == name) return activation;
    known.push_back(name);
  }
  reader.unsupported(kKey, "one of torch.nn's {}", fmt::join(known, ", "));
}

}  // namespace

std::string module_kind(const std::string& type) { return type.substr(type.rfind('.') + 1); }

Module module_of(const std::string& type, const std::string& path) {
  const bool known = type.starts_with("sentence_transformers.") || type.starts_with("pylate.");
  return {known ? module_kind(type) : "", path};
}

std::vector<Module> listed_modules(ModelFolder& folder) {
  std::vector<Module> modules;
  if (!folder.has(kModules)) return modules;
  folder.list(kModules).for_each_object([&](const ConfigReader& module) {
    modules.push_back(module_of(module.text({"type"}, ""), module.text({"path"}, "")));
  });
  return modules;
}

bool makes_token_vectors(const std::vector<Module>& modules) {
  const auto has = [&](std::string_view kind) {
    return std::ranges::any_of(modules, [&](const Module& each) { return each.kind == kind; });
  };
  return has("Transformer") && has("Dense") && !has("Pooling");
}

ModelPath place_of(const ModelFolder& folder, const fs::path& path) {
  const bool is_below =
      !path.empty() && path.is_relative() && std::ranges::find(path, "..") == path.end();
  if (!is_below || path.native().find('\0') != path.native().npos) {
    refuse<ModelError>("{}: a module's path is {}; it must be a folder in the model's own",
                       folder.path().string(), value_text(path.string()));
  }
  refuse_link_out(folder.path(), folder.path() / path);
  return folder.path() / path;
}

std::vector<float> read_tensor(const ModelPath& folder, const std::string& name,
                               const std::vector<int64_t>& shape) {
  const auto weights = TensorFiles::open(folder);
  const Tensor tensor = weights->tensor(name);
  if (tensor.shape != shape) {
    refuse<ModelError>("{}: the tensor '{}' has shape {}; config.json asks for {}",
                       weights->where(), name, shape_text(tensor.shape), shape_text(shape));
  }
  std::vector<float> values = tensor.to_float();
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
    refuse<ModelError>(
        "{}: the tensor '{}' holds NaN, an infinity or a number that is too large for float32",
        weights->where(), name);
  }
  return values;
}

void require_names(const ConfigReader& reader, const char* value) {
  for (const char* const key : {"module_input_name", "module_output_name"}) {
    if (reader.text({key}, value) != value) {
      reader.unsupported(key, "\"{}\"", value);
    }
  }
}

Projection read_dense(const ConfigReader& reader, const ModelPath& folder, int64_t width,
                      const char* value) {
  require_names(reader, value);
  if (reader.boolean({"use_residual"}, false)) {
    reader.unsupported("use_residual", "false");
  }
  Projection projection;
  projection.in = reader.integer({"in_features"}, 1, kMaxDenseWidth);
  projection.out = reader.integer({"out_features"}, 1, kMaxDenseWidth);
  if (projection.in != width)
    reader.refuse("in_features", "{}, the width of what comes before", width);
  projection.activation = read_function(reader);
  projection.weight = read_tensor(folder, "linear.weight", {projection.out, projection.in});
  projection.bias = reader.boolean({"bias"}, true)
                        ? read_tensor(folder, "linear.bias", {projection.out})
                        : std::vector<float>(projection.out);
  return projection;
}

}  // namespace phasor::internal
