#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "infer/serve/routes.h"
#include "phasor/fields.h"

namespace infer {
namespace {

using phasor::FieldType;
using phasor::VectorKind;

// By the names of text-embeddings-inference, whose clients write left and right in two ways.
constexpr Spelling::Value kTruncate[] = {{"true", "truncate"}, {"false", "error"}};
constexpr Spelling::Value kDirections[] = {
    {"Left", "left"}, {"Right", "right"}, {"left", "left"}, {"right", "right"}};
constexpr Spelling kTruncation[] = {{"truncate", "overflow", kTruncate},
                                    {"truncation_direction", "truncation_side", kDirections}};

/// What HTTP's protocols do where a request says nothing, of the fields with these uses.
phasor::TextOptions presets(uint32_t uses) {
  phasor::TextOptions options;
  for (const auto& [name, value] : {std::pair("normalize", "true"), {"overflow", "truncate"}}) {
    const phasor::Field& field = phasor::field(name);
    if ((field.uses & uses) != 0) field.read(options, value);
  }
  return options;
}

bool has(const phasor::Field& field, uint32_t uses) { return (field.uses & uses) == uses; }

/// None: it is a flag, a number, or any text.
std::vector<std::string_view> values_of(const Spelling& spelling) {
  const phasor::Field& field = phasor::field(spelling.field);
  if (field.type != FieldType::kName) return {};
  std::vector<std::string_view> values;
  for (const Spelling::Value& value : spelling.values) values.push_back(value.said);
  if (values.empty()) values.assign(field.values().begin(), field.values().end());
  return values;
}

bool is_flag(const Spelling& spelling) {
  const FieldType type = phasor::field(spelling.field).type;
  return type == FieldType::kFlag || type == FieldType::kSwitch ||
         (!spelling.values.empty() && spelling.values[0].said == "true");
}

/// As the request says it; empty: it says nothing.
std::string text_of(const Fields& fields, const Spelling& spelling) {
  const std::string name(spelling.name);
  const char* const key = name.c_str();
  if (is_flag(spelling)) {
    if (fields.find(key) == nullptr) return {};
    return fields.flag(key, false) ? "true" : "false";
  }
  if (phasor::field(spelling.field).type == FieldType::kCount) {
    const int64_t count = fields.count(key);
    return count == 0 ? std::string() : std::to_string(count);
  }
  return fields.text(key, "");
}

/// Refuses what is no value.
void read(const Spelling& spelling, const Fields& fields, phasor::TextOptions& options) {
  const std::string text = text_of(fields, spelling);
  if (text.empty()) return;
  const auto values = values_of(spelling);
  if (!values.empty() && !is_flag(spelling)) check_one_of(spelling.name, text, values);
  const auto found = std::ranges::find(spelling.values, text, &Spelling::Value::said);
  const Spelling::Value value =
      found == spelling.values.end() ? Spelling::Value{text, text} : *found;
  phasor::field(value.field.empty() ? spelling.field : value.field).read(options, value.means);
}

/// What is read where a request says nothing; empty: nothing, or what it cannot say.
std::string otherwise(const Spelling& spelling) {
  const phasor::Field& field = phasor::field(spelling.field);
  const std::string value = field.text(presets(field.uses));
  if (spelling.values.empty()) return value;
  const auto found = std::ranges::find(spelling.values, value, &Spelling::Value::means);
  return found == spelling.values.end() ? std::string() : std::string(found->said);
}

}  // namespace

std::vector<Spelling> spellings_of(const Request& request) {
  std::vector<Spelling> all(request.own.begin(), request.own.end());
  for (const Spelling& each : kTruncation) {
    if (has(phasor::field(each.field), request.uses)) all.push_back(each);
  }
  for (const phasor::Field& field : phasor::fields()) {
    if (has(field, request.uses | phasor::kUseRequests)) all.push_back({field.name, field.name});
  }
  return all;
}

phasor::TextOptions read_options(const Request& request, uint32_t uses, const Fields& fields,
                                 const Fields& own) {
  phasor::TextOptions options = presets(uses);
  for (size_t kind = 0; kind < phasor::names<VectorKind>().all.size(); ++kind) {
    if ((uses >> kind & 1) != 0) options.kinds.push_back(static_cast<VectorKind>(kind));
  }
  for (size_t i = 0; const Spelling& spelling : spellings_of(request))
    read(spelling, i++ < request.own.size() ? own : fields, options);
  return options;
}

nlohmann::json schema_of(const Spelling& spelling) {
  const phasor::Field& field = phasor::field(spelling.field);
  const std::string value = otherwise(spelling);
  std::string description(field.help);
  nlohmann::json schema;
  if (is_flag(spelling)) {
    schema["type"] = "boolean";
    if (!value.empty()) schema["default"] = value == "true";
    for (const auto& [said, means, of] : spelling.values)
      description += fmt::format("; {}: {}", said, means);
  } else if (field.type == FieldType::kCount) {
    schema = {{"type", "integer"}, {"minimum", 1}};
  } else if (const auto values = values_of(spelling); !values.empty()) {
    schema["enum"] = values;
    if (!value.empty()) schema["default"] = value;
  } else {
    schema["type"] = "string";
  }
  schema["description"] = description;
  return schema;
}

}  // namespace infer
