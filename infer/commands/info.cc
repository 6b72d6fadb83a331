// infer info: what a model is, without running it.
#include <fmt/ranges.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/model.h"
#include "phasor/model_info.h"

namespace infer {
namespace {

using Json = nlohmann::ordered_json;

Json described(const std::shared_ptr<const phasor::Model>& model) {
  Json json = Json::parse(model_info(*model));
  try {
    json["memory"]["packed_bytes"] = phasor::Encoder(model).packed_bytes();  // looks at all weights
  } catch (const phasor::ModelError& error) {
    json["notes"].push_back(std::string("cannot be run: ") + error.what());
  }
  json["precision"]["auto"] = to_string(phasor::fastest_precision());
  for (const auto precision : {phasor::Precision::kBfloat16, phasor::Precision::kInt8}) {
    const std::string why = phasor::why_slow(precision);
    if (!why.empty()) json["precision"]["slow"][std::string(to_string(precision))] = why;
  }
  json["versions"] = versions();
  return json;
}

/// A value as people read it: "kind learned, table_rows 128".
std::string text_of(const Json& value) {
  constexpr size_t kMost = 8;  // of an array
  if (value.is_string()) return value;
  if (value.is_boolean()) return value ? "yes" : "no";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, member] : value.items()) {
    const bool bytes = key.ends_with("_bytes") && member.is_number();
    const std::string name = bytes ? key.substr(0, key.size() - 6) : key;
    const std::string text =
        bytes ? fmt::format("{:.1f} MB", member.get<double>() / 1e6) : text_of(member);
    const char* const after = member.is_object() ? ": " : " ";
    parts.push_back(value.is_array() ? text : name + after + text);
  }
  if (value.is_array() && parts.size() > kMost) {
    parts[kMost] = fmt::format("… ({} in all; --json lists them)", parts.size());
    parts.resize(kMost + 1);
  }
  const char* const between = value.is_array() ? "; " : ", ";
  return parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, between));
}

constexpr const char* kInfoFooter = R"(Examples:
  infer info
  infer info --json learned)";

}  // namespace

int info(CommandLine& line) {
  CommonOptions common;
  const std::string default_model = std::exchange(common.model, "");
  std::string model;
  line.footer(kInfoFooter);
  line.option("MODEL", "", "the same as --model", model);
  add_common(line, kLoad | kPrint, common);
  if (const auto done = line.parse()) return *done;
  if (!model.empty() && !common.model.empty())
    throw UsageError(fmt::format("info: {} and --model {}: name one of them", model, common.model));
  if (model.empty()) model = common.model.empty() ? default_model : common.model;

  Output output;
  const Json json = described(phasor::Model::load(model, load_options(common)));
  if (common.json) {
    output.write(json.dump() + "\n");
    return 0;
  }
  constexpr int kLabel = 16;
  for (const auto& [group, value] : json.items()) {
    output.show(fmt::format("{:<{}}{}\n", group, kLabel,
                            wrapped(printable(text_of(value)), kLabel, output.width())));
  }
  return 0;
}

}  // namespace infer
