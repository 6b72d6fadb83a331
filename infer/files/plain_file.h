// A plain file that the user named, open for reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace phasor::internal {
class PlainFile;
}

namespace infer {

/// Opening it never waits: a pipe, a device or a folder of that name is refused.
class PlainFile {
 public:
  /// Messages begin with `what` and the file's name. Throws InvalidArgument saying why the file
  /// cannot be read, as all of these do.
  explicit PlainFile(const std::filesystem::path& file, const std::string& what = "");
  ~PlainFile();

  uint64_t size() const;  // in bytes
  /// Fills `bytes` with those that come next, and says how many there were: fewer than asked for
  /// only at the end.
  size_t read(std::span<char> bytes);

 private:
  std::string what_;
  std::unique_ptr<const phasor::internal::PlainFile> file_;
};

}  // namespace infer
