// phasor's version; CMakeLists.txt reads it from here.
#pragma once

/// "MAJOR.MINOR.PATCH"
#define PHASOR_VERSION "0.2.0"
