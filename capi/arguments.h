// What a caller of the C interface passes, checked and as C++ takes it: pointers, arrays, numbers
// of enums, and structs that may be of another version.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/phasor_c.h"

namespace phasor::internal {

/// Throws InvalidArgument for a null pointer, which `what` names.
void require(const void* pointer, std::string_view what);

/// Throw InvalidArgument for a struct that is shorter than ever or too long, and for one that is
/// longer than this version's and has more than zeros there.
void check_size(std::string_view what, size_t given, size_t least);
void check_unknown(std::string_view what, const char* unknown, size_t size);

/// A caller's options, whose program may have been compiled with another version of the header.
/// `last` is the last field of interface version 1: what was added later may be missing.
template <typename Options, typename Field>
Options options_of(const Options* given, std::string_view what, Field Options::*last) {
  Options options = {};
  if (given == nullptr) return options;
  const char* const bytes = reinterpret_cast<const char*>(given);
  check_size(what, given->size, reinterpret_cast<const char*>(&(given->*last) + 1) - bytes);
  const size_t known = std::min(given->size, sizeof(Options));
  check_unknown(what, bytes + known, given->size - known);
  std::memcpy(&options, bytes, known);
  return options;
}

void check_count(std::string_view what, const void* data, int64_t count);
void check_given(std::string_view what, const void* data, int64_t count);
/// `count` elements at `data`. Throws InvalidArgument, naming them, if that cannot be.
template <typename T>
std::span<T> array_at(T* data, int64_t count, std::string_view what) {
  check_count(what, data, count);
  return {data, static_cast<size_t>(count)};
}
/// The same, empty only where `data` is NULL: a count was not forgotten.
template <typename T>
std::span<T> array_if_given(T* data, int64_t count, std::string_view what) {
  check_given(what, data, count);
  return array_at(data, count, what);
}

void check_number(const EnumNames& names, int32_t number, int32_t first);
/// The value with a caller's number, where the enum's first has the number `first`.
template <typename Enum>
Enum value_of(int32_t number, int32_t first = 0) {
  check_number(names<Enum>(), number, first);
  return static_cast<Enum>(number - first);
}

/// Borrowed from `texts`.
std::vector<std::string_view> texts_of(const phasor_texts* texts, std::string_view what);
Positions positions_of(const phasor_positions* positions, const PositionConfig& own);
std::vector<ResidualCut> cuts_of(const phasor_run_options& options);
Overflow overflow_of(int32_t overflow, Overflow otherwise);
TruncationSide side_of(int32_t side);
OffsetUnit unit_of(int32_t unit);
Aggregation aggregation_of(int32_t aggregation);
Progress progress_of(phasor_progress progress, void* user);
std::stop_token stop_of(const phasor_stop* stop);

}  // namespace phasor::internal
