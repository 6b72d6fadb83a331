// The files of infer embed -o: a matrix that is written row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "infer/cli/temporary_file.h"

namespace infer {

/// A matrix [lines, width] of float32: its header comes first and has the same length for any
/// number of lines, so that it can be put right at the end.
struct VectorFormat {
  enum class Kind { kJsonLines, kNpy, kSafetensors };

  Kind kind = Kind::kJsonLines;
  int64_t width = 0;
  std::map<std::string, std::string> metadata = {};  // of a safetensors file

  /// By the extension of the file of -o. Throws UsageError where that is none of them.
  static Kind kind_of(const std::filesystem::path& path);

  std::string header(int64_t lines) const;
  /// Whole rows, of which the first is line number `first_line`.
  std::string rows(std::span<const float> values, int64_t first_line) const;
};

/// A new file that takes the place of `path` when it is complete; see TemporaryFile. All throw
/// InvalidArgument.
class VectorFile {
 public:
  VectorFile(const std::filesystem::path& path, VectorFormat format);

  /// Adds the next lines' vectors.
  void append(std::span<const float> values);
  /// Puts the header right and gives the file its name.
  void commit();

 private:
  VectorFormat format_;
  TemporaryFile file_;
  int64_t lines_ = 0;
};

}  // namespace infer
