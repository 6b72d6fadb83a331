// A file that is written whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace infer {

/// Throws InvalidArgument naming `option` where something is at `path` that a new file must not
/// take the place of: a folder, a pipe, a device.
void refuse_to_replace(const std::string& option, const std::filesystem::path& path);

/// False, with errno, where not all could be written.
bool write_all(int descriptor, std::span<const std::byte> bytes);

struct TemporaryFileOptions {
  std::string name = {};  // of the new file until then; PATH.PID.tmp where it is empty
  bool sync = true;       // commit() waits until the bytes are on the disk
};

/// A new file beside `path` that takes its place on commit(), and is gone without. All throw
/// InvalidArgument naming `option`, the file and the reason; then `path` is as it was.
class TemporaryFile {
 public:
  TemporaryFile(std::string option, const std::filesystem::path& path,
                TemporaryFileOptions options = {});
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::string option_;
  std::filesystem::path path_;
  std::string temporary_;
  bool sync_;
  int descriptor_ = -1;
  bool committed_ = false;
};

}  // namespace infer
