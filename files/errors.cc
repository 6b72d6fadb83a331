#include "phasor/errors.h"

#include "files/utf8.h"

namespace phasor {

// Messages quote files: keys, tensors, names. None of these may break a line or steer a terminal.
Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(internal::printable(message)), code_(code) {}

}  // namespace phasor
