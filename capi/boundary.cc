#include "capi/boundary.h"

#include <new>
#include <stdexcept>
#include <string>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

thread_local std::string last_message;

/// In the same order, behind PHASOR_OK; a code that is added later gets a status behind the last.
phasor_status status_of(ErrorCode code) noexcept {
  static_assert(static_cast<int>(ErrorCode::kCancelled) + 1 == PHASOR_CANCELLED &&
                static_cast<int>(ErrorCode::kBackend) + 1 == PHASOR_BACKEND);
  const int place = static_cast<int>(code);
  return static_cast<phasor_status>(code <= ErrorCode::kBackend ? place + 1 : place + 3);
}

phasor_status say(phasor_status status, const char* message) noexcept {
  try {
    last_message = message;
  } catch (const std::bad_alloc&) {
    last_message.clear();
    status = PHASOR_OUT_OF_MEMORY;
  }
  return status;
}

}  // namespace

phasor_status failure() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return say(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return say(PHASOR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::length_error&) {  // a container longer than memory can be
    return say(PHASOR_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return say(PHASOR_INTERNAL, error.what());
  } catch (...) {
    return say(PHASOR_INTERNAL, "an unknown exception");
  }
}

}  // namespace phasor::internal

extern "C" const char* phasor_error_message(void) { return phasor::internal::last_message.c_str(); }
