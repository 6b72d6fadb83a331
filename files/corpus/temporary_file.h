// A file that is written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace infer {

/// Throws InvalidArgument naming `option` if `path` exists and is no regular file (a folder, a
/// pipe, a device).
void refuse_to_replace(const std::string& option, const std::filesystem::path& path);

/// False, with errno, where not all could be written.
bool write_all(int descriptor, std::span<const std::byte> bytes);

/// Waits until the name of a file or folder is on the disk, where the file system can do that.
/// False, with errno, if that failed.
bool sync_name(const std::filesystem::path& file);

struct TemporaryFileOptions {
  std::string name = {};  // the temporary file's; empty: PATH.tmp.HOST.PID.NUMBER
  int64_t reserve = 0;    // so many bytes of the disk at once, where the file system can do that
};

/// A new file beside `path` that takes its place on commit(), which waits until bytes and name are
/// on the disk; without commit() it is gone. What killed processes of this machine have left for
/// the same path is removed. All throw InvalidArgument naming `option`, the file and the reason;
/// then `path` is as it was.
class TemporaryFile {
 public:
  TemporaryFile(std::string option, const std::filesystem::path& path,
                TemporaryFileOptions options = {});
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  void write(std::span<const std::byte> bytes);
  void commit();
  /// Takes no other file's place: false where `path` exists.
  bool commit_if_new();
  /// After commit(): whether `path` is still this file, and not that of a later commit.
  bool is_current() const;

 private:
  void open_file(bool named);
  void finish();
  [[noreturn]] void fail();

  std::string option_;
  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;  // locked (flock) while somebody writes
};

/// A temporary file that is not committed, by its name.
struct LeftFile {
  std::filesystem::path file;
  std::string host;
  bool abandoned = false;  // nobody writes it any more
};

/// Whether `file` is named like a temporary file; if so, fills `found`. A lock tells the state on
/// this machine; files of other machines are abandoned when they are an hour old.
bool is_temporary(const std::filesystem::path& file, LeftFile& found);
/// False where it is gone, or written after all.
bool remove_abandoned(const LeftFile& left);

std::string host_name();

}  // namespace infer
