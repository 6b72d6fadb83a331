// The fields of TextOptions by name, for programs that read them from a command line, JSON or C.
//
//     TextOptions options;
//     field("overflow").read(options, "window");
//     for (const Field& each : fields())
//       if (each.text && each.is_set(options)) print(each.name, each.text(options));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "phasor/options.h"

namespace [[gnu::visibility("default")]] phasor {

/// The bit of a kind of vectors among the uses.
constexpr uint32_t use_of(VectorKind kind) { return uint32_t{1} << static_cast<int>(kind); }

/// Who uses a field: bits. The first sixteen are the kinds of vectors, see use_of(); embed() uses
/// those of the kinds that it makes.
enum Use : uint32_t {
  kUseDense = use_of(VectorKind::kDense),
  kUseSparse = use_of(VectorKind::kSparse),
  kUseTokens = use_of(VectorKind::kTokens),
  kUseStates = use_of(VectorKind::kStates),
  kUseEmbed = 0xffff,  // any kind
  kUseClassify = 1 << 16,
  kUseLabel = 2 << 16,
  kUseRank = 4 << 16,
  kUseRequests = 8 << 16,  // a server may take it from requests: it costs no more than their texts
};

/// What a field's value looks like as text.
enum class FieldType {
  kFlag,    // "true", "false"
  kSwitch,  // the same; where it is not set, as the model's files say
  kCount,   // a whole number, 0 or more
  kText,    // anything
  kName,    // one of Field::values()
  kNames,   // one or several of them, with commas between
  kOther,   // positions, memory, functions: no text says it, and read and text are null
};

/// A row of the table.
struct Field {
  std::string_view name;  // of the member: "max_tokens"
  uint32_t uses;
  std::string_view help;  // half a sentence, without the values
  FieldType type;
  std::span<const std::string_view> (*values)() = nullptr;  // of kName and kNames, else null
  bool (*is_set)(const TextOptions&) = nullptr;             // differs from the default
  /// Throws InvalidArgument for a value out of range; null where none is.
  void (*check)(const Field& self, const TextOptions&) = nullptr;
  void (*read)(TextOptions&, std::string_view) = nullptr;  // throws it for what is no value
  std::string (*text)(const TextOptions&) = nullptr;       // what read() reads
};

/// All, in the order of the struct.
std::span<const Field> fields();
/// Throws InvalidArgument listing the names.
const Field& field(std::string_view name);

/// Those of embed() with these options.
uint32_t uses_of(const TextOptions& options);
/// What each call does first. Throws InvalidArgument for a value out of range, and for a field that
/// is set and has none of these uses. `call` is for the message: "classify()".
void check_fields(const TextOptions& options, uint32_t uses, std::string_view call);

/// Whether texts with these options can run in one call: all but progress and stop are equal. Not
/// where one has positions or memory of its own.
bool may_share(const TextOptions& a, const TextOptions& b);

}  // namespace phasor
