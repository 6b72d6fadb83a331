// Vectors in fewer bytes, with the numbers of sentence-transformers' quantize_embeddings().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// How the numbers of a vector [W] are stored.
enum class VectorType : int32_t {
  kFloat32,
  kFloat16,
  kInt8,    // one of 256 steps from a column's least number to its largest, less 128
  kUint8,   // the same from 0
  kBinary,  // a bit for each number, 1 where it is above 0; eight in an int8, the first in its
            // highest bit, less 128
  kUbinary  // the same in a uint8
};

/// The least and the largest number of each column of some vectors, for kInt8 and kUint8.
struct ColumnRanges {
  std::vector<float> least, most;  // [W]; empty before the first vector

  /// Of more vectors [n, width], whose numbers are finite. Throws InvalidArgument for another width
  /// than before.
  void add(std::span<const float> vectors, int64_t width);
};

/// Bytes of a vector of `width` numbers. Throws InvalidArgument for a width below 1 or above 2^48.
int64_t vector_bytes(VectorType type, int64_t width);

/// Vectors [n, width] -> n · vector_bytes(). Numbers outside their column's range get its first or
/// last step. Throws InvalidArgument where `vectors` or `ranges` do not fit, for a number that is
/// not finite where there are steps, and for one that float16 has not (above 65504).
std::vector<std::byte> quantize(std::span<const float> vectors, int64_t width, VectorType type,
                                const ColumnRanges& ranges = {});

/// The inverse, but for what was rounded: the middle of a step, and −1 or 1 for a bit. Throws
/// InvalidArgument where `bytes` or `ranges` do not fit.
std::vector<float> dequantize(std::span<const std::byte> bytes, int64_t width, VectorType type,
                              const ColumnRanges& ranges = {});

/// In how many bits two vectors of kUbinary differ, or two of kBinary. Throws InvalidArgument where
/// their lengths differ.
int64_t hamming_distance(std::span<const std::byte> a, std::span<const std::byte> b);

}  // namespace phasor
