// What stands between C and C++: statuses for exceptions, structs that may be of another version.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "capi/handles.h"
#include "phasor/encoder.h"
#include "phasor/phasor_c.h"

namespace phasor::internal {

/// The status of the exception in flight, whose message becomes the thread's.
phasor_status failure() noexcept;

/// Runs a call of the interface.
template <typename Call>
phasor_status guarded(Call call) noexcept {
  try {
    call();
    return PHASOR_OK;
  } catch (...) {
    return failure();
  }
}

/// Throws InvalidArgument for a null pointer, which `what` names.
void require(const void* pointer, std::string_view what);

/// A result that the caller gets once `fill` has filled it.
template <typename Fill>
phasor_status make_result(phasor_result** result, Fill fill) {
  return guarded([&] {
    require(result, "the place for the result");
    auto made = std::make_unique<phasor_result>();
    fill(*made);
    *result = made.release();
  });
}

/// Throws InvalidArgument unless a struct of `given` bytes can be read as one of `known` bytes;
/// `unknown` are the bytes that it has more.
void check_size(std::string_view what, size_t given, size_t known);
void check_unknown(std::string_view what, const char* unknown, size_t size);

/// A caller's options, whose program may have been compiled with another version of the header: a
/// longer struct may set nothing that this version does not know.
template <typename Options>
Options options_of(const Options* given, std::string_view what) {
  Options options = {};
  if (given == nullptr) return options;
  check_size(what, given->size, sizeof(Options));
  check_unknown(what, reinterpret_cast<const char*>(given) + sizeof(Options),
                given->size - sizeof(Options));
  std::memcpy(&options, given, sizeof(Options));
  return options;
}

void check_count(std::string_view what, const void* data, int64_t count);
/// `count` elements at `data`. Throws InvalidArgument, naming them, if that cannot be.
template <typename T>
std::span<T> array_at(T* data, int64_t count, std::string_view what) {
  check_count(what, data, count);
  return {data, static_cast<size_t>(count)};
}

/// The rest borrow from their argument.
std::vector<std::string_view> texts_of(const phasor_texts* texts, std::string_view what);
Positions positions_of(const phasor_positions* positions, const PositionConfig& own);
Overflow overflow_of(int32_t overflow, Overflow otherwise);
Progress progress_of(phasor_progress progress, void* user);
std::stop_token stop_of(const phasor_stop* stop);

}  // namespace phasor::internal
