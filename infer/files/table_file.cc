// Nothing that stands in a file's header is believed unchecked.
#include "infer/files/table_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "infer/files/plain_file.h"
#include "models/file_kinds.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr int64_t kMostBytes = int64_t{1} << 28, kMostColumns = 8192;  // of a matrix
constexpr int64_t kMostHeaderBytes = 10000;  // of an npy file: as NumPy, by default

[[noreturn]] void refuse_table(const std::filesystem::path& file, const std::string& why) {
  throw phasor::ModelError(fmt::format("{}: {}", file.string(), why));
}

/// A matrix of numbers of type T, which `bytes` must be long enough for.
template <typename T>
Matrix matrix_of(std::string_view bytes, int64_t rows, int64_t columns) {
  Matrix matrix{.values = {}, .rows = rows, .columns = columns};
  matrix.values.reserve(bytes.size() / sizeof(T));
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    matrix.values.push_back(static_cast<double>(value));
  }
  return matrix;
}

void refuse_wide(const std::filesystem::path& file, int64_t columns) {
  if (columns <= kMostColumns) return;
  refuse_table(
      file, fmt::format("its matrix has {} columns; at most {} are read", columns, kMostColumns));
}

/// What stands behind 'key': in the dictionary that is an npy file's header.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 3);  // and the quotes and the colon
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

/// "(3, 4)…" or "(3, 4, )…"; empty where it is something else.
std::optional<std::array<int64_t, 2>> two_sizes(std::string_view text) {
  std::array<int64_t, 2> sizes{};
  const auto skip = [&](size_t count) { text.remove_prefix(std::min(count, text.size())); };
  if (!text.starts_with('(')) return {};
  for (int64_t& size : sizes) {
    skip(text.find_first_not_of("(, "));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || size < 0) return {};
    skip(static_cast<size_t>(end - text.data()));
  }
  skip(text.find_first_not_of(", "));
  return text.starts_with(')') ? std::optional(sizes) : std::nullopt;
}

[[noreturn]] void refuse_dtype(const std::filesystem::path& file, std::string_view dtype) {
  const bool big_endian = dtype.starts_with("'>f");
  refuse_table(file, fmt::format("its numbers are of the dtype {}{}; float32 and float64, "
                                 "little-endian, are read; save table.astype('<f4')",
                                 phasor::internal::value_text(std::string(dtype)),
                                 big_endian ? ", big-endian floating point" : ""));
}

Matrix read_npy(const std::filesystem::path& file) {
  const std::string bytes = phasor::internal::read_file(file, kMostBytes + kMostHeaderBytes);
  std::string_view rest = bytes;
  if (rest.size() < 12) refuse_table(file, "the file ends within its header");
  const size_t length_bytes = rest[6] == 1 ? 2 : 4;  // behind the magic and the version
  uint32_t length = 0;
  std::memcpy(&length, &rest[8], length_bytes);
  rest.remove_prefix(8 + length_bytes);
  if (length > rest.size()) refuse_table(file, "the file ends within its header");
  const std::string_view header = rest.substr(0, length);
  rest.remove_prefix(length);

  const auto sizes = two_sizes(value_of(header, "shape"));
  const std::string_view dtype = value_of(header, "descr").substr(0, 5);
  const bool is_float = dtype == "'<f4'";
  if (!is_float && dtype != "'<f8'") refuse_dtype(file, dtype);
  if (!sizes) refuse_table(file, "it holds no matrix; a table is [positions, width]");
  if (!value_of(header, "fortran_order").starts_with("False")) {
    refuse_table(file, "it is stored column by column; save numpy.ascontiguousarray of it");
  }
  const auto [rows, columns] = *sizes;
  refuse_wide(file, columns);
  const int64_t row_bytes = columns * (is_float ? 4 : 8);
  if (row_bytes == 0 || std::ssize(rest) % row_bytes != 0 || std::ssize(rest) / row_bytes != rows) {
    refuse_table(file, fmt::format("{} bytes and a header of {} are no matrix [{}, {}]",
                                   bytes.size(), bytes.size() - rest.size(), rows, columns));
  }
  return (is_float ? matrix_of<float> : matrix_of<double>)(rest, rows, columns);
}

Matrix read_safetensors(const std::filesystem::path& file) {
  const auto opened = phasor::SafetensorsFile::open(file);
  std::map<std::string, phasor::SafetensorsFile::Entry> matrices;
  for (const auto& [name, entry] : opened->entries()) {
    constexpr std::array kTypes = {"F64", "F32", "F16", "BF16"};
    const bool is_float = std::ranges::find(kTypes, entry.dtype) != kTypes.end();
    if (is_float && entry.shape.size() == 2) matrices.emplace(name, entry);
  }
  if (matrices.empty()) refuse_table(file, "it holds no matrix of floating-point numbers");
  const auto found = matrices.size() == 1 ? matrices.begin() : matrices.find("positions");
  if (found == matrices.end()) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : matrices) names.push_back(names.size() < 4 ? name : "…");
    names.resize(std::min<size_t>(names.size(), 5));
    refuse_table(file,
                 fmt::format("it holds {} matrices ({}); save the one you mean as 'positions'",
                             matrices.size(), fmt::join(names, ", ")));
  }
  const auto& [name, entry] = *found;
  const int64_t rows = entry.shape[0], columns = entry.shape[1];
  refuse_wide(file, columns);
  if (entry.num_bytes > kMostBytes) {
    refuse_table(file, fmt::format("its matrix takes {} bytes; at most {} are read",
                                   entry.num_bytes, kMostBytes));
  }
  if (entry.dtype == "F64") {
    const auto* const data = reinterpret_cast<const char*>(entry.data);
    return matrix_of<double>({data, static_cast<size_t>(entry.num_bytes)}, rows, columns);
  }
  const std::vector<float> values = opened->tensor(name).to_float();
  return {{values.begin(), values.end()}, rows, columns};
}

/// Whether it is .npy rather than safetensors. Throws ModelError if it is neither.
bool is_npy(const std::filesystem::path& file) {
  using namespace phasor::internal;
  const std::string head = PlainFile(file).read(64);
  if (head.starts_with("\x93NUMPY")) return true;
  refuse_other_kind(head, file, FileFormat::kSafetensors);
  if (file_kind(head) == nullptr && file.extension() != ".safetensors") {
    refuse_table(file, "this is neither .npy nor .safetensors");
  }
  return false;
}

Matrix read_any(const std::filesystem::path& file) {
  Matrix matrix = is_npy(file) ? read_npy(file) : read_safetensors(file);
  if (matrix.values.empty()) {
    refuse_table(file, fmt::format("its matrix [{}, {}] is empty", matrix.rows, matrix.columns));
  }
  const auto is_float32 = [](double v) { return std::abs(v) <= std::numeric_limits<float>::max(); };
  const auto bad = std::ranges::find_if_not(matrix.values, is_float32);
  if (bad != matrix.values.end()) {
    const auto i = bad - matrix.values.begin();
    refuse_table(
        file, fmt::format("row {}, column {} is {}; it must be finite, and no larger than float32",
                          i / matrix.columns, i % matrix.columns, *bad));
  }
  return matrix;
}

}  // namespace

bool is_table_file(const std::filesystem::path& file) {
  return file.extension() == ".npy" || file.extension() == ".safetensors";
}

Matrix read_table(const std::filesystem::path& file, const std::string& what) {
  return as_input(what, [&] { return read_any(file); });
}

}  // namespace infer
