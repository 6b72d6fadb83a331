#include "files/corpus/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <regex>
#include <system_error>
#include <utility>

#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInfix = ".tmp.";

/// A number of its own: containers may share host names, and in them process numbers.
std::string temporary_name(const fs::path& path) {
  std::random_device random;
  return fmt::format("{}{}{}.{}.{:08x}", path.string(), kInfix, host_name(), getpid(), random());
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

enum class Lock { kFree, kHeld, kUnknown };

/// An open file; `lock` is what its lock tells, and where it was free it is held from here on.
class Opened {
 public:
  explicit Opened(const fs::path& file)
      : descriptor_(open(file.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor_ < 0) return;
    const int problem = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    lock = problem == 0 ? Lock::kFree : (problem == EWOULDBLOCK ? Lock::kHeld : Lock::kUnknown);
  }
  ~Opened() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  Lock lock = Lock::kUnknown;

 private:
  int descriptor_;
};

bool is_abandoned(const fs::path& file, const std::string& host, Lock lock) {
  if (lock == Lock::kHeld) return false;
  if (lock == Lock::kFree && host == host_name()) return true;
  std::error_code problem;
  const auto written = fs::last_write_time(file, problem);
  return !problem && fs::file_time_type::clock::now() - written > std::chrono::hours(1);
}

/// Removes what killed processes of this machine have left for `path`.
void clean(const fs::path& path) {
  const std::string begin = path.filename().string() + std::string(kInfix);
  std::error_code problem;
  for (fs::directory_iterator entry(folder_of(path), problem), end; !problem && entry != end;
       entry.increment(problem)) {
    if (!entry->path().filename().string().starts_with(begin)) continue;
    LeftFile left;
    if (is_temporary(entry->path(), left) && left.host == host_name()) remove_abandoned(left);
  }
}

}  // namespace

void refuse_to_replace(const std::string& option, const fs::path& path) {
  std::error_code ignored;  // opening the file will tell it
  const auto status = fs::status(path, ignored);
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

bool sync_name(const fs::path& file) {
  const int descriptor = open(folder_of(file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno == EACCES;  // names can be made in folders that cannot be read
  const int problem = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  errno = problem;
  return problem == 0 || problem == EINVAL || problem == ENOTSUP;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string host = name.data();
  std::ranges::replace(host, '/', '_');
  return host;
}

bool is_temporary(const fs::path& file, LeftFile& found) {
  static const std::regex kName(
      R"(.+\.tmp\.(.+)\.\d+\.[0-9a-f]{8})");  // a host's name may have dots
  const std::string name = file.filename().string();
  std::smatch parts;
  if (!std::regex_match(name, parts, kName)) return false;
  found.file = file;
  found.host = parts[1];
  found.abandoned = is_abandoned(file, found.host, Opened(file).lock);
  return true;
}

bool remove_abandoned(const LeftFile& left) {
  const Opened opened(left.file);  // locked until it is gone
  return is_abandoned(left.file, left.host, opened.lock) && unlink(left.file.c_str()) == 0;
}

TemporaryFile::TemporaryFile(std::string option, const fs::path& path, TemporaryFileOptions options)
    : option_(std::move(option)), path_(path), temporary_(std::move(options.name)) {
  refuse_to_replace(option_, path);
  const bool named = !temporary_.empty();
  if (!named) clean(path);
  open_file(named);
  // Not posix_fallocate(), which writes zeros where the file system cannot reserve.
  if (options.reserve > 0 && fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, options.reserve) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    fail();
  }
}

TemporaryFile::~TemporaryFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  if (descriptor_ >= 0) close(descriptor_);
}

void TemporaryFile::open_file(bool named) {
  struct stat status {};
  do {
    if (descriptor_ >= 0) close(descriptor_);
    if (named) {
      unlink(temporary_.c_str());
    } else {
      temporary_ = temporary_name(path_);
    }
    // O_EXCL: never through a link that stands there
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail();
    flock(descriptor_, LOCK_EX);
    // remove_abandoned() may have removed the file between open() and flock().
  } while (fstat(descriptor_, &status) == 0 && status.st_nlink == 0);
}

void TemporaryFile::write(std::span<const std::byte> bytes) {
  if (!write_all(descriptor_, bytes)) fail();
}

// The lock is held until the file has its name.
void TemporaryFile::commit() {
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  finish();
}

bool TemporaryFile::commit_if_new() {
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
  if (link(temporary_.c_str(), path_.c_str()) == 0) {
    unlink(temporary_.c_str());
  } else if (errno == EEXIST) {
    return false;
  } else if (rename(temporary_.c_str(), path_.c_str()) != 0) {  // of file systems without links
    fail();
  }
  finish();
  return true;
}

void TemporaryFile::finish() {
  temporary_.clear();
  if (!sync_name(path_)) fail();
  flock(descriptor_, LOCK_UN);
}

bool TemporaryFile::is_current() const {
  struct stat opened {
  }, named{};
  return fstat(descriptor_, &opened) == 0 && stat(path_.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

void TemporaryFile::fail() {
  const int reason = errno;
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot write {}: {}", option_, path_.string(), std::strerror(reason)));
}

}  // namespace infer
