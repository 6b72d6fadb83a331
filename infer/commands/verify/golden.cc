#include "infer/commands/verify/golden.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/config_reader.h"
#include "infer/files.h"

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

std::vector<int32_t> whole_numbers(const ConfigReader& reader, const json& list, const char* what) {
  std::vector<int32_t> numbers;
  for (const json& number : list) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() > uint64_t{INT32_MAX}) {
      reader.fail("the {} {} must be a whole number from 0 to {}", what,
                  phasor::internal::value_text(number), INT32_MAX);
    }
    numbers.push_back(number.get<int32_t>());
  }
  return numbers;
}

GoldenItem read_item(const ConfigReader& reader) {
  GoldenItem item;
  const auto text = [&](const char* name) {
    constexpr size_t kMostBytes = 1 << 20;
    std::string text = reader.text({name});
    if (text.size() <= kMostBytes) return text;
    reader.fail("{} has {} bytes; at most {} are read", name, text.size(), kMostBytes);
  };
  if (reader.has("text")) item.text = text("text");
  if (reader.has("text_pair")) item.text_pair = text("text_pair");
  const json* const ids = reader.value("ids");
  if (ids == nullptr || !ids->is_array()) reader.refuse("ids", "a list of token ids");
  item.ids = whole_numbers(reader, *ids, "token id");
  if (const json* const types = reader.value("token_type_ids")) {
    if (!types->is_array() || types->size() != ids->size()) {
      reader.refuse("token_type_ids", "a list with one for each of the ids");
    }
    item.token_types = whole_numbers(reader, *types, "token type");
  }
  if (const json* const logits = reader.value("logits")) {
    const bool good = logits->is_array() && !logits->empty() &&
                      std::ranges::all_of(*logits, [](const json& x) { return x.is_number(); });
    if (!good) reader.refuse("logits", "a list of numbers");
    item.logits = logits->get<std::vector<float>>();
  }
  return item;
}

Golden read_golden(const phasor::internal::ModelPath& path) {
  const phasor::internal::JsonDocument root = phasor::internal::read_json_object(path);
  const ConfigReader reader(path.string(), *root);
  Golden golden;
  golden.atol = tolerance(reader, "atol");
  golden.rtol = tolerance(reader, "rtol");
  const json* const items = reader.value("items");
  if (items == nullptr || !items->is_array() || items->empty()) {
    reader.refuse("items", R"(a list of objects like {{"text": "Tom bit a dog.", "ids": [5, 9]}})");
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

Golden load_golden(const phasor::internal::ModelPath& folder) {
  const phasor::internal::ModelPath path = folder / "golden.json";
  if (!phasor::internal::is_file(path)) {
    throw phasor::InvalidArgument(fmt::format(
        "cannot read {}; verify needs reference activations beside the model", path.string()));
  }
  Golden golden = as_input("", [&] { return read_golden(path); });
  const phasor::internal::ModelPath tensors = folder / "golden.safetensors";
  const bool has_logits =
      std::ranges::any_of(golden.items, [](const auto& item) { return !item.logits.empty(); });
  if (!has_logits || phasor::internal::is_file(tensors)) {
    golden.tensors = phasor::SafetensorsFile::open(phasor::internal::within_folder(tensors));
  }
  return golden;
}

}  // namespace infer
