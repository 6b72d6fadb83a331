#include "infer/commands/embed/embed_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "infer/cli/save.h"
#include "infer/commands.h"

namespace infer {

VectorFormat::Kind VectorFormat::kind_of(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".jsonl") return Kind::kJsonLines;
  if (extension == ".npy") return Kind::kNpy;
  if (extension == ".safetensors") return Kind::kSafetensors;
  throw UsageError(
      fmt::format("-o: {} ends in none of .npy, .jsonl and .safetensors; these are the formats "
                  "that infer embed writes",
                  path.string()));
}

std::string VectorFormat::header(int64_t lines) const {
  if (kind == Kind::kNpy) return npy_header("<f4", std::array{lines, width});
  if (kind == Kind::kJsonLines) return "";
  const auto json = [&](int64_t rows, int64_t bytes) -> nlohmann::ordered_json {
    return {
        {"__metadata__", metadata},
        {"embeddings", {{"dtype", "F32"}, {"shape", {rows, width}}, {"data_offsets", {0, bytes}}}}};
  };
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();  // so that all are as long
  const size_t length = safetensors_header(json(kLongest, kLongest)).size() - sizeof(uint64_t);
  return safetensors_header(json(lines, lines * width * 4), length);
}

std::string VectorFormat::rows(std::span<const float> values, int64_t first_line) const {
  if (kind != Kind::kJsonLines) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  std::string text;
  for (int64_t line = first_line; !values.empty(); ++line, values = values.subspan(width)) {
    fmt::format_to(std::back_inserter(text), "{{\"line\":{},\"embedding\":[{}]}}\n", line,
                   fmt::join(values.first(width), ","));
  }
  return text;
}

VectorFile::VectorFile(const std::filesystem::path& path, VectorFormat format)
    : format_(std::move(format)), file_("-o", path) {
  file_.write(format_.header(0));
}

void VectorFile::append(std::span<const float> values) {
  file_.write(format_.rows(values, lines_ + 1));
  lines_ += std::ssize(values) / format_.width;
}

void VectorFile::commit() {
  file_.write_at_the_beginning(format_.header(lines_));
  file_.commit();
}

}  // namespace infer
