// Files that are written whole or not at all, and those of named tensors: safetensors and npy.
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

namespace infer {

/// Throws InvalidArgument naming `option` if `path` exists and is no regular file (a folder, a
/// pipe, a device), or is in no folder.
void refuse_to_replace(const std::string& option, const std::filesystem::path& path);

/// A new file PATH.infer-tmp that takes the place of `path` on commit(), which waits until bytes
/// and name are on the disk; without commit() it is gone. What a killed process has left is
/// replaced. All throw InvalidArgument naming `option`, the file and the reason, which may be that
/// another process is writing it; then `path` is as it was.
class TemporaryFile {
 public:
  TemporaryFile(std::string option, const std::filesystem::path& path);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// In the place of what was written there, after all else.
  void write_at_the_beginning(std::string_view text);
  void commit();

 private:
  void remove_left();
  [[noreturn]] void fail();

  std::string option_;
  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;  // locked (flock) while it is open
};

/// Borrowed, row-major, little-endian.
struct SavedTensor {
  template <typename T>
  SavedTensor(std::string name, std::vector<int64_t> shape, std::span<const T> values)
      : name(std::move(name)),
        shape(std::move(shape)),
        is_float(std::is_floating_point_v<T>),
        value_bytes(sizeof(T)),
        bytes(std::as_bytes(values)) {}

  std::string name;
  std::vector<int64_t> shape;
  bool is_float;
  int64_t value_bytes;
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

/// A matrix [rows, width] of float32, called "dense", in an .npy or .safetensors file like those of
/// save(), row by row: its header has the same length for any number of rows, and is put right at
/// the end. All throw InvalidArgument.
class MatrixFile {
 public:
  MatrixFile(const std::string& option, const std::filesystem::path& path, int64_t width,
             std::map<std::string, std::string> metadata);

  /// Adds whole rows.
  void append(std::span<const float> values);
  /// Puts the header right and gives the file its name.
  void commit();

 private:
  std::string header() const;

  bool is_npy_;
  int64_t width_, rows_ = 0;
  std::map<std::string, std::string> metadata_;
  TemporaryFile file_;
};

}  // namespace infer
