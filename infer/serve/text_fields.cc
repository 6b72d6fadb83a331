#include "infer/serve/text_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "infer/serve/service.h"
#include "phasor/fields.h"

namespace infer {
namespace {

using phasor::FieldType;
using phasor::VectorKind;

/// What HTTP's protocols do where a request says nothing, of the fields that its call uses.
struct Preset {
  std::string_view field, value;
};
constexpr Preset kPresets[] = {{"normalize", "true"}, {"overflow", "truncate"}};

std::vector<std::string_view> values_of(const Spelling& spelling) {
  if (spelling.has_values()) return {spelling.values[0].said, spelling.values[1].said};
  const phasor::Field& field = phasor::field(spelling.field);
  if (field.values == nullptr) return {};
  return {field.values().begin(), field.values().end()};
}

bool is_flag(const Spelling& spelling) {
  const FieldType type = phasor::field(spelling.field).type;
  return spelling.values[0].said == "true" || type == FieldType::kFlag ||
         type == FieldType::kSwitch;
}

/// As the request says it; empty: it says nothing.
std::string said(const Fields& fields, const Spelling& spelling) {
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

/// As phasor/fields.h has it. Refuses what is no value.
std::string meant(const Spelling& spelling, const std::string& said) {
  const std::vector<std::string_view> values = values_of(spelling);
  const auto found = std::ranges::find_if(values, [&](std::string_view value) {
    return spelling.has_values() ? equal_letters(value, said) : value == said;
  });
  if (values.empty()) return said;
  if (found == values.end()) {
    invalid(fmt::format("`{}` must be \"{}\" or \"{}\"", spelling.name,
                        fmt::join(values.begin(), values.end() - 1, "\", \""), values.back()));
  }
  return spelling.has_values() ? std::string(spelling.values[found - values.begin()].means) : said;
}

/// What is read where a request says nothing; empty: nothing, or what it cannot say.
std::string otherwise(const Spelling& spelling) {
  const phasor::Field& field = phasor::field(spelling.field);
  const auto preset = std::ranges::find(kPresets, spelling.field, &Preset::field);
  std::string value;
  if (preset != std::end(kPresets))
    value = preset->value;
  else if (field.type == FieldType::kFlag || field.type == FieldType::kName)
    value = field.text({});
  if (!spelling.has_values()) return value;
  const auto found = std::ranges::find(spelling.values, value, &Spelling::Value::means);
  return found == spelling.values.end() ? std::string() : std::string(found->said);
}

}  // namespace

phasor::TextOptions read_options(const Fields& fields, Lists lists, uint32_t uses) {
  phasor::TextOptions options;
  for (size_t kind = 0; kind < phasor::names<VectorKind>().all.size(); ++kind) {
    if ((uses >> kind & 1) != 0) options.kinds.push_back(static_cast<VectorKind>(kind));
  }
  for (const auto& [name, value] : kPresets) {
    const phasor::Field& field = phasor::field(name);
    if ((field.uses & uses) != 0) field.read(options, value);
  }
  read_more(fields, lists, options);
  return options;
}

void read_more(const Fields& fields, Lists lists, phasor::TextOptions& options) {
  for (const Spellings spellings : lists) {
    for (const Spelling& spelling : spellings) {
      if (const std::string text = said(fields, spelling); !text.empty())
        phasor::field(spelling.field).read(options, meant(spelling, text));
    }
  }
}

void write_schema(const Spelling& spelling, phasor::internal::JsonWriter& json) {
  const phasor::Field& field = phasor::field(spelling.field);
  const std::string value = otherwise(spelling);
  std::string description(field.help);
  json.key(spelling.name).object([&] {
    if (is_flag(spelling)) {
      json.member("type", "boolean");
      if (!value.empty()) json.member("default", value == "true");
      for (const auto& [said, means] : spelling.values)
        if (!said.empty()) description += fmt::format("; {}: {}", said, means);
    } else if (field.type == FieldType::kCount) {
      json.member("type", "integer", "minimum", 1);
    } else if (const auto values = values_of(spelling); !values.empty()) {
      json.member("enum", values);
      if (!value.empty()) json.member("default", value);
    } else {
      json.member("type", "string");
    }
    json.member("description", description);
  });
}

}  // namespace infer
