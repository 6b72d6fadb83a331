// Random numbers, and tables for tests of the lens.
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

/// Values from −1 to 1.
inline std::vector<double> random_table(int64_t count, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(rng() % 2001) / 1000.0 - 1.0;
  return values;
}

/// The bundled learned model's table, [128, 128].
inline std::vector<double> learned_table() {
  const auto model = Model::load(PHASOR_SOURCE_DIR "/models/learned");
  const std::vector<float> values = model->weights().position_table.to_float();
  return {values.begin(), values.end()};
}

/// Every row mirrored at the plane that a random vector stands on: an orthogonal map.
inline std::vector<double> reflected(std::vector<double> table, int64_t d_model, uint64_t seed) {
  const std::vector<double> v = random_table(d_model, seed);
  double length = 0;
  for (const double x : v) length += x * x;
  for (size_t r = 0; r < table.size(); r += d_model) {
    double along = 0;
    for (int64_t c = 0; c < d_model; ++c) along += table[r + c] * v[c];
    for (int64_t c = 0; c < d_model; ++c) table[r + c] -= 2 * along / length * v[c];
  }
  return table;
}

}  // namespace phasor
