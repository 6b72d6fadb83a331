// What a caller of the C interface passes, checked and as C++ takes it: pointers, arrays, words,
// and structs that may be of another version.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/names.h"
#include "phasor/phasor_c.h"

namespace phasor::internal {

/// Throws InvalidArgument for a null pointer, which `what` names.
void require(const void* pointer, std::string_view what);

/// Copies a caller's struct, whose program may have been compiled with another version of the
/// header. Throws InvalidArgument for one that is shorter than `least` or too long, and for one
/// that is longer than this version's and has more than zeros there.
void copy_struct(std::string_view what, const void* given, size_t least, void* known, size_t size);

/// A caller's options. `last` is the last field of the first version: what was added later may be
/// missing.
template <typename Options, typename Field>
Options options_of(const Options* given, std::string_view what, Field Options::*last) {
  Options options = {};
  const auto end = reinterpret_cast<const char*>(&(options.*last) + 1);
  if (given != nullptr)
    copy_struct(what, given, end - reinterpret_cast<const char*>(&options), &options,
                sizeof options);
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

/// The value that a word names; `otherwise` where it is NULL.
template <typename Enum>
Enum value_of(const char* word, Enum otherwise) {
  return word != nullptr ? parse<Enum>(word) : otherwise;
}

/// Borrowed from `texts`.
std::vector<std::string_view> texts_of(const phasor_texts* texts, std::string_view what);
Positions positions_of(const phasor_positions* positions, const PositionConfig& own);
std::vector<ResidualCut> cuts_of(const phasor_run_options& options);
Progress progress_of(phasor_progress progress, void* user);
std::stop_token stop_of(const phasor_stop* stop);
TextOptions text_options_of(const phasor_text_options* options, const PositionConfig& own);

}  // namespace phasor::internal
