// Tables of numbers in files that other programs wrote: .npy and .safetensors.
#pragma once

#include <filesystem>
#include <string>

#include "infer/matrix.h"

namespace infer {

/// Whether the name ends as those of the files that read_table() reads.
bool is_table_file(const std::filesystem::path& file);

/// The matrix [rows, columns] in a file, in float32 or float64 (safetensors also F16 and BF16),
/// row-major. Of several the one named "positions". Throws InvalidArgument naming the file where
/// there is none or more than one, more than 256 MiB, or a number that float32 has not; its message
/// begins with `what`.
Matrix read_table(const std::filesystem::path& file, const std::string& what);

}  // namespace infer
