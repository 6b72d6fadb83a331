#include "files/config_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "files/files.h"
#include "phasor/errors.h"

namespace phasor::internal {

std::set<std::string> AskedKeys::others(const nlohmann::json& root) const {
  std::set<std::string> others;
  find_others(root, "", others);
  return others;
}

void AskedKeys::find_others(const nlohmann::json& value, const std::string& path,
                            std::set<std::string>& others) const {
  if (value.is_array()) {
    for (const nlohmann::json& element : value) find_others(element, path, others);
  }
  const auto asked = asked_.find(&value);
  if (!value.is_object() || (asked == asked_.end() && !path.empty())) return;
  for (const auto& [key, member] : value.items()) {
    const std::string name = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (asked != asked_.end() && asked->second.contains(key)) {
      find_others(member, name, others);
    } else if (!member.empty()) {  // null is empty, too
      others.insert(name);
    }
  }
}

ConfigReader::Found ConfigReader::find(Keys keys) const {
  Found first;
  for (const std::string_view key : keys) {
    const auto found = object_.find(std::string(key));
    if (found == object_.end()) continue;
    if (asked_ != nullptr) asked_->add(object_, found.key());
    if (first.value == nullptr && !found->is_null()) first = {key, &*found};
  }
  return first;
}

void ConfigReader::agree(Keys keys) const {
  const Found first = find(keys);
  for (const std::string_view key : keys) {
    const nlohmann::json* const other = value(key);
    if (other == nullptr || *other == *first.value) continue;
    refuse(key, "{}, as {} is: both name one value; remove the one that is not this family's",
           value_text(*first.value), first.key);
  }
}

void ConfigReader::throw_error(ErrorCode code, const std::string& what) const {
  throw ModelError(fmt::format("{}: {}", where_, what), code);
}

void ConfigReader::refuse_value(ErrorCode code, std::string_view key,
                                const std::string& must_be) const {
  const auto found = object_.find(std::string(key));
  const std::string is = found == object_.end() ? "missing" : value_text(*found);
  fail(code, "{} is {}; it must be {}", key, is, must_be);
}

void ConfigReader::missing(Keys keys) const {
  fail("the key {} is missing", fmt::join(keys.begin(), keys.end(), " or "));
}

template <typename T, typename Fits, typename... Args>
T ConfigReader::read(Keys keys, const std::optional<T>& fallback, const Fits& fits,
                     fmt::format_string<Args...> must_be, Args&&... args) const {
  const auto [key, value] = find(keys);
  if (value == nullptr && !fallback) missing(keys);
  if (value == nullptr) return *fallback;
  if (!fits(*value)) refuse(key, must_be, std::forward<Args>(args)...);
  return value->template get<T>();
}

int64_t ConfigReader::integer(Keys keys, int64_t min, int64_t max,
                              std::optional<int64_t> fallback) const {
  const auto fits = [=](const nlohmann::json& value) {
    if (value.is_number_unsigned())
      return value.get<uint64_t>() <= static_cast<uint64_t>(max) && value.get<int64_t>() >= min;
    return value.is_number_integer() && value.get<int64_t>() >= min && value.get<int64_t>() <= max;
  };
  return read(keys, fallback, fits, "a whole number from {} to {}", min, max);
}

double ConfigReader::number(Keys keys, double above, double max,
                            std::optional<double> fallback) const {
  const auto fits = [=](const nlohmann::json& value) {
    return value.is_number() && value.get<double>() > above && value.get<double>() <= max;
  };
  return read(keys, fallback, fits, "a number above {} and at most {}", above, max);
}

bool ConfigReader::boolean(Keys keys, std::optional<bool> fallback) const {
  return read(keys, fallback, std::mem_fn(&nlohmann::json::is_boolean), "true or false");
}

std::string ConfigReader::text(Keys keys, std::optional<std::string> fallback) const {
  return read(keys, fallback, std::mem_fn(&nlohmann::json::is_string), "a text in quotation marks");
}

std::vector<std::string> ConfigReader::texts(Keys keys) const {
  const auto fits = [](const nlohmann::json& value) {
    return value.is_array() &&
           std::ranges::all_of(value, [](const auto& v) { return v.is_string(); });
  };
  return read(keys, std::optional(std::vector<std::string>()), fits,
              "a list of texts in quotation marks");
}

std::vector<int64_t> ConfigReader::counts(std::string_view key) const {
  const auto is_count = [](const nlohmann::json& value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{INT64_MAX};
  };
  const auto fits = [&](const nlohmann::json& value) {
    return value.is_array() && std::ranges::all_of(value, is_count);
  };
  return read(Keys{key}, std::optional<std::vector<int64_t>>(), fits,
              "a list of whole numbers from 0 up");
}

ConfigReader ConfigReader::object(std::string_view key) const {
  const auto [found, value] = find({key});
  if (value == nullptr) missing({key});
  if (!value->is_object()) refuse(key, "an object {{…}}");
  return inside(key, *value);
}

ConfigReader ConfigReader::inside(std::string_view name, const nlohmann::json& object) const {
  if (asked_ != nullptr) asked_->open(object);
  return ConfigReader(fmt::format("{}: {}", where_, name), object, asked_);
}

void ConfigReader::for_each_object(std::string_view key,
                                   const std::function<void(const ConfigReader&)>& visit) const {
  const nlohmann::json* const list = value(key);
  if (list == nullptr) return;
  const bool good =
      list->is_array() && std::ranges::all_of(*list, [](const auto& v) { return v.is_object(); });
  if (!good) refuse(key, "a list of objects [{{…}}, …]");
  for (size_t i = 0; i < list->size(); ++i) {
    visit(inside(fmt::format("{} {}", key, i), (*list)[i]));
  }
}

void ConfigReader::for_each_object(const std::function<void(const ConfigReader&)>& visit) const {
  for (size_t i = 0; i < object_.size(); ++i) {
    if (!object_[i].is_object())
      fail("entry {} is {}; it must be an object {{…}}", i, value_text(object_[i]));
    visit(inside(fmt::format("entry {}", i), object_[i]));
  }
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : object_.items()) all.push_back(key);
  return all;
}

}  // namespace phasor::internal
