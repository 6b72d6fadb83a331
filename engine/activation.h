// The activations of single numbers in double, for what is computed once for a text.
#pragma once

#include "phasor/config.h"

namespace phasor::internal {

/// f(x). Throws InvalidArgument if there is no such activation.
double activated(Activation activation, double x);

}  // namespace phasor::internal
