#include "infer/commands/embed/saved_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "phasor/errors.h"
#include "phasor/names.h"
#include "phasor/safetensors.h"

namespace infer {

SavedRows::SavedRows(const std::string& option, const std::filesystem::path& file,
                     const std::string& tensor, int64_t width)
    : matrix_(as_input(option + ": ", [&] { return MatrixFile(file, tensor, true); })),
      width_(matrix_.columns()) {
  using phasor::DType, phasor::VectorType;
  const auto refuse = [&](const std::string& why) {
    throw phasor::InvalidArgument(fmt::format("{}: {}: {}", option, file.string(), why));
  };
  const phasor::SafetensorsFile* const whole = safetensors();
  if (tensor == "embeddings" && whole != nullptr && whole->metadata().contains("format")) {
    const std::string& format = whole->metadata().at("format");
    if (format == "chunks" || format == "token vectors")
      refuse(fmt::format("these are no vectors of lines, but {}{}", format,
                         format == "chunks" ? "" : "; infer rank --in searches them"));
  }
  constexpr int64_t kMostColumns = int64_t{1} << 48;
  if (width_ > kMostColumns) refuse(fmt::format("its rows have {} numbers", width_));
  const DType dtype = matrix_.tensor().dtype;
  if (dtype != DType::kInt8 && dtype != DType::kUint8) return;
  if (whole != nullptr && whole->entries().contains("least") && whole->entries().contains("most")) {
    type_ = dtype == DType::kInt8 ? VectorType::kInt8 : VectorType::kUint8;
    as_input(option + ": ", [&] {
      ranges_ = {whole->tensor("least").to_float(), whole->tensor("most").to_float()};
    });
    try {
      phasor::dequantize({}, width_, type_, ranges_);
    } catch (const phasor::InvalidArgument& error) {
      refuse(fmt::format("'least' and 'most': {}", error.what()));
    }
    return;
  }
  if (width_ == width && width > 8) {
    refuse(
        "its numbers have 8 bits, and nothing says what they stand for: a .safetensors file has "
        "their columns' ranges as 'least' and 'most'; infer embed --quantize int8 writes one");
  }
  type_ = dtype == DType::kInt8 ? VectorType::kBinary : VectorType::kUbinary;
  width_ = (width + 7) / 8 == width_ ? width : 8 * width_;
}

void SavedRows::copy(int64_t row, std::span<float> to) const {
  if (type_ == phasor::VectorType::kFloat32) {
    matrix_.tensor().copy_to(to.data(), row * width_, std::ssize(to));
    return;
  }
  const int64_t count = std::ssize(to) / std::max<int64_t>(width_, 1);
  std::ranges::copy(phasor::dequantize(bytes(row, count), width_, type_, ranges_), to.begin());
}

void SavedRows::check(const std::string& option, phasor::Similarity kind) const {
  if (!are_bits() || kind == phasor::Similarity::kCosine || kind == phasor::Similarity::kDot)
    return;
  throw phasor::InvalidArgument(
      fmt::format("{}: vectors of bits have no {} distance; name others with --rescore", option,
                  to_string(kind)));
}

}  // namespace infer
