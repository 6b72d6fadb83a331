// The number format of the matrix products.
#pragma once

#include <span>
#include <string>

#include "phasor/names.h"

namespace [[gnu::visibility("default")]] phasor {

/// The residual stream, norms, softmax and all sums are float32 in every precision, and so are all
/// results. Below float32, a CPU with fast bfloat16 (AMX, or AMD's with AVX512_BF16) rounds what
/// attention multiplies to it: queries, keys, the pattern and values.
enum class Precision {
  kFloat32,
  /// Weights and the inputs of linear maps rounded to bfloat16 (to nearest, ties to even), products
  /// summed in float32; if the CPU is slow at that, by float32 matmuls of the rounded values. Moves
  /// a trained model's last hidden state by about 0.5 %.
  kBfloat16,
  /// Weights rounded to whole numbers −127 … 127 with a scale for each output column, when the
  /// Encoder is made. Inputs rounded at every run, each row from its least value, or 0, to its
  /// largest, or 0, in 254 steps (126 on a CPU without VNNI); KernelLibrary::kOneDnn puts its
  /// largest magnitude at both ends. Sums are exact: models with a linear map of more inputs than
  /// fit into 32 bits, 66 311 (133 144 without VNNI), are refused. Moves a trained model's last
  /// hidden state by about 2 %, or 3 %.
  kInt8,
  /// The result of fastest_precision(); for models that int8 refuses, kBfloat16 if it is fast,
  /// otherwise kFloat32.
  kAuto,
};

/// The fastest precision on this machine: kInt8 on x86-64, with any of its instruction sets;
/// kFloat32 on others, which have not been measured.
Precision fastest_precision();

/// What a precision gives in place of float32: vectors of all-MiniLM-L6-v2, as docs/performance.md
/// has them.
struct PrecisionGain {
  Precision precision;
  double speed;        // times float32's, the geometric mean of five shapes
  double mean_cosine;  // of vectors with float32's
};

/// Those that are faster than float32 on machines with this one's instructions, the most exact
/// first; none where none was measured.
std::span<const PrecisionGain> precision_gains();

/// The same as a sentence for people that begins with "measured"; empty where there are none.
std::string faster_than_float32();

/// A sentence for people if a precision works but is no faster than float32 on this machine;
/// otherwise empty.
std::string why_slow(Precision precision);

}  // namespace phasor
