// A file that infer embed fills for a long time: it has its name only when it is complete, and what
// is there after an interruption can be gone on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace infer {

/// A hash that grows with what it is given. Tells inputs apart; no protection against malice.
class Fingerprint {
 public:
  void add(std::string_view bytes);
  std::string text() const;  // 16 hexadecimal digits

 private:
  uint64_t hash_ = 0x9E3779B97F4A7C15u;
};

/// Of the files that decide what a model computes.
std::string model_fingerprint(const std::filesystem::path& folder);

/// What a partial file holds.
struct PartialState {
  int64_t lines = 0;
  int64_t bytes = 0;          // of the partial file, its header included
  std::string input;          // fingerprint of the lines
  int64_t lines_cut = 0;      // of them: too long,
  int64_t lines_invalid = 0;  // or not all UTF-8
};

/// Writes PATH.partial and, beside it, PATH.partial.json, which says how far it has come. Without
/// commit() both stay for another run to go on from, unless not a line is done.
class PartialFile {
 public:
  /// `made_with` is all that must be the same for a run to go on. Throws InvalidArgument naming
  /// what differs, or where the files cannot be written, or are being written by another run.
  PartialFile(const std::filesystem::path& path, std::map<std::string, std::string> made_with,
              bool resume);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Nothing done where there was nothing to go on from.
  const PartialState& state() const { return state_; }
  const std::filesystem::path& partial() const { return partial_; }

  /// Adds bytes; then `state`, whose bytes are counted here, is what the file holds.
  void append(std::string_view bytes, PartialState state);
  /// Writes the header over the first bytes and gives the file its name.
  void commit(std::string_view header);

 private:
  [[noreturn]] void fail(const std::filesystem::path& file) const;
  void restore();
  void write(std::string_view bytes);
  void write_state() const;

  std::filesystem::path path_, partial_, record_;
  std::map<std::string, std::string> made_with_;
  PartialState state_;
  int descriptor_ = -1;
};

}  // namespace infer
