// A file that infer embed fills for a long time: it has its name only when it is complete, and what
// is there after an interruption can be gone on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "infer/commands/embed/embed_format.h"
#include "infer/commands/embed/fingerprint.h"

namespace infer {

/// What a partial file holds.
struct PartialState {
  int64_t lines = 0;
  int64_t bytes = 0;          // of the partial file, its header included
  std::string input;          // fingerprint of the lines
  std::string rows;           // fingerprint of the bytes after the header
  int64_t lines_cut = 0;      // of the lines: too long,
  int64_t lines_invalid = 0;  // or not all UTF-8
};

/// Writes PATH.partial and, beside it, PATH.partial.json, which says how far it has come. Without
/// commit() both stay for another run to go on from, unless not a line is done.
class PartialFile {
 public:
  /// `made_with` is all that must be the same for a run to go on. Throws InvalidArgument naming
  /// what differs, or where the files cannot be written, are not this user's own, or are being
  /// written by another run.
  PartialFile(const std::filesystem::path& path, std::map<std::string, std::string> made_with,
              bool resume);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// Nothing done where there was nothing to go on from.
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
  std::string how_to_go_on() const;
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
