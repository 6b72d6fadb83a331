// Activations of single numbers in double, for steps that run once for each text.
#pragma once

#include "phasor/config.h"

namespace phasor::internal {

/// f(x). Throws InvalidArgument if there is no such activation.
double activated(Activation activation, double x);

}  // namespace phasor::internal
