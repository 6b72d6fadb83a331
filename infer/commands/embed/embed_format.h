// The three forms in which infer embed writes vectors: .npy, .safetensors and JSON lines.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

namespace infer {

/// A matrix [lines, width] of float32 that is written row by row: its header comes first and has
/// the same length for any number of lines, so that it can be put right at the end.
struct VectorFormat {
  enum class Kind { kJsonLines, kNpy, kSafetensors };

  Kind kind = Kind::kJsonLines;
  int64_t width = 0;
  std::map<std::string, std::string> metadata = {};  // kSafetensors only

  /// Throws UsageError where the extension is none of .npy, .safetensors and .jsonl.
  static Kind kind_of(const std::filesystem::path& path);

  std::string header(int64_t lines) const;
  /// Whole rows, of which the first is line number `first_line`.
  std::string rows(std::span<const float> values, int64_t first_line) const;
};

}  // namespace infer
