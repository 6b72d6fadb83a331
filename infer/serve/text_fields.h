// How a request's JSON says the options of a call: which it may, under what names.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "files/json_writer.h"
#include "infer/serve/fields.h"
#include "phasor/options.h"

namespace infer {

/// A field of a request that is one of TextOptions, by a name or with values of a protocol.
struct Spelling {
  struct Value {
    std::string_view said, means;
  };

  std::string_view name, field;      // "truncate", "overflow"
  std::array<Value, 2> values = {};  // {"true", "truncate"}; none: those of phasor/fields.h

  bool has_values() const { return !values[0].said.empty(); }
};
using Spellings = std::span<const Spelling>;
using Lists = std::initializer_list<Spellings>;

// What requests may say, by list; all other options are the server's.
inline constexpr Spelling kSpecialField[] = {{"parse_special", "parse_special"}};
inline constexpr Spelling kAllFields[] = {
    {"truncate", "overflow", {{{"true", "truncate"}, {"false", "error"}}}},
    {"truncation_direction", "truncation_side", {{{"Left", "left"}, {"Right", "right"}}}},
    {"parse_special", "parse_special"}};
inline constexpr Spelling kOpenAiFields[] = {
    {"dimensions", "dimensions"},
    {"input_type", "role", {{{"query", "query"}, {"document", "document"}}}}};
inline constexpr Spelling kDenseFields[] = {{"normalize", "normalize"},
                                            {"dimensions", "dimensions"}};
inline constexpr Spelling kPromptField[] = {{"prompt_name", "prompt_name"}};
inline constexpr Spelling kAggregationField[] = {{"aggregation_strategy", "aggregation"}};

/// Those of a call with these uses (phasor/fields.h), as the request says them.
phasor::TextOptions read_options(const Fields& fields, Lists lists, uint32_t uses);
/// Into `options`, what an object within the request says.
void read_more(const Fields& fields, Lists lists, phasor::TextOptions& options);

/// "truncate": {"type": "boolean", …}
void write_schema(const Spelling& spelling, phasor::internal::JsonWriter& json);

}  // namespace infer
