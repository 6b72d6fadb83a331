// The table of the options of calls that read texts.
#include "phasor/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "files/refuse.h"
#include "files/spelling.h"
#include "phasor/names.h"

namespace phasor {

using namespace internal;

namespace {

/// How values of a type are written. By default they are not.
template <typename T>
struct Codec {
  static constexpr FieldType kType = FieldType::kOther;
};

template <>
struct Codec<bool> {
  static constexpr FieldType kType = FieldType::kFlag;
  static bool read(std::string_view text) {
    if (text == "true") return true;
    if (text == "false") return false;
    refuse<InvalidArgument>("\"{:.100}\" is neither true nor false", text);
  }
  static std::string text(bool value) { return value ? "true" : "false"; }
};

template <>
struct Codec<int64_t> {
  static constexpr FieldType kType = FieldType::kCount;
  static int64_t read(std::string_view text) {
    if (const auto number = parse_number<int64_t>(text)) return *number;
    refuse<InvalidArgument>("\"{:.100}\" is no whole number", text);
  }
  static std::string text(int64_t value) { return std::to_string(value); }
  static void check(std::string_view name, int64_t value) {
    if (value >= 0) return;
    refuse<InvalidArgument>("{} is {}; it must be 0 (the default) or more", name, value);
  }
};

template <>
struct Codec<std::string> {
  static constexpr FieldType kType = FieldType::kText;
  static std::string read(std::string_view text) { return std::string(text); }
  static std::string text(const std::string& value) { return value; }
};

template <typename Enum>
requires std::is_enum_v<Enum>
struct Codec<Enum> {
  static constexpr FieldType kType = FieldType::kName;
  static std::span<const std::string_view> values() { return names<Enum>().all; }
  static Enum read(std::string_view text) { return parse<Enum>(text); }
  static std::string text(Enum value) { return std::string(to_string(value)); }
  static void check(std::string_view, Enum value) {
    check_value(names<Enum>(), static_cast<size_t>(value));
  }
};

template <typename T>
struct Codec<std::optional<T>> : Codec<T> {
  static constexpr FieldType kType =
      Codec<T>::kType == FieldType::kFlag ? FieldType::kSwitch : Codec<T>::kType;
  static std::string text(const std::optional<T>& value) {
    return value ? Codec<T>::text(*value) : std::string();
  }
  static void check(std::string_view name, const std::optional<T>& value) {
    if constexpr (requires { Codec<T>::check(name, *value); }) {
      if (value) Codec<T>::check(name, *value);
    }
  }
};

template <typename Enum>
struct Codec<std::vector<Enum>> {
  static constexpr FieldType kType = FieldType::kNames;
  static std::span<const std::string_view> values() { return names<Enum>().all; }
  static std::vector<Enum> read(std::string_view text) { return parse_list<Enum>(text); }
  static std::string text(const std::vector<Enum>& all) { return to_string(all); }
  static void check(std::string_view name, const std::vector<Enum>& all) {
    for (const Enum value : all) Codec<Enum>::check(name, value);
  }
};

bool differs(const Positions& positions, const Positions&) {
  return positions.source() != Positions::Source::kModel || positions.scale() != 1 ||
         positions.is_averaged() || !positions.edits().empty() ||
         positions.mask() != Positions().mask();
}
bool differs(const std::span<float>& output, const std::span<float>&) {
  return output.data() != nullptr;
}
bool differs(const Progress& progress, const Progress&) { return static_cast<bool>(progress); }
bool differs(const std::stop_token& stop, const std::stop_token&) { return stop.stop_possible(); }
template <typename T>
bool differs(const T& value, const T& otherwise) {
  return !(value == otherwise);
}

using O = TextOptions;

template <auto member>
constexpr Field field(std::string_view name, uint32_t uses, std::string_view help) {
  using T = std::remove_cvref_t<decltype(std::declval<O&>().*member)>;
  using C = Codec<T>;
  Field made = {.name = name, .uses = uses, .help = help, .type = C::kType};
  made.is_set = [](const O& o) { return differs(o.*member, T()); };
  if constexpr (requires(const T& value) { C::check(name, value); }) {
    made.check = [](const Field& self, const TextOptions& o) { C::check(self.name, o.*member); };
  }
  if constexpr (requires { C::values(); }) made.values = [] { return C::values(); };
  if constexpr (requires { C::read({}); }) {
    made.read = [](TextOptions& o, std::string_view text) { o.*member = C::read(text); };
    made.text = [](const TextOptions& o) { return C::text(o.*member); };
  }
  return made;
}

constexpr uint32_t kAll = kUseEmbed | kUseClassify | kUseLabel | kUseRank;
constexpr uint32_t kCut = kAll & ~uint32_t{kUseLabel};

constexpr std::array kFields = {
    field<&O::kinds>("kinds", kUseEmbed, "what is made of a text"),
    field<&O::role>("role", kUseEmbed, "what texts are in retrieval, for prompt and run"),
    field<&O::pooling>("pooling", kUseDense, "how states become a vector, in place of the model's"),
    field<&O::normalize>("normalize", kUseDense | kUseRequests,
                         "whether vectors are divided by their lengths"),
    field<&O::dimensions>("dimensions", kUseDense | kUseRequests,
                          "numbers of a vector that are kept"),
    field<&O::prompt>("prompt", kCut,
                      "put before every text, of a pair before the first (of rank: the query)"),
    field<&O::prompt_name>("prompt_name", kUseEmbed | kUseClassify, "the model's prompt of a name"),
    field<&O::max_tokens>("max_tokens", kAll, "tokens of a text, special ones included"),
    field<&O::overflow>("overflow", kCut, "what becomes of a longer text"),
    field<&O::positions>("positions", kUseEmbed, "positions in place of the model's"),
    field<&O::output>("output", kUseDense, "memory for the vectors"),
    field<&O::progress>("progress", kAll, "counts texts"),
    field<&O::stop>("stop", kAll, "ends the call"),
    field<&O::parse_special>("parse_special", kAll | kUseRequests,
                             "special tokens written in a text count"),
    field<&O::truncation_side>("truncation_side", kCut, "where a longer text is cut"),
    field<&O::offset_unit>("offset_unit", kUseTokens | kUseStates | kUseLabel,
                           "what the places in a text are counted in"),
    field<&O::aggregation>("aggregation", kUseLabel, "how labels of tokens become spans"),
    field<&O::batch_tokens>("batch_tokens", kUseEmbed, "tokens that run at once, about"),
};

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field& field(std::string_view name) {
  const auto found = std::ranges::find(kFields, name, &Field::name);
  if (found != kFields.end()) return *found;
  std::vector<std::string_view> names;
  for (const Field& each : kFields) names.push_back(each.name);
  refuse<InvalidArgument>("there is no option \"{:.100}\"; there are: {}{}", name,
                          fmt::join(names, ", "), did_you_mean(name, names));
}

uint32_t uses_of(const TextOptions& options) {
  uint32_t uses = options.kinds.empty() ? uint32_t{kUseDense} : 0;
  for (const VectorKind kind : options.kinds) {
    check_value(names<VectorKind>(), static_cast<size_t>(kind));
    uses |= use_of(kind);
  }
  return uses;
}

void check_fields(const TextOptions& options, uint32_t uses, std::string_view call) {
  for (const Field& each : kFields) {
    if (!each.is_set(options)) continue;
    if (each.check != nullptr) each.check(each, options);
    if ((each.uses & uses) == 0) refuse<InvalidArgument>("{} does not use {}", call, each.name);
  }
  if (options.prompt && !options.prompt_name.empty())
    throw InvalidArgument("give prompt or prompt_name, not both");
}

bool may_share(const TextOptions& a, const TextOptions& b) {
  return std::ranges::all_of(kFields, [&](const Field& each) {
    if (each.name == "progress" || each.name == "stop") return true;
    if (!each.is_set(a) || !each.is_set(b)) return each.is_set(a) == each.is_set(b);
    return each.text != nullptr && each.text(a) == each.text(b);
  });
}

}  // namespace phasor
