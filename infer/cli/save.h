// Files of named tensors: safetensors and npy, written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "infer/cli/temporary_file.h"

namespace infer {

/// Borrowed, row-major, little-endian.
struct SavedTensor {
  enum class Kind { kFloat32, kInt32, kInt64 };

  template <typename T>
  SavedTensor(std::string name, std::vector<int64_t> shape, std::span<const T> values)
      : name(std::move(name)),
        kind(std::is_same_v<T, float>     ? Kind::kFloat32
             : std::is_same_v<T, int32_t> ? Kind::kInt32
                                          : Kind::kInt64),
        shape(std::move(shape)),
        bytes(std::as_bytes(values)) {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, int32_t> ||
                  std::is_same_v<T, int64_t>);
  }

  std::string name;
  Kind kind;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Throws UsageError where the extension is not .safetensors, nor, for one tensor, .npy.
void check_save_path(const std::filesystem::path& path, bool one_tensor);

/// Writes a temporary file beside `path`, which `option` named, and renames it. Throws
/// InvalidArgument naming the option, the file and the reason; then `path` is as it was. `metadata`
/// goes into safetensors' __metadata__. An npy file holds the first tensor alone, without its name
/// and the metadata.
void save(const std::string& option, const std::filesystem::path& path,
          std::span<const SavedTensor> tensors, const std::map<std::string, std::string>& metadata);

/// What a version 1.0 .npy file begins with, padded so that the numbers start at a multiple of 64.
/// Every matrix's is 128 bytes long. `dtype` is NumPy's, like "<f4".
std::string npy_header(std::string_view dtype, std::span<const int64_t> shape);

/// A matrix [rows, width] of float32 in an .npy or .safetensors file like those of save(), row by
/// row: its header has the same length for any number of rows, and is put right at the end. All
/// throw InvalidArgument.
class MatrixFile {
 public:
  MatrixFile(const std::string& option, const std::filesystem::path& path, std::string name,
             int64_t width, std::map<std::string, std::string> metadata);

  /// Adds whole rows.
  void append(std::span<const float> values);
  /// Puts the header right and gives the file its name.
  void commit();

 private:
  std::string header() const;

  std::string name_;
  bool is_npy_;
  int64_t width_, rows_ = 0;
  std::map<std::string, std::string> metadata_;
  TemporaryFile file_;
};

}  // namespace infer
