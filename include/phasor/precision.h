// In what number format the linear maps multiply.
#pragma once

#include <string>

#include "phasor/names.h"

namespace [[gnu::visibility("default")]] phasor {

/// The residual stream, norms, attention's scores and softmax are float32 in every precision, and
/// so are all results.
enum class Precision {
  kFloat32,
  /// Weights and the inputs of linear maps rounded to bfloat16 (the nearest, of two the even one),
  /// products summed in float32; where the CPU is slow at that, by float32 matmuls of the rounded
  /// values. Moves a trained model's last hidden state by about 0.5 %.
  kBfloat16,
  /// Weights rounded to whole numbers −127 … 127 with a scale for each output column, when the
  /// Encoder is made; inputs likewise with a scale for each row, at every run (−63 … 63 on a CPU
  /// without VNNI). The scale brings the largest magnitude to the end. Sums are exact: models with
  /// a linear map of more inputs than 32 bits have room for, 66 572 (134 200 without VNNI), are
  /// refused. Moves a trained model's last hidden state by about 2.5 %, or 4.5 %.
  kInt8,
  /// The one that fastest_precision() names; for models that int8 refuses, kBfloat16 where it is
  /// fast, else kFloat32.
  kAuto,
};

/// What is fastest on this machine: kInt8 on x86-64, with any of its instruction sets; kFloat32 on
/// others, where nobody has measured.
Precision fastest_precision();

/// A sentence for people where a precision works but is no faster than float32 on this machine;
/// empty where it is.
std::string why_slow(Precision precision);

}  // namespace phasor
