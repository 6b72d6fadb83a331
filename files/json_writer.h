// Writes JSON in one line: numbers with the shortest digits, texts as valid UTF-8, bytes in base64.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace phasor::internal {

/// Builds a value member by member; commas and colons follow from what is written.
///
///     JsonWriter json;
///     json.object([&] {
///       json.member("model", name, "width", width);
///       json.key("rows").array(rows, [&](const Row& row) { write(row, json); });
///     });
class JsonWriter {
 public:
  /// With room for so many bytes.
  explicit JsonWriter(size_t bytes = 0) { text_.reserve(bytes); }

  /// `members` writes each with key() or member().
  template <std::invocable Members>
  void object(const Members& members) {
    open('{');
    members();
    text_ += '}';
  }
  /// Of these members: names, each before its value.
  template <typename... Members>
  void object(std::string_view name, const Members&... members) {
    object([&] { member(name, members...); });
  }
  /// `elements` writes each.
  template <std::invocable Elements>
  void array(const Elements& elements) {
    open('[');
    elements();
    text_ += ']';
  }
  /// `write` writes each of `values`.
  template <typename Values, typename Write>
  void array(const Values& values, const Write& write) {
    array([&] {
      for (const auto& each : values) write(each);
    });
  }
  /// Before a member's value.
  JsonWriter& key(std::string_view name) {
    value(name);
    text_ += ':';
    return *this;
  }
  /// A name and its value, or several.
  template <typename T, typename... Members>
  void member(std::string_view name, const T& member, const Members&... members) {
    key(name).value(member);
    if constexpr (sizeof...(members) > 0) this->member(members...);
  }

  /// A bool, a number, a text, a range or a map of these, an optional one, or null. Numbers of type
  /// double and float keep their type's shortest digits and a point, "12.0"; where there is none,
  /// "null".
  template <typename T>
  void value(const T& value) {
    if constexpr (std::is_null_pointer_v<T>) {
      raw("null");
    } else if constexpr (std::is_same_v<T, bool>) {
      raw(value ? "true" : "false");
    } else if constexpr (std::is_integral_v<T>) {
      raw(std::to_string(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      number(value);
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      string(value);
    } else if constexpr (requires { value.has_value(); }) {
      value ? this->value(*value) : raw("null");
    } else if constexpr (requires { typename T::mapped_type; }) {
      object([&] {
        for (const auto& [name, each] : value) member(name, each);
      });
    } else {
      array(value, [&](const auto& each) { this->value(each); });
    }
  }
  /// JSON that was written before.
  void raw(std::string_view json);

  /// Bytes so far.
  size_t size() const { return text_.size(); }
  /// What was written.
  std::string take() { return std::move(text_); }

 private:
  void separate();
  void open(char bracket);
  void number(double value);
  void number(float value);
  void string(std::string_view value);

  std::string text_;
};

/// A string of JSON.
std::string json_string(std::string_view text);

/// An object of these members, as JsonWriter::object() takes them.
template <typename... Members>
std::string json_object(const Members&... members) {
  JsonWriter json;
  json.object(members...);
  return json.take();
}

/// As RFC 4648 has it: "AAAAPw==".
std::string to_base64(std::span<const std::byte> bytes);

/// Nothing where `text` is not base64.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace phasor::internal
