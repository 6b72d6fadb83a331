// Typed, checked access to the keys of a JSON object, with messages that name key and value, and a
// record of the keys that were asked for.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "phasor/errors.h"
#include "phasor/names.h"

namespace phasor::internal {

inline constexpr int64_t kMaxRows = int64_t{1} << 24;  // of vocabularies and position tables

/// The keys that were asked for in the objects of one JSON document, which must outlive it.
class AskedKeys {
 public:
  /// A reader looks into `object`.
  void open(const nlohmann::json& object) { asked_[&object]; }
  /// `key` is the document's own string.
  void add(const nlohmann::json& object, std::string_view key) { asked_[&object].insert(key); }
  /// The keys of `root` that nobody asked for, except those whose value is null or empty. A key of
  /// an object inside it is written "rope_parameters.beta_fast"; such an object is looked into if a
  /// reader looked into it.
  std::set<std::string> others(const nlohmann::json& root) const;

 private:
  void find_others(const nlohmann::json& value, const std::string& path,
                   std::set<std::string>& others) const;

  std::unordered_map<const nlohmann::json*, std::set<std::string_view>> asked_;
};

/// Reads keys from one JSON object. A key whose value is null counts as missing. All functions
/// throw ModelError: for a value of the wrong type or out of range, and for a missing key without
/// fallback.
class ConfigReader {
 public:
  /// Alternative names of one key; the first that exists is read.
  using Keys = std::initializer_list<std::string_view>;

  /// `object` is borrowed; `where` names it in messages ("models/x/config.json"). Every key that is
  /// asked for, also of the objects inside it, is added to `asked`, borrowed, if that is given.
  ConfigReader(std::string where, const nlohmann::json& object, AskedKeys* asked = nullptr)
      : where_(std::move(where)), object_(object), asked_(asked) {}

  int64_t integer(Keys keys, int64_t min, int64_t max, std::optional<int64_t> fallback = {}) const;
  double number(Keys keys, double above, double max, std::optional<double> fallback = {}) const;
  bool boolean(Keys keys, std::optional<bool> fallback = {}) const;
  std::string text(Keys keys, std::optional<std::string> fallback = {}) const;
  std::vector<std::string> texts(Keys keys) const;          // a list; empty if missing
  std::vector<int64_t> counts(std::string_view key) const;  // a list of numbers from 0 up

  /// The enum with this name (see to_string()), which must be one of `values`.
  template <typename Enum>
  Enum choice(std::string_view key, std::initializer_list<Enum> values,
              std::optional<Enum> fallback = {}) const {
    if (fallback && !has(key)) return *fallback;
    const std::string name = text({key});
    std::vector<std::string_view> names;
    for (const Enum value : values) {
      if (to_string(value) == name) return value;
      names.push_back(to_string(value));
    }
    refuse(key, "one of: {}", fmt::join(names, ", "));
  }

  /// Throws where two of these names of one value are there, with different values.
  void agree(Keys keys) const;
  bool has(std::string_view key) const { return find({key}).value != nullptr; }
  /// Null if the key is missing.
  const nlohmann::json* value(std::string_view key) const { return find({key}).value; }
  /// The object under `key`, read with "where: key" in messages.
  ConfigReader object(std::string_view key) const;
  /// Visits the objects of the list under `key`, named "where: key 3" in messages; none if it is
  /// missing.
  void for_each_object(std::string_view key,
                       const std::function<void(const ConfigReader&)>& visit) const;
  /// Visits the objects of this reader of a list.
  void for_each_object(const std::function<void(const ConfigReader&)>& visit) const;
  const std::string& where() const { return where_; }
  /// All keys. Does not count as asking for them.
  std::vector<std::string> keys() const;

  /// "where: what", formatted.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> what, Args&&... args) const {
    throw_error(ErrorCode::kInvalidModel, fmt::format(what, std::forward<Args>(args)...));
  }
  template <typename... Args>
  [[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> what, Args&&... args) const {
    throw_error(code, fmt::format(what, std::forward<Args>(args)...));
  }
  /// "key is value; it must be …".
  template <typename... Args>
  [[noreturn]] void refuse(std::string_view key, fmt::format_string<Args...> must_be,
                           Args&&... args) const {
    refuse_value(ErrorCode::kInvalidModel, key, fmt::format(must_be, std::forward<Args>(args)...));
  }
  /// The same with the code kUnsupported.
  template <typename... Args>
  [[noreturn]] void unsupported(std::string_view key, fmt::format_string<Args...> must_be,
                                Args&&... args) const {
    refuse_value(ErrorCode::kUnsupported, key, fmt::format(must_be, std::forward<Args>(args)...));
  }

 private:
  struct Found {
    std::string_view key;
    const nlohmann::json* value = nullptr;
  };
  Found find(Keys keys) const;
  ConfigReader inside(std::string_view name, const nlohmann::json& object) const;
  /// The value under `keys`, which must fit; `fallback` if it is missing.
  template <typename T, typename Fits, typename... Args>
  T read(Keys keys, const std::optional<T>& fallback, const Fits& fits,
         fmt::format_string<Args...> must_be, Args&&... args) const;
  [[noreturn]] void missing(Keys keys) const;
  [[noreturn]] void throw_error(ErrorCode code, const std::string& what) const;
  [[noreturn]] void refuse_value(ErrorCode code, std::string_view key,
                                 const std::string& must_be) const;

  std::string where_;
  const nlohmann::json& object_;
  AskedKeys* asked_;
};

}  // namespace phasor::internal
