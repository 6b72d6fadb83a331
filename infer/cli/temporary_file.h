// A file that is written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

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

}  // namespace infer
