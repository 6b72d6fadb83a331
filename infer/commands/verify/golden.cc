#include "infer/commands/verify/golden.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "infer/files/plain_file.h"
#include "models/config_reader.h"

namespace infer {
namespace {

using nlohmann::json;
using phasor::internal::ConfigReader;

double tolerance(const ConfigReader& reader, const char* key) {
  const json* const value = reader.value(key);
  const bool good = value != nullptr && value->is_number() && value->get<double>() >= 0;
  if (!good) reader.refuse(key, "a number from 0 up");
  return value->get<double>();
}

GoldenItem read_item(const ConfigReader& reader) {
  GoldenItem item;
  if (reader.has("text")) item.text = reader.text({"text"});
  const json* const ids = reader.value("ids");
  if (ids == nullptr || !ids->is_array()) reader.refuse("ids", "a list of token ids");
  for (const json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{INT32_MAX}) {
      reader.fail(fmt::format("the token id {} must be a whole number from 0 to {}",
                              phasor::internal::value_text(id), INT32_MAX));
    }
    item.ids.push_back(id.get<int32_t>());
  }
  return item;
}

Golden read_golden(const std::filesystem::path& path) {
  const json root = phasor::internal::read_json_object(path);
  const ConfigReader reader(path.string(), root);
  Golden golden;
  golden.atol = tolerance(reader, "atol");
  golden.rtol = tolerance(reader, "rtol");
  const json* const items = reader.value("items");
  if (items == nullptr || !items->is_array() || items->empty()) {
    reader.refuse("items", R"(a list of objects like {"text": "Tom bit a dog.", "ids": [5, 9]})");
  }
  for (const json& item : *items) {
    const std::string where = fmt::format("{}: item {}", path.string(), golden.items.size());
    if (!item.is_object()) {
      throw phasor::ModelError(
          fmt::format("{} is {}; it must be an object", where, phasor::internal::value_text(item)));
    }
    golden.items.push_back(read_item(ConfigReader(where, item)));
  }
  return golden;
}

}  // namespace

Golden load_golden(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "golden.json";
  if (!phasor::internal::is_file(path)) {
    throw phasor::InvalidArgument(fmt::format(
        "cannot read {}; verify needs reference activations beside the model", path.string()));
  }
  Golden golden = as_input("", [&] { return read_golden(path); });
  golden.tensors = phasor::SafetensorsFile::open(folder / "golden.safetensors");
  return golden;
}

}  // namespace infer
