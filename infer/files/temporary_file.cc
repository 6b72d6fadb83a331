#include "infer/files/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "phasor/errors.h"

namespace infer {

void refuse_to_replace(const std::string& option, const std::filesystem::path& path) {
  std::error_code ignored;  // opening the file will tell it
  const auto status = std::filesystem::status(path, ignored);
  if (!exists(status) || is_regular_file(status)) return;
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot write {}: {}", option, path.string(),
                  is_directory(status) ? std::strerror(EISDIR) : "not a plain file"));
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

TemporaryFile::TemporaryFile(std::string option, const std::filesystem::path& path,
                             TemporaryFileOptions options)
    : option_(std::move(option)),
      path_(path),
      temporary_(options.name.empty() ? fmt::format("{}.{}.tmp", path.string(), getpid())
                                      : std::move(options.name)),
      sync_(options.sync) {
  refuse_to_replace(option_, path);
  unlink(temporary_.c_str());  // O_EXCL: never through a link that stands there
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!committed_) unlink(temporary_.c_str());
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  if (!write_all(descriptor_, bytes)) fail();
}

void TemporaryFile::commit() {
  // Some file systems say only here that there was no room.
  if (sync_ && fsync(descriptor_) != 0 && errno != EINVAL) fail();
  if (close(std::exchange(descriptor_, -1)) != 0) fail();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  committed_ = true;
}

void TemporaryFile::fail() const {
  const int reason = errno;
  unlink(temporary_.c_str());
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot write {}: {}", option_, path_.string(), std::strerror(reason)));
}

}  // namespace infer
