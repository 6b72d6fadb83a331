// Saving to a safetensors file: eight bytes of header length, the header in JSON, the tensors.
#include "infer/files/save.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "infer/files/temporary_file.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "both formats are little-endian");

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
  TemporaryFile file("--save", path);
  file.write(std::as_bytes(std::span(&header_size, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const SavedTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

void save_npy(const std::filesystem::path& path, const SavedTensor& tensor) {
  const std::string header = npy_header(tensor.kind, tensor.shape);
  TemporaryFile file("--save", path);
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
