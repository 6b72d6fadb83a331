// A plain file that is open for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace infer {

/// Opening it never waits: a pipe, a device or a folder of that name is refused.
class PlainFile {
 public:
  /// Messages begin with `what` and the file's name. Throws InvalidArgument saying why the file
  /// cannot be read, as all of these do.
  explicit PlainFile(const std::filesystem::path& file, const std::string& what = "");
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  uint64_t size() const { return size_; }  // in bytes
  /// Fills `bytes` with those that come next, and says how many there were: fewer than asked for
  /// only at the end.
  size_t read(std::span<char> bytes);

 private:
  [[noreturn]] void fail(const std::string& why) const;

  std::string name_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

}  // namespace infer
