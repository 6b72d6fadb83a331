#include "infer/cli/field_options.h"

#include <fmt/ranges.h>

#include <utility>

#include "files/utf8.h"

namespace infer {
namespace {

using phasor::Field;
using phasor::FieldType;

/// Names of options that are older than the fields' own.
constexpr std::pair<std::string_view, std::string_view> kOlder[] = {{"prompt", "--prefix"},
                                                                    {"parse_special", "--special"}};

/// Those that few people use: help names them alone.
constexpr std::string_view kRare[] = {"prompt_name", "parse_special", "truncation_side",
                                      "offset_unit", "batch_tokens"};

std::string own_option(const Field& field) {
  std::string name = fmt::format("--{}", field.name);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace

std::string option_of(const Field& field) {
  const auto older =
      std::ranges::find(kOlder, field.name, [](const auto& each) { return each.first; });
  const std::string own = own_option(field);
  return older == std::end(kOlder) ? own : fmt::format("{},{}", own, older->second);
}

std::string help_of(const Field& field) {
  if (field.values == nullptr) return std::string(field.help);
  return fmt::format("{}: {}{}", field.help, fmt::join(field.values(), ", "),
                     field.type == FieldType::kNames ? " (with commas)" : "");
}

std::vector<std::string> commands_of(const Field& field) {
  std::vector<std::string> commands, kinds;
  const auto names = phasor::names<phasor::VectorKind>().all;
  for (size_t kind = 0; kind < names.size(); ++kind)
    if ((field.uses & (1U << kind)) != 0) kinds.emplace_back(names[kind]);
  if (!kinds.empty())
    commands.push_back(kinds.size() == names.size()
                           ? "embed"
                           : fmt::format("embed --kinds {}", fmt::join(kinds, ",")));
  for (const auto& [use, name] : {std::pair(phasor::kUseClassify, "classify"),
                                  {phasor::kUseLabel, "label"},
                                  {phasor::kUseRank, "rank"}})
    if ((field.uses & use) != 0) commands.emplace_back(name);
  return commands;
}

void add_fields(CommandLine& line, uint32_t uses, phasor::TextOptions& options) {
  for (const Field& field : phasor::fields()) {
    if ((field.uses & uses) == 0 || field.type == FieldType::kOther) continue;
    const bool is_rare = std::ranges::count(kRare, field.name) > 0;
    const std::string names = option_of(field), help = is_rare ? "" : help_of(field);
    const CommandLine::Take take = [&field, &options, names](const std::string& text) {
      of_option(names, [&] {
        if (phasor::internal::to_valid_utf8(text).invalid_bytes > 0)
          throw phasor::InvalidArgument("it is not valid UTF-8");
        field.read(options, text);
        if (field.check != nullptr) field.check(field, options);
      });
    };
    if (field.type == FieldType::kFlag) {
      line.flag(names, help, [take] { take("true"); });
    } else if (field.type == FieldType::kSwitch) {
      const std::string negated = "--no-" + names.substr(2);
      line.flag(names, help, [take] { take("true"); });
      line.flag(negated, "", [take, &field, &options, names, negated] {
        if (field.is_set(options))
          throw UsageError(fmt::format("{} and {} exclude each other; give one", names, negated));
        take("false");
      });
    } else {
      line.option(names,
                  field.type == FieldType::kCount   ? "N"
                  : field.type == FieldType::kName  ? "NAME"
                  : field.type == FieldType::kNames ? "NAMES"
                                                    : "TEXT",
                  help, take);
    }
  }
}

void check_options(const phasor::TextOptions& options, uint32_t uses, std::string_view command) {
  for (const Field& field : phasor::fields()) {
    if ((field.uses & uses) == 0 && field.is_set(options))
      throw UsageError(fmt::format("{} does not use {}, an option of infer {}", command,
                                   own_option(field), fmt::join(commands_of(field), ", infer ")));
  }
  try {
    check_fields(options, uses, command);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace infer
