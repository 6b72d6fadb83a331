// Writing tensors: a safetensors file is eight bytes of header length, the header in JSON, and the
// tensors; an npz file is a zip archive of NumPy's .npy files, stored without compression.
#include "infer/files/save.h"

#include <fmt/format.h>
#include <zip.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "infer/cli/usage.h"
#include "infer/files/temporary_file.h"
#include "phasor/errors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "all formats are little-endian");

/// As NumPy calls it.
std::string_view dtype(const SavedTensor& tensor) {
  return tensor.kind == SavedTensor::Kind::kInt32 ? "<i4" : "<f4";
}

nlohmann::ordered_json header_of(std::span<const SavedTensor> tensors,
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
  return header;
}

/// The header, and the tensors one after another.
void save_flat(const std::filesystem::path& path, const std::string& header,
               std::span<const SavedTensor> tensors) {
  TemporaryFile file("--save", path);
  file.write(std::as_bytes(std::span(header)));
  for (const SavedTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* reason) {
  throw phasor::InvalidArgument(fmt::format("--save: cannot write {}: {}", path.string(), reason));
}

void add(zip_t* archive, const std::filesystem::path& path, const SavedTensor& tensor,
         const std::string& header) {
  // libzip copies the two fragments' addresses, not their contents.
  std::array<zip_buffer_fragment_t, 2> fragments{};
  fragments[0].data = reinterpret_cast<zip_uint8_t*>(const_cast<char*>(header.data()));
  fragments[0].length = header.size();
  fragments[1].data = reinterpret_cast<zip_uint8_t*>(const_cast<std::byte*>(tensor.bytes.data()));
  fragments[1].length = tensor.bytes.size();
  zip_source_t* source = zip_source_buffer_fragment(archive, fragments.data(), 2, 0);
  if (source == nullptr) fail(path, zip_strerror(archive));
  const std::string name = tensor.name + ".npy";
  const zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    zip_source_free(source);
    fail(path, zip_strerror(archive));
  }
  constexpr zip_uint16_t kFirstOfJanuary1980 = 1 << 5 | 1;  // the same bytes on every day
  if (zip_set_file_compression(archive, index, ZIP_CM_STORE, 0) != 0 ||
      zip_file_set_dostime(archive, index, 0, kFirstOfJanuary1980, 0) != 0) {
    fail(path, zip_strerror(archive));
  }
}

// libzip's own files have no fsync() and stay behind where it is killed: it writes to memory.
void save_npz(const std::filesystem::path& path, std::span<const SavedTensor> tensors) {
  TemporaryFile file("--save", path);
  std::unique_ptr<zip_source_t, decltype(&zip_source_free)> bytes(
      zip_source_buffer_create(nullptr, 0, 0, nullptr), zip_source_free);
  std::unique_ptr<zip_t, decltype(&zip_discard)> archive(
      zip_open_from_source(bytes.get(), ZIP_TRUNCATE, nullptr), zip_discard);
  if (archive == nullptr) fail(path, std::strerror(ENOMEM));
  zip_source_keep(bytes.get());
  std::vector<std::string> headers;
  headers.reserve(tensors.size());
  for (const SavedTensor& tensor : tensors) {
    add(archive.get(), path, tensor, headers.emplace_back(npy_header(dtype(tensor), tensor.shape)));
  }
  if (zip_close(archive.get()) != 0) fail(path, zip_strerror(archive.get()));
  archive.release();
  std::vector<std::byte> part(1 << 20);
  zip_source_open(bytes.get());
  while (const zip_int64_t size = zip_source_read(bytes.get(), part.data(), part.size())) {
    if (size < 0) fail(path, zip_error_strerror(zip_source_error(bytes.get())));
    file.write(std::span(part).first(size));
  }
  file.commit();
}

}  // namespace

std::string safetensors_header(const nlohmann::ordered_json& header, size_t length) {
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  if (extension == ".safetensors" || extension == ".npz") return;
  if (one_tensor && extension == ".npy") return;
  throw UsageError(fmt::format("--save: the name {} must end in {}.npz or .safetensors",
                               path.string(), one_tensor ? ".npy, " : ""));
}

void save(const std::filesystem::path& path, std::span<const SavedTensor> tensors,
          const std::map<std::string, std::string>& metadata) {
  const std::string extension = path.extension().string();
  if (extension == ".npz") {
    save_npz(path, tensors);
  } else if (extension == ".npy") {
    save_flat(path, npy_header(dtype(tensors[0]), tensors[0].shape), tensors.first(1));
  } else {
    save_flat(path, safetensors_header(header_of(tensors, metadata)), tensors);
  }
}

}  // namespace infer
