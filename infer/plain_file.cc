// Opening and reading files of which only plain ones will do.
#include "infer/plain_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "phasor/errors.h"

namespace infer {

PlainFile::PlainFile(const std::filesystem::path& file, const std::string& what)
    : name_(what + file.string()),
      descriptor_(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (descriptor_ < 0) fail(std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    fail("not a plain file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

PlainFile::~PlainFile() { close(descriptor_); }

size_t PlainFile::read(std::span<char> bytes) {
  size_t count = 0;
  while (count < bytes.size()) {
    const ssize_t n = ::read(descriptor_, bytes.data() + count, bytes.size() - count);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) break;
    count += static_cast<size_t>(n);
  }
  return count;
}

void PlainFile::fail(const std::string& why) const {
  throw phasor::InvalidArgument(fmt::format("{}: {}", name_, why));
}

}  // namespace infer
