// phasor's version; CMakeLists.txt reads it from here.
#pragma once

#define PHASOR_VERSION "0.1.0"
