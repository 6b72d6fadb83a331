#include "infer/cli/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

/// Waits until the name of a file is on the disk, where the file system can do that. False, with
/// errno, if that failed.
bool sync_name(const fs::path& file) {
  const int descriptor = open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES;  // names can be made in folders that cannot be read
  const int problem = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  errno = problem;
  return problem == 0 || problem == EINVAL || problem == ENOTSUP;
}

}  // namespace

void refuse_to_replace(const std::string& option, const fs::path& path) {
  std::error_code ignored;  // opening the file will tell it
  const auto status = fs::status(path, ignored);
  if (fs::status(folder_of(path), ignored).type() == fs::file_type::not_found) {
    throw phasor::InvalidArgument(fmt::format("{}: cannot write {}: there is no folder {}; make it",
                                              option, path.string(), folder_of(path).string()));
  }
  if (!exists(status) || is_regular_file(status)) return;
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot write {}: {}", option, path.string(),
                  is_directory(status) ? std::strerror(EISDIR) : "not a plain file"));
}

TemporaryFile::TemporaryFile(std::string option, const fs::path& path)
    : option_(std::move(option)), path_(path), temporary_(path.string() + ".infer-tmp") {
  refuse_to_replace(option_, path);
  struct stat status {};
  do {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
    remove_left();
    // O_EXCL: never through a link that stands there
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) fail();
    flock(descriptor_, LOCK_EX);
    // Another process may have removed the file before it was locked.
  } while (descriptor_ < 0 || (fstat(descriptor_, &status) == 0 && status.st_nlink == 0));
}

/// Removes what has the temporary file's name, unless a process holds its lock.
void TemporaryFile::remove_left() {
  const int left = open(temporary_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const bool writing = left >= 0 && flock(left, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  const bool removed = !writing && (unlink(temporary_.c_str()) == 0 || errno == ENOENT);
  const int reason = errno;
  if (left >= 0) close(left);  // locked until it is gone
  if (writing) {
    throw phasor::InvalidArgument(fmt::format(
        "{}: {} is being written by another process; wait for it or choose another name", option_,
        path_.string()));
  }
  errno = reason;
  if (!removed) fail();
}

TemporaryFile::~TemporaryFile() {
  if (descriptor_ < 0) return;
  unlink(temporary_.c_str());
  close(descriptor_);
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail();
    if (written > 0) bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void TemporaryFile::write_at_the_beginning(std::string_view text) {
  if (lseek(descriptor_, 0, SEEK_SET) < 0) fail();
  write(text);
}

void TemporaryFile::commit() {
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  close(std::exchange(descriptor_, -1));
  if (!sync_name(path_)) fail();
}

void TemporaryFile::fail() {
  const int reason = errno;
  if (descriptor_ >= 0) {
    unlink(temporary_.c_str());
    close(std::exchange(descriptor_, -1));
  }
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot write {}: {}", option_, path_.string(), std::strerror(reason)));
}

}  // namespace infer
