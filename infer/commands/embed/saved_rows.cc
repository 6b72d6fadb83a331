#include "infer/commands/embed/saved_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "infer/cli/terminal.h"
#include "phasor/errors.h"
#include "phasor/names.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

/// Differences that make similarities of queries and saved vectors meaningless, and those that
/// hardly change them. A prompt, for example, is rightly another for queries.
constexpr std::array<std::string_view, 3> kDecide = {"pooling", "tokenizer", "weights"};
constexpr std::array<std::string_view, 3> kWorthKnowing = {"config", "libraries", "precision"};

}  // namespace

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

void note_left_out(const std::filesystem::path& file, bool quiet, int64_t lines) {
  if (lines == 0 || quiet) return;
  report_note(
      fmt::format("{}: lines left out, which hold NaN or infinity: {}", file.string(), lines));
}

std::optional<VectorRecord> checked_record(const std::string& option,
                                           const std::filesystem::path& file, int64_t width,
                                           const Searcher& searcher) {
  const std::optional<VectorRecord> record = VectorRecord::find(file);
  const auto refuse = [&](const std::string& why) {
    throw phasor::InvalidArgument(fmt::format("{}: {}: {}", option, file.string(), why));
  };
  const auto made_by = [&](const char* what) {
    const auto found = record ? record->made_with.find(what) : MadeWith::const_iterator();
    return record && found != record->made_with.end() ? found->second : "?";
  };
  if (width != searcher.width) {
    const std::string maker =
        record ? "they were made by " + made_by("model") : "no record says what made it";
    refuse(
        fmt::format("its vectors have {} numbers, and this model's {}; {}; name the model that "
                    "made it with -m",
                    width, searcher.width, maker));
  }
  const auto note = [&](const std::string& text) {
    if (!searcher.quiet) report_note(fmt::format("{}: {}", file.string(), text));
  };
  if (!record) {
    note("no record says what made it");
    return record;
  }
  std::error_code ignored;
  if (std::filesystem::file_size(file, ignored) != static_cast<uintmax_t>(record->bytes)) {
    refuse(fmt::format("it has changed since {} was written; make it anew, or remove the record",
                       record_beside(file).string()));
  }
  for (const Difference& difference : differences(record->made_with, searcher.made_with)) {
    if (!searcher.made_with.contains(difference.what)) continue;  // of other vectors beside these
    const std::string text = text_of(difference, record->made_with, searcher.made_with);
    if (std::ranges::find(kDecide, difference.what) != kDecide.end()) {
      refuse(
          fmt::format("these vectors were made with {}; choose what made them with -m and "
                      "--pooling, or embed the texts again",
                      text));
    }
    if (std::ranges::find(kWorthKnowing, difference.what) != kWorthKnowing.end())
      note(fmt::format("made with {}", text));
  }
  const std::optional<std::string>& prompt = searcher.document_prompt;
  if (prompt && made_by("prefix") != fmt::format("\"{}\"", *prompt)) {
    note(
        fmt::format("made with the prefix {}, not the model's prompt for documents; embed -o with "
                    "--prefix \"{}\" uses it",
                    made_by("prefix"), *prompt));
  }
  return record;
}

}  // namespace infer
