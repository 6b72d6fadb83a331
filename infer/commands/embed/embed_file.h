// The files of infer embed: a matrix that is written row by row for a long time, and can be
// resumed.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "infer/cli/line_stream.h"
#include "models/files.h"

namespace infer {

/// Of the files that decide what a model computes.
std::string model_fingerprint(const phasor::internal::ModelPath& folder);

/// A matrix [lines, width] of float32: its header comes first and has the same length for any
/// number of lines, so that it can be put right at the end.
struct VectorFormat {
  enum class Kind { kJsonLines, kNpy, kSafetensors };
  /// The files' extensions without the dot, in the order of Kind.
  static constexpr std::array<std::string_view, 3> kExtensions = {"jsonl", "npy", "safetensors"};

  Kind kind = Kind::kJsonLines;
  int64_t width = 0;
  std::map<std::string, std::string> made_with = {};  // a safetensors file's metadata

  /// By its extension. Throws UsageError naming -o where that is none of them.
  static Kind kind_of(const std::filesystem::path& path);

  std::string header(int64_t lines) const;
  /// Whole rows, of which the first is line number `first_line`.
  std::string rows(std::span<const float> values, int64_t first_line) const;
};

/// Writes PATH.partial and, beside it, PATH.partial.json, which says how far it has come. Without
/// commit() both stay for another run to resume, unless not a line is done.
class PartialFile {
 public:
  /// `format` must be the same to resume. Throws InvalidArgument naming what differs, or where the
  /// files cannot be written, are not this user's own, or are being written by another run.
  PartialFile(const std::filesystem::path& path, VectorFormat format, bool resume);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Nothing done where there was nothing to resume.
  const LinesDone& state() const { return state_; }
  const std::filesystem::path& partial() const { return partial_; }

  /// Adds the next lines' vectors; then `state` is what the file holds. It is recorded when they
  /// are on the disk.
  void append(std::span<const float> values, LinesDone state);
  /// Puts the header right and gives the file its name.
  void commit();

 private:
  [[noreturn]] void fail(const std::filesystem::path& file) const;
  [[noreturn]] void refuse(const std::string& why) const;
  std::string how_to_resume() const {
    return state_.lines > 0 ? "; when that is put right, run the command again with --resume" : "";
  }
  void open_partial();
  void restore();
  int64_t lines_in(int64_t bytes) const;
  void write(std::string_view bytes) const;

  std::filesystem::path path_, partial_, record_;
  VectorFormat format_;
  LinesDone state_;
  int64_t bytes_ = 0;  // of the partial file, its header included
  int descriptor_ = -1;
};

}  // namespace infer
