// The enums by name, as config files, the command line and JSON spell them.
//
//     to_string(Overflow::kClamp)    "clamp"
//     parse<Overflow>("clamp")       Overflow::kClamp
//     parse_list<VectorKind>("dense,sparse")
//     names<Overflow>().all          "error", "truncate", …, in the order of the enum
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// The names of an enum's values.
struct EnumNames {
  std::string_view what;  // the enum in messages: "overflow policy"
  std::span<const std::string_view> all;
};

/// Defined for every enum of the public headers but Hook, which has paths: see hook_path().
template <typename Enum>
const EnumNames& names();

/// Throws InvalidArgument if `value` is not in the enum.
void check_value(const EnumNames& names, size_t value);

/// The index of `name`. Throws InvalidArgument listing the valid names.
size_t index_of(const EnumNames& names, std::string_view name);

/// The name of `value`, or "?" if it is outside the enum.
template <typename Enum>
requires std::is_enum_v<Enum> std::string_view to_string(Enum value) {
  const auto all = names<Enum>().all;
  const auto i = static_cast<size_t>(value);
  return i < all.size() ? all[i] : std::string_view("?");
}

/// The inverse of to_string(). Throws as index_of().
template <typename Enum>
requires std::is_enum_v<Enum> Enum parse(std::string_view name) {
  return static_cast<Enum>(index_of(names<Enum>(), name));
}

/// One or several, in their order, with commas between.
template <typename Enum>
std::vector<Enum> parse_list(std::string_view text) {
  std::vector<Enum> all;
  for (;;) {
    const std::string_view name = text.substr(0, text.find(','));
    all.push_back(parse<Enum>(name));
    if (name.size() == text.size()) return all;
    text.remove_prefix(name.size() + 1);
  }
}

/// The inverse of parse_list().
template <typename Enum>
requires std::is_enum_v<Enum> std::string to_string(const std::vector<Enum>& all) {
  std::string text;
  for (const Enum each : all) text.append(text.empty() ? "" : ",").append(to_string(each));
  return text;
}

}  // namespace phasor
