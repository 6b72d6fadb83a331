#include "infer/serve/fields.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace infer {

void check_one_of(std::string_view field, std::string_view value,
                  const std::vector<std::string_view>& values) {
  if (std::ranges::find(values, value) != values.end()) return;
  invalid("`{}` must be \"{}\" or \"{}\"", field,
          fmt::join(values.begin(), values.end() - 1, "\", \""), values.back());
}

std::string_view kind_of(const nlohmann::json& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  if (value.is_string()) return "a string";
  return value.is_number() ? "a number" : value.is_null() ? "null" : "a boolean";
}

Fields::Fields(const nlohmann::json& body) : json_(body), is_body_(true) {
  if (!body.is_object()) invalid("the body must be a JSON object, not {}", kind_of(body));
}

Fields::Fields(const nlohmann::json& object, const char* key) : json_(object), is_body_(false) {
  if (!object.is_object()) invalid("`{}` must be a JSON object, not {}", key, kind_of(object));
}

const nlohmann::json* Fields::find(const char* key) const {
  asked_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::json& Fields::at(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) invalid("`{}` is missing", key);
  return *value;
}

bool Fields::flag(const char* key, bool otherwise) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) invalid("`{}` must be true or false, not {}", key, kind_of(*value));
  return value->get<bool>();
}

std::string Fields::text(const char* key, const char* otherwise) const {
  const nlohmann::json* const value = find(key);
  return value == nullptr ? otherwise : string_of(*value, key);
}

std::string Fields::one_of(const char* key, const std::vector<std::string_view>& values) const {
  const std::string text = find(key) == nullptr ? std::string(values[0]) : string_of(at(key), key);
  check_one_of(key, text, values);
  return text;
}

int64_t Fields::count(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return 0;
  if (!value->is_number_integer() || *value < 1 || *value > 1'000'000'000)
    invalid("`{}` must be a whole number above 0", key);
  return value->get<int64_t>();
}

std::string Fields::text(const char* key) const {
  std::string text = string_of(at(key), key);
  if (text.empty()) refuse(400, "Empty", "`{}` is empty", key);
  return text;
}

std::string Fields::string_of(const nlohmann::json& value, const char* key) {
  if (!value.is_string()) invalid("`{}` must be a string, not {}", key, kind_of(value));
  return value.get<std::string>();
}

void Fields::refuse_ids(const nlohmann::json& value, const char* key) {
  const nlohmann::json* item = &value;
  while (item->is_array() && !item->empty()) item = &item->front();
  if (!value.is_array() || !item->is_number()) return;
  invalid(
      "`{}` holds token ids; ids of another vocabulary would be read as other words, so send text "
      "(in LangChain: check_embedding_ctx_length=False)",
      key);
}

std::vector<std::string> Fields::texts(const char* key, MostTexts most) const {
  refuse_ids(at(key), key);
  return strings(at(key), key, most);
}

std::vector<std::string> Fields::list(const char* key, MostTexts most) const {
  const nlohmann::json* const value = find(key);
  const bool none = value == nullptr || (value->is_array() && value->empty());
  return none ? std::vector<std::string>() : strings(*value, key, most);
}

std::vector<std::string> Fields::strings(const nlohmann::json& value, const char* key,
                                         MostTexts most) {
  if (value.is_string()) return checked({value.get<std::string>()}, key, most);
  if (!value.is_array())
    invalid("`{}` must be a string or a list of strings, not {}", key, kind_of(value));
  std::vector<std::string> texts;
  for (const nlohmann::json& item : value) {
    if (item.is_array()) invalid("`{}` holds a list in a list; send one list of strings", key);
    if (!item.is_string())
      invalid("`{0}` must be a string or a list of strings; `{0}[{1}]` is {2}", key, texts.size(),
              kind_of(item));
    texts.push_back(item.get<std::string>());
  }
  return checked(std::move(texts), key, most);
}

void Fields::refuse_others() const {
  constexpr std::array<std::string_view, 8> kHarmless = {
      "id", "metadata", "model", "priority", "request_id", "safety_identifier", "store", "user"};
  for (const auto& [key, value] : json_.items()) {
    const bool empty = value.is_null() || value == "" || (value.is_structured() && value.empty());
    const bool harmless = is_body_ && std::ranges::find(kHarmless, key) != kHarmless.end();
    if (empty || harmless || asked_.contains(key)) continue;
    if (is_body_) asked_.insert("model");  // which is not asked for where there is one
    invalid("`{:.100}` is not known here; these are: {}", key, fmt::join(asked_, ", "));
  }
}

std::vector<std::string> Fields::checked(std::vector<std::string> texts, const char* key,
                                         MostTexts most) {
  if (texts.empty()) refuse(400, "Empty", "`{}` is empty", key);
  if (const auto found = std::ranges::find_if(texts, &std::string::empty); found != texts.end()) {
    if (texts.size() == 1) refuse(400, "Empty", "`{}` is empty", key);
    refuse(400, "Empty", "`{}[{}]` is empty", key, found - texts.begin());
  }
  if (std::ssize(texts) > most.texts)
    refuse(413, "Validation", "`{}` has {} texts; a request may have {}{}", key, texts.size(),
           most.texts, most.option);
  return texts;
}

}  // namespace infer
