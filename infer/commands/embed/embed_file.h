// The files of infer embed: a matrix that is written row by row for a long time, and can be
// resumed.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "files/corpus/vector_record.h"
#include "infer/cli/line_stream.h"

namespace infer {

/// A matrix [lines, width] of float32: its header comes first and has the same length for any
/// number of lines, so that it can be put right at the end.
struct VectorFormat {
  enum class Kind { kJsonLines, kNpy, kSafetensors };
  /// The files' extensions without the dot, in the order of Kind.
  static constexpr std::array<std::string_view, 3> kExtensions = {"jsonl", "npy", "safetensors"};

  Kind kind = Kind::kJsonLines;
  int64_t width = 0;
  MadeWith made_with = {};

  /// By the extension of the file of -o. Throws UsageError where that is none of them.
  static Kind kind_of(const std::filesystem::path& path);

  /// A safetensors file's holds its record, with the fingerprint of the lines.
  std::string header(int64_t lines, const std::string& input = Fingerprint().text()) const;
  /// Of a row, at the most.
  int64_t row_bytes() const;
  /// Whole rows, of which the first is line number `first_line`.
  std::string rows(std::span<const float> values, int64_t first_line) const;
};

/// Writes PATH.partial and, beside it, PATH.partial.json, the record of what is written so far.
/// Without commit() both stay for another run to resume, unless not a line is done.
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
  /// Puts the header right and gives the file and its record their names.
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
  void write_record(const LinesDone& state, const std::string& xxh64 = "") const;

  std::filesystem::path path_, partial_, record_;
  VectorFormat format_;
  LinesDone state_;
  int64_t bytes_ = 0;  // of the partial file, its header included
  int descriptor_ = -1;
};

/// The record of `path`, which is complete: for --resume, which has nothing to do where `made_with`
/// and the file are as they were. Throws InvalidArgument naming what differs, or that there is no
/// record.
VectorRecord complete_record(const std::filesystem::path& path, const MadeWith& made_with);

}  // namespace infer
