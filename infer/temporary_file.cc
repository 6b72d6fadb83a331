// A file that is written under another name, and renamed once it is complete.
#include "infer/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "phasor/errors.h"

namespace infer {

TemporaryFile::TemporaryFile(std::string option, const std::filesystem::path& path)
    : option_(std::move(option)),
      path_(path),
      temporary_(fmt::format("{}.{}.tmp", path.string(), getpid())) {
  if (std::filesystem::is_directory(path)) {
    errno = EISDIR;  // as rename() would say at the end
    fail();
  }
  unlink(temporary_.c_str());
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail();
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!committed_) unlink(temporary_.c_str());
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      fail();
    }
  }
}

void TemporaryFile::commit() {
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
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
