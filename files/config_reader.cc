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
    refuse(key, fmt::format("{}, as {} is: they are names of one value; remove the one that is not "
                            "this family's",
                            value_text(*first.value), first.key));
  }
}

void ConfigReader::fail(std::string_view what, ErrorCode code) const {
  throw ModelError(fmt::format("{}: {}", where_, what), code);
}

void ConfigReader::refuse(std::string_view key, std::string_view must_be, ErrorCode code) const {
  const auto found = object_.find(std::string(key));
  const std::string is = found == object_.end() ? "missing" : value_text(*found);
  fail(fmt::format("{} is {}; it must be {}", key, is, must_be), code);
}

void ConfigReader::missing(Keys keys) const {
  fail(fmt::format("the key {} is missing", fmt::join(keys.begin(), keys.end(), " or ")));
}

int64_t ConfigReader::integer(Keys keys, int64_t min, int64_t max,
                              std::optional<int64_t> fallback) const {
  const auto [key, value] = find(keys);
  if (value == nullptr) {
    if (!fallback) missing(keys);
    return *fallback;
  }
  const bool too_large =
      value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(max);
  if (!value->is_number_integer() || too_large || value->get<int64_t>() < min ||
      value->get<int64_t>() > max) {
    refuse(key, fmt::format("a whole number from {} to {}", min, max));
  }
  return value->get<int64_t>();
}

double ConfigReader::number(Keys keys, double above, double max,
                            std::optional<double> fallback) const {
  const auto [key, value] = find(keys);
  if (value == nullptr) {
    if (!fallback) missing(keys);
    return *fallback;
  }
  if (!value->is_number() || !(value->get<double>() > above && value->get<double>() <= max)) {
    refuse(key, fmt::format("a number above {} and at most {}", above, max));
  }
  return value->get<double>();
}

bool ConfigReader::boolean(Keys keys, std::optional<bool> fallback) const {
  const auto [key, value] = find(keys);
  if (value == nullptr) {
    if (!fallback) missing(keys);
    return *fallback;
  }
  if (!value->is_boolean()) refuse(key, "true or false");
  return value->get<bool>();
}

std::string ConfigReader::text(Keys keys, std::optional<std::string> fallback) const {
  const auto [key, value] = find(keys);
  if (value == nullptr) {
    if (!fallback) missing(keys);
    return *fallback;
  }
  if (!value->is_string()) refuse(key, "a text in quotation marks");
  return value->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(Keys keys) const {
  const auto [key, value] = find(keys);
  if (value == nullptr) return {};
  const bool good = value->is_array() && std::all_of(value->begin(), value->end(),
                                                     [](const auto& v) { return v.is_string(); });
  if (!good) refuse(key, "a list of texts in quotation marks");
  return value->get<std::vector<std::string>>();
}

ConfigReader ConfigReader::object(std::string_view key) const {
  const auto [found, value] = find({key});
  if (value == nullptr) missing({key});
  if (!value->is_object()) refuse(key, "an object {…}");
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
  if (!good) refuse(key, "a list of objects [{…}, …]");
  for (size_t i = 0; i < list->size(); ++i) {
    visit(inside(fmt::format("{} {}", key, i), (*list)[i]));
  }
}

void ConfigReader::for_each_object(const std::function<void(const ConfigReader&)>& visit) const {
  for (size_t i = 0; i < object_.size(); ++i) {
    if (!object_[i].is_object()) {
      fail(fmt::format("entry {} is {}; it must be an object {{…}}", i, value_text(object_[i])));
    }
    visit(inside(fmt::format("entry {}", i), object_[i]));
  }
}

std::vector<std::string> ConfigReader::keys() const { return keys_besides({}); }

std::vector<std::string> ConfigReader::keys_besides(std::span<const std::string_view> known) const {
  std::vector<std::string> others;
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) others.push_back(key);
  }
  return others;
}

}  // namespace phasor::internal
