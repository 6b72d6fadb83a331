// The fields of a request's JSON, and refusals where they are wrong.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infer/serve/queue.h"

namespace infer {

/// Ends a request.
struct Refusal {
  Failure failure;
};
template <typename... Args>
[[noreturn]] void refuse(int status, const char* type, fmt::format_string<Args...> message,
                         Args&&... args) {
  throw Refusal{{status, type, fmt::format(message, std::forward<Args>(args)...)}};
}
template <typename... Args>
[[noreturn]] void invalid(fmt::format_string<Args...> message, Args&&... args) {
  refuse(422, "Validation", message, std::forward<Args>(args)...);
}
/// 422 where the value of a field is none of these.
void check_one_of(std::string_view field, std::string_view value,
                  const std::vector<std::string_view>& values);

/// "a list", "an object", "a number" …
std::string_view kind_of(const nlohmann::json& value);

/// How many texts a request may have, and the option that says so.
struct MostTexts {
  int64_t texts;
  const char* option = "";  // " (--max-texts)"
};

/// Borrows the JSON, and remembers for which fields it was asked. Each function refuses what is not
/// as it says, with the field's name.
class Fields {
 public:
  explicit Fields(const nlohmann::json& body);
  /// Those of an object within the body.
  Fields(const nlohmann::json& object, const char* key);

  /// Null where it is missing or null.
  const nlohmann::json* find(const char* key) const;
  const nlohmann::json& at(const char* key) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const char* otherwise) const;
  /// A string that is not empty.
  std::string text(const char* key) const;
  /// One of these; the first where it is missing.
  std::string one_of(const char* key, const std::vector<std::string_view>& values) const;
  /// A whole number above 0; 0 where it is missing.
  int64_t count(const char* key) const;
  /// A string, or a list of them; at most `most`, and none is empty.
  std::vector<std::string> texts(const char* key, MostTexts most) const;
  /// The same, but may be missing or an empty list.
  std::vector<std::string> list(const char* key, MostTexts most) const;

  /// Refuses fields that nobody asked for: they would have changed the answer elsewhere. Not null,
  /// what is empty, and fields of a body that say nothing of the answer.
  void refuse_others() const;

  static std::string string_of(const nlohmann::json& value, const char* key);
  /// Token ids, where texts belong: of another vocabulary they would be read as other words.
  static void refuse_ids(const nlohmann::json& value, const char* key);
  static std::vector<std::string> checked(std::vector<std::string> texts, const char* key,
                                          MostTexts most);

 private:
  static std::vector<std::string> strings(const nlohmann::json& value, const char* key,
                                          MostTexts most);

  const nlohmann::json& json_;
  const bool is_body_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace infer
