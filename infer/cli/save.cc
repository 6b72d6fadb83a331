// Writing tensors: a safetensors file is eight bytes of header length, the header in JSON, and the
// tensors.
#include "infer/cli/save.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>
#include <utility>

#include "files/json_writer.h"
#include "infer/cli/command_line.h"
#include "phasor/errors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "all formats are little-endian");

/// As NumPy calls a kind, and as safetensors does, in the order of SavedTensor::Kind.
constexpr std::string_view kNumpy[] = {"<f4", "<i4", "<i8"};
constexpr std::string_view kNames[] = {"F32", "I32", "I64"};
constexpr int64_t kSizes[] = {4, 4, 8};

std::string header_of(std::span<const SavedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  phasor::internal::JsonWriter json;
  int64_t offset = 0;
  json.object([&] {
    json.member("__metadata__", metadata);
    for (const SavedTensor& tensor : tensors) {
      const int64_t end =
          std::accumulate(tensor.shape.begin(), tensor.shape.end(),
                          kSizes[static_cast<size_t>(tensor.kind)], std::multiplies()) +
          offset;
      json.key(tensor.name)
          .object("dtype", kNames[static_cast<size_t>(tensor.kind)], "shape", tensor.shape,
                  "data_offsets", std::array{std::exchange(offset, end), end});
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

/// The header, and the tensors one after another.
void save_flat(const std::string& option, const std::filesystem::path& path,
               const std::string& header, std::span<const SavedTensor> tensors) {
  TemporaryFile file(option, path);
  file.write(std::as_bytes(std::span(header)));
  for (const SavedTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace

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
  if (path.extension() == ".npy") {
    save_flat(option, path,
              npy_header(kNumpy[static_cast<size_t>(tensors[0].kind)], tensors[0].shape),
              tensors.first(1));
  } else {
    save_flat(option, path, safetensors_header(header_of(tensors, metadata)), tensors);
  }
}

MatrixFile::MatrixFile(const std::string& option, const std::filesystem::path& path,
                       std::string name, int64_t width, std::map<std::string, std::string> metadata)
    : name_(std::move(name)),
      is_npy_(path.extension() == ".npy"),
      width_(width),
      metadata_(std::move(metadata)),
      file_(option, path) {
  file_.write(header());
}

std::string MatrixFile::header() const {
  SavedTensor matrix(name_, {rows_, width_}, std::span<const float>());
  if (is_npy_) return npy_header(kNumpy[0], matrix.shape);
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
