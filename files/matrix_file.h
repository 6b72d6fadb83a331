// A matrix in a file that another program may have written: .npy or .safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace phasor::internal {

/// A matrix of double.
struct TableValues {
  std::vector<double> values;  // [rows, columns], row-major
  int64_t rows = 0;
  int64_t columns = 0;

  double at(int64_t row, int64_t column) const { return values[row * columns + column]; }
  std::span<const double> row(int64_t i) const {
    return std::span(values).subspan(i * columns, columns);
  }
};

/// Whether the name ends as those of the files that read_table() reads.
bool is_table_file(const std::filesystem::path& file);

/// The matrix [rows, columns] in a file, in float32 or float64 (safetensors also F16 and BF16),
/// row-major. Of several the one named "positions". Throws InvalidArgument naming the file where
/// there is none or more than one, more than 256 MiB, or a number that float32 has not; its message
/// begins with `what`.
TableValues read_table(const std::filesystem::path& file, const std::string& what);

}  // namespace phasor::internal
