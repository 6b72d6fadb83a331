// The files of infer embed: a matrix that is written row by row for a long time, and can be
// resumed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace infer {

/// A hash that grows with what it is given. Tells inputs apart; no protection against malice.
class Fingerprint {
 public:
  /// Adds a piece: "ab" and "c" are not "a" and "bc".
  void add(std::string_view piece);
  /// Adds the next part of one long piece: where parts end makes no difference.
  void extend(std::string_view part);
  std::string text() const;  // 16 hexadecimal digits

 private:
  void mix(uint64_t word);

  uint64_t hash_ = 0x9E3779B97F4A7C15u;
  uint64_t word_ = 0;   // bytes that are not yet eight
  uint64_t count_ = 0;  // of all bytes
};

/// Of the files that decide what a model computes.
std::string model_fingerprint(const std::filesystem::path& folder);

/// A matrix [lines, width] of float32: its header comes first and has the same length for any
/// number of lines, so that it can be put right at the end.
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

/// What a partial file holds.
struct PartialState {
  int64_t lines = 0;
  int64_t bytes = 0;  // of the partial file, its header included
  std::string input;  // fingerprint of the lines
  std::string rows;   // fingerprint of the bytes after the header
};

/// Writes PATH.partial and, beside it, PATH.partial.json, which says how far it has come. Without
/// commit() both stay for another run to resume, unless not a line is done.
class PartialFile {
 public:
  /// `made_with` is all that must be the same to resume. Throws InvalidArgument naming what
  /// differs, or where the files cannot be written, are not this user's own, or are being written
  /// by another run.
  PartialFile(const std::filesystem::path& path, std::map<std::string, std::string> made_with,
              bool resume);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Nothing done where there was nothing to resume.
  const PartialState& state() const { return state_; }
  const std::filesystem::path& partial() const { return partial_; }

  /// To be called once, before append(): writes the header, or reads what is there. Throws
  /// InvalidArgument where that is not what state() says in this format. False where `stop` said so
  /// while reading.
  bool begin(const VectorFormat& format, const std::function<bool()>& stop);
  /// Adds rows; then `state`, whose `bytes` and `rows` are found here, is what the file holds.
  void append(std::string_view rows, PartialState state);
  /// Writes the header over the first bytes and gives the file its name.
  void commit(std::string_view header);

 private:
  [[noreturn]] void fail(const std::filesystem::path& file) const;
  [[noreturn]] void refuse(const std::string& why) const;
  std::string how_to_resume() const {
    return state_.lines > 0 ? "; when that is put right, run the command again with --resume" : "";
  }
  void open_partial();
  void restore();
  bool check_rows(const VectorFormat& format, const std::function<bool()>& stop);
  void write(std::string_view bytes);
  void write_state(const PartialState& state) const;

  std::filesystem::path path_, partial_, record_;
  std::map<std::string, std::string> made_with_;
  PartialState state_;
  Fingerprint rows_;
  int descriptor_ = -1;
};

}  // namespace infer
