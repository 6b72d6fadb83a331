// The three forms in which infer embed writes vectors: .npy, .safetensors and JSON lines.
#include "infer/commands/embed/embed_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "infer/commands.h"
#include "infer/files/save.h"

namespace infer {
namespace {

std::string safetensors_header(const VectorFormat& format, int64_t lines, int64_t bytes) {
  nlohmann::ordered_json header;
  header["__metadata__"] = format.metadata;
  header["embeddings"] = {
      {"dtype", "F32"}, {"shape", {lines, format.width}}, {"data_offsets", {0, bytes}}};
  return header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string safetensors_header(const VectorFormat& format, int64_t lines) {
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const uint64_t size = (safetensors_header(format, kLongest, kLongest).size() + 7) / 8 * 8;
  std::string text = safetensors_header(format, lines, lines * format.width * 4);
  text.resize(size, ' ');
  std::string length(sizeof size, '\0');
  std::memcpy(length.data(), &size, sizeof size);
  return length + text;
}

}  // namespace

VectorFormat::Kind VectorFormat::kind_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".npy") return Kind::kNpy;
  if (extension == ".safetensors") return Kind::kSafetensors;
  if (extension == ".jsonl") return Kind::kJsonLines;
  throw UsageError(
      fmt::format("-o: {} ends in none of .npy, .jsonl and .safetensors; these are the formats "
                  "that infer embed writes",
                  path.string()));
}

std::string VectorFormat::header(int64_t lines) const {
  switch (kind) {
    case Kind::kNpy:
      return npy_header(SavedTensor::Kind::kFloat32, std::array{lines, width});
    case Kind::kSafetensors:
      return safetensors_header(*this, lines);
    case Kind::kJsonLines:
      break;
  }
  return "";
}

std::string VectorFormat::rows(std::span<const float> values, int64_t first_line) const {
  if (kind != Kind::kJsonLines) {
    const std::span<const std::byte> bytes = std::as_bytes(values);
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string text;
  for (int64_t line = first_line; !values.empty(); ++line) {
    text += fmt::format("{{\"line\":{},\"embedding\":[{}]}}\n", line,
                        fmt::join(values.first(width), ","));
    values = values.subspan(width);
  }
  return text;
}

}  // namespace infer
