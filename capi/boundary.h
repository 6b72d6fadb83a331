// Exceptions of C++ become statuses of C.
#pragma once

#include <memory>
#include <string>

#include "capi/arguments.h"
#include "capi/handles.h"
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

/// What `make` returns, kept for the rest of the program; NULL where it cannot be made.
template <std::string (*make)()>
const char* made_once() noexcept {
  const char* text = nullptr;
  guarded([&] {
    static const std::string kText = make();
    text = kText.c_str();
  });
  return text;
}

/// A result that the caller gets once `fill` has filled it, or does not want where `result` is
/// NULL and may be.
template <typename Fill>
phasor_status make_result(phasor_result** result, Fill fill, bool may_be_null = false) {
  return guarded([&] {
    if (!may_be_null) require(result, "the place for the result");
    auto made = std::make_unique<phasor_result>();
    fill(*made);
    if (result != nullptr) *result = made.release();
  });
}

}  // namespace phasor::internal
