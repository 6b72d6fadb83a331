// The vectors of a file that infer embed has written, or another program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "files/corpus/vector_record.h"
#include "infer/files.h"
#include "phasor/pooling.h"
#include "phasor/quantize.h"

namespace infer {

/// Rows [n, W] of numbers, whatever their type. Stays mapped.
class SavedRows {
 public:
  /// The matrix `tensor`, or the only one. `width`: that of the model's vectors, by which bits are
  /// told from bytes. `option` named the file. Throws InvalidArgument where there is none, for
  /// tokens' vectors in the place of lines', and for bytes of which nothing says what they stand
  /// for.
  SavedRows(const std::string& option, const std::filesystem::path& file, const std::string& tensor,
            int64_t width);

  int64_t rows() const { return matrix_.rows(); }
  int64_t width() const { return width_; }
  /// The other tensors of the file; null: it is .npy.
  const phasor::SafetensorsFile* safetensors() const { return matrix_.safetensors(); }
  bool are_bits() const {
    return type_ == phasor::VectorType::kBinary || type_ == phasor::VectorType::kUbinary;
  }
  /// `to`: [n, W], the rows `row` to `row` + n − 1.
  void copy(int64_t row, std::span<float> to) const;
  /// Of vectors of bits.
  std::vector<std::byte> bits(std::span<const float> vector) const {
    return phasor::quantize(vector, width_, type_);
  }
  std::span<const std::byte> bytes(int64_t row, int64_t count = 1) const {
    return {matrix_.tensor().data + row * matrix_.columns(),
            static_cast<size_t>(count * matrix_.columns())};
  }
  /// Throws InvalidArgument where they cannot be compared so.
  void check(const std::string& option, phasor::Similarity kind) const;

 private:
  MatrixFile matrix_;
  phasor::VectorType type_ = phasor::VectorType::kFloat32;  // of bytes; others are read as they are
  phasor::ColumnRanges ranges_;
  int64_t width_;
};

/// Of a file's lines, unless there are none.
void note_left_out(const std::filesystem::path& file, bool quiet, int64_t lines);

/// What is compared with the vectors of a file.
struct Searcher {
  MadeWith made_with;  // what made the queries' vectors
  int64_t width;       // of these
  std::optional<std::string> document_prompt;
  bool quiet;
};

/// The record of the file; null where it has none. Notes what differs from it and hardly matters.
/// Throws InvalidArgument where the file's vectors have another width than the searcher's, the file
/// is not as it was written, or other weights, another tokenizer or another pooling made it.
std::optional<VectorRecord> checked_record(const std::string& option,
                                           const std::filesystem::path& file, int64_t width,
                                           const Searcher& searcher);

}  // namespace infer
