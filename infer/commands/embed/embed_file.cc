#include "infer/commands/embed/embed_file.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
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
  const auto json_of = [&](int64_t rows, int64_t bytes) {
    JsonWriter json;
    json.object([&] {
      json.member("__metadata__", metadata);
      json.key("dense").object("dtype", "F32", "shape", std::array{rows, width}, "data_offsets",
                               std::array{int64_t{0}, bytes});
    });
    return json.take();
  };
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();  // so that all are as long
  const size_t length = safetensors_header(json_of(kLongest, kLongest)).size() - sizeof(uint64_t);
  return safetensors_header(json_of(lines, lines * width * 4), length);
}

std::string VectorFormat::rows(std::span<const float> values, int64_t first_line) const {
  if (kind != Kind::kJsonLines) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  std::string text;
  for (int64_t line = first_line; !values.empty(); ++line, values = values.subspan(width)) {
    text += json_object("line", line, "embedding", values.first(width)) + "\n";
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
