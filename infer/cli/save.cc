// Writing tensors: a safetensors file is eight bytes of header length, the header in JSON, and the
// tensors.
#include "infer/cli/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>
#include <system_error>
#include <utility>

#include "files/json_writer.h"
#include "infer/cli/command_line.h"
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

static_assert(std::endian::native == std::endian::little, "all formats are little-endian");

std::string header_of(std::span<const SavedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  phasor::internal::JsonWriter json;
  int64_t offset = 0;
  json.object([&] {
    json.member("__metadata__", metadata);
    for (const SavedTensor& tensor : tensors) {
      const int64_t end = std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                                          tensor.value_bytes, std::multiplies()) +
                          offset;
      const std::string dtype =
          fmt::format("{}{}", tensor.is_float ? 'F' : 'I', 8 * tensor.value_bytes);
      json.key(tensor.name)
          .object("dtype", dtype, "shape", tensor.shape, "data_offsets",
                  std::array{std::exchange(offset, end), end});
    }
  });
  return json.take();
}

/// The length of the JSON, and this, padded with blanks to a multiple of 8 after `room` bytes.
std::string safetensors_header(std::string json, size_t room = 0) {
  json.resize((std::max(json.size(), room) + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint64_t>(json.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + json;
}

std::string npy_header_of(const SavedTensor& tensor) {
  return npy_header(fmt::format("<{}{}", tensor.is_float ? 'f' : 'i', tensor.value_bytes),
                    tensor.shape);
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

std::string npy_header(std::string_view dtype, std::span<const int64_t> shape) {
  std::string sizes;
  for (const int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, sizes);
  constexpr size_t kPreamble = 10;  // magic, version, length
  const size_t padded = (kPreamble + text.size() + 1 + 63) / 64 * 64;
  text.resize(padded - kPreamble - 1, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

void check_save_path(const std::filesystem::path& path, bool one_tensor) {
  if (path == "-") {
    throw UsageError(
        "--save: '-' is no file; these formats are written whole, not streamed; write a name like "
        "states.safetensors");
  }
  const std::string extension = path.extension().string();
  if (extension == ".safetensors" || (one_tensor && extension == ".npy")) return;
  throw UsageError(fmt::format("--save: the name {} must end in {}.safetensors", path.string(),
                               one_tensor ? ".npy or " : ""));
}

void save(const std::string& option, const std::filesystem::path& path,
          std::span<const SavedTensor> tensors,
          const std::map<std::string, std::string>& metadata) {
  const bool is_npy = path.extension() == ".npy";
  const std::string header =
      is_npy ? npy_header_of(tensors[0]) : safetensors_header(header_of(tensors, metadata));
  TemporaryFile file(option, path);
  file.write(header);
  for (const SavedTensor& tensor : tensors.first(is_npy ? 1 : tensors.size()))
    file.write(tensor.bytes);
  file.commit();
}

MatrixFile::MatrixFile(const std::string& option, const std::filesystem::path& path, int64_t width,
                       std::map<std::string, std::string> metadata)
    : is_npy_(path.extension() == ".npy"),
      width_(width),
      metadata_(std::move(metadata)),
      file_(option, path) {
  file_.write(header());
}

std::string MatrixFile::header() const {
  SavedTensor matrix("dense", {rows_, width_}, std::span<const float>());
  if (is_npy_) return npy_header_of(matrix);
  const std::string json = header_of(std::span(&matrix, 1), metadata_);
  matrix.shape[0] = 0;
  constexpr size_t kMostDigits = 36;  // of the rows and the bytes, beside those of 0
  return safetensors_header(json, header_of(std::span(&matrix, 1), metadata_).size() + kMostDigits);
}

void MatrixFile::append(std::span<const float> values) {
  file_.write(std::as_bytes(values));
  rows_ += std::ssize(values) / width_;
}

void MatrixFile::commit() {
  file_.write_at_the_beginning(header());
  file_.commit();
}

}  // namespace infer
