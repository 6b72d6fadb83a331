// Reference activations that lie beside a model: golden.json and golden.safetensors.
#include "infer/golden.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "phasor/errors.h"

namespace infer {

bool Golden::contains(int64_t item, const std::string& name) const {
  return tensors->contains(fmt::format("{}.{}", item, name));
}

phasor::Tensor Golden::tensor(int64_t item, const std::string& name) const {
  return tensors->tensor(fmt::format("{}.{}", item, name));
}

Golden load_golden(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "golden.json";
  std::ifstream file(path);
  if (!file) {
    throw phasor::InvalidArgument(fmt::format(
        "cannot read {}; verify needs reference activations beside the model", path.string()));
  }
  Golden golden;
  try {
    const nlohmann::json json = nlohmann::json::parse(file);
    golden.atol = json.at("atol").get<double>();
    golden.rtol = json.at("rtol").get<double>();
    for (const nlohmann::json& entry : json.at("items")) {
      GoldenItem& item = golden.items.emplace_back();
      if (entry.contains("text") && !entry["text"].is_null()) {
        item.text = entry["text"].get<std::string>();
      }
      item.ids = entry.at("ids").get<std::vector<int32_t>>();
    }
  } catch (const nlohmann::json::exception& error) {
    throw phasor::InvalidArgument(fmt::format("{}: {}", path.string(), error.what()));
  }
  if (golden.items.empty()) {
    throw phasor::InvalidArgument(fmt::format("{}: there are no items", path.string()));
  }
  golden.tensors = phasor::SafetensorsFile::open(folder / "golden.safetensors");
  return golden;
}

}  // namespace infer
