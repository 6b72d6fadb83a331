// Saving to a safetensors file: eight bytes of header length, the header in JSON, the tensors.
#include "infer/save.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "phasor/errors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

/// A new file beside `path` that takes its place on commit(), and is gone without.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& path)
      : path_(path), temporary_(fmt::format("{}.{}.tmp", path.string(), getpid())) {
    unlink(temporary_.c_str());
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail();
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!committed_) unlink(temporary_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written >= 0) {
        bytes = bytes.subspan(static_cast<size_t>(written));
      } else if (errno != EINTR) {
        fail();
      }
    }
  }

  void commit() {
    // Some file systems say only here that there was no room.
    if (fsync(descriptor_) != 0 && errno != EINVAL) fail();
    if (close(std::exchange(descriptor_, -1)) != 0) fail();
    if (rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    committed_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    const int reason = errno;
    unlink(temporary_.c_str());
    throw phasor::InvalidArgument(
        fmt::format("--save: cannot write {}: {}", path_.string(), std::strerror(reason)));
  }

  std::filesystem::path path_;
  std::string temporary_;
  int descriptor_ = -1;
  bool committed_ = false;
};

std::string safetensors_header(std::span<const SavedTensor> tensors,
                               const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const SavedTensor& tensor : tensors) {
    const size_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor.kind == SavedTensor::Kind::kInt32 ? "I32" : "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  const std::string header = safetensors_header(tensors, metadata);
  const auto header_size = static_cast<uint64_t>(header.size());
  TemporaryFile file(path);
  file.write(std::as_bytes(std::span(&header_size, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const SavedTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

void save_npy(const std::filesystem::path& path, const SavedTensor& tensor) {
  const std::string header = npy_header(tensor.kind, tensor.shape);
  TemporaryFile file(path);
  file.write(std::as_bytes(std::span(header)));
  file.write(tensor.bytes);
  file.commit();
}

void check_save_path(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension != ".safetensors" && extension != ".npz") {
    throw UsageError(
        fmt::format("--save: {} ends in neither .safetensors nor .npz; these are the "
                    "formats that infer writes",
                    path.string()));
  }
}

void save(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
          const std::map<std::string, std::string>& metadata) {
  if (path.extension() == ".npz") {
    save_npz(path, tensors);
  } else {
    save_safetensors(path, tensors, metadata);
  }
}

}  // namespace infer
