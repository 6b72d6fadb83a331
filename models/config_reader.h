// Typed, checked access to the keys of a config.json, with messages that name key and value.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/errors.h"
#include "phasor/names.h"

namespace phasor::internal {

inline constexpr int64_t kMaxRows = int64_t{1} << 24;  // of vocabularies and position tables

/// Reads keys from one JSON object. A key whose value is null counts as missing. All functions
/// throw ModelError: for a value of the wrong type or out of range, and for a missing key without a
/// fallback.
class ConfigReader {
 public:
  /// Alternative names of one key; the first that exists is read.
  using Keys = std::initializer_list<std::string_view>;

  /// `object` is borrowed; `where` names it in messages ("models/x/config.json").
  ConfigReader(std::string where, const nlohmann::json& object)
      : where_(std::move(where)), object_(object) {}

  int64_t integer(Keys keys, int64_t min, int64_t max, std::optional<int64_t> fallback = {}) const;
  double number(Keys keys, double above, double max, std::optional<double> fallback = {}) const;
  bool boolean(Keys keys, std::optional<bool> fallback = {}) const;
  std::string text(Keys keys, std::optional<std::string> fallback = {}) const;
  std::vector<std::string> texts(Keys keys) const;  // a list; empty if missing

  /// The enum with this name (see to_string()), which must be one of `values`.
  template <typename Enum>
  Enum choice(std::string_view key, std::initializer_list<Enum> values) const {
    const std::string name = text({key});
    std::vector<std::string_view> names;
    for (const Enum value : values) {
      if (to_string(value) == name) return value;
      names.push_back(to_string(value));
    }
    refuse(key, fmt::format("one of: {}", fmt::join(names, ", ")));
  }

  bool has(std::string_view key) const { return find({key}).value != nullptr; }
  /// Null if the key is missing.
  const nlohmann::json* value(std::string_view key) const { return find({key}).value; }
  /// The object under `key`, read with "where: key" in messages.
  ConfigReader object(std::string_view key) const;
  /// The keys that are not among `known`.
  std::vector<std::string> keys_besides(std::span<const std::string_view> known) const;

  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::kInvalidModel) const;
  /// "key is value; it must be …".
  [[noreturn]] void refuse(std::string_view key, std::string_view must_be,
                           ErrorCode code = ErrorCode::kInvalidModel) const;

 private:
  struct Found {
    std::string_view key;
    const nlohmann::json* value = nullptr;
  };
  Found find(Keys keys) const;
  [[noreturn]] void missing(Keys keys) const;

  std::string where_;
  const nlohmann::json& object_;
};

}  // namespace phasor::internal
