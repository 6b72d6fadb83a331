// Writing tensors: a safetensors file is eight bytes of header length, the header in JSON, and the
// tensors.
#include "infer/cli/save.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

#include "files/json_writer.h"
#include "infer/cli/command_line.h"
#include "infer/cli/temporary_file.h"
#include "phasor/errors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "all formats are little-endian");

/// As NumPy calls a kind, and as safetensors does, in the order of SavedTensor::Kind.
constexpr std::string_view kNumpy[] = {"<f4", "<i4", "<i8"};
constexpr std::string_view kNames[] = {"F32", "I32", "I64"};

std::string header_of(std::span<const SavedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  phasor::internal::JsonWriter json;
  size_t offset = 0;
  json.object([&] {
    json.member("__metadata__", metadata);
    for (const SavedTensor& tensor : tensors) {
      const size_t end = offset + tensor.bytes.size();
      json.key(tensor.name)
          .object("dtype", kNames[static_cast<size_t>(tensor.kind)], "shape", tensor.shape,
                  "data_offsets", std::array{std::exchange(offset, end), end});
    }
  });
  return json.take();
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

std::string safetensors_header(std::string text, size_t length) {
  text.resize(length > 0 ? length : (text.size() + 7) / 8 * 8, ' ');
  const auto size = static_cast<uint64_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
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
  if (path.extension() == ".npy") {
    save_flat(option, path,
              npy_header(kNumpy[static_cast<size_t>(tensors[0].kind)], tensors[0].shape),
              tensors.first(1));
  } else {
    save_flat(option, path, safetensors_header(header_of(tensors, metadata)), tensors);
  }
}

}  // namespace infer
