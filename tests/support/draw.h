// Random numbers for the tests of kernels.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// Uniform in [−spread, spread], the same on every machine.
inline std::vector<float> draw(int64_t count, uint64_t seed, float spread = 1) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = spread * static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
  }
  return values;
}

}  // namespace phasor
