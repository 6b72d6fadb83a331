// Headers are untrusted: every value is checked before use.
#include "files/matrix_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"
#include "phasor/names.h"
#include "phasor/safetensors.h"

namespace phasor::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr int64_t kMostHeaderBytes = 10000;  // of an npy file: as NumPy, by default

/// The text after 'key': in an npy file's header, which is a dictionary in Python.
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
  refuse<ModelError>(
      "{}: its numbers are of the dtype {}{}; float32 and float64, little-endian, are read; save "
      "table.astype('<f4')",
      file.string(), value_text(std::string(dtype)),
      big_endian ? ", big-endian floating point" : "");
}

/// The whole file.
std::shared_ptr<const std::byte> mapped(const std::filesystem::path& file,
                                        const PlainFile& opened) {
  const auto size = static_cast<size_t>(opened.size());
  void* const bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, opened.descriptor(), 0);
  if (bytes == MAP_FAILED)
    refuse<ModelError>("{}: cannot be mapped: {}", file.string(), std::strerror(errno));
  return {static_cast<const std::byte*>(bytes),
          [size](const std::byte* at) { munmap(const_cast<std::byte*>(at), size); }};
}

Tensor npy_matrix(const std::filesystem::path& file, std::shared_ptr<const void>& owner) {
  const PlainFile opened(file);
  std::string head = opened.read(kMostHeaderBytes + 12);
  std::string_view rest = head;
  if (rest.size() < 12) refuse<ModelError>("{}: the file ends within its header", file.string());
  const size_t length_bytes = rest[6] == 1 ? 2 : 4;  // behind the magic and the version
  uint32_t length = 0;
  std::memcpy(&length, &rest[8], length_bytes);
  rest.remove_prefix(8 + length_bytes);
  if (length > rest.size())
    refuse<ModelError>("{}: the file ends within its header", file.string());
  const std::string_view header = rest.substr(0, length);
  const int64_t begin = 8 + static_cast<int64_t>(length_bytes + length);

  const auto sizes = two_sizes(value_of(header, "shape"));
  const std::string_view dtype_name = value_of(header, "descr").substr(0, 5);
  if (dtype_name != "'<f4'" && dtype_name != "'<f8'") refuse_dtype(file, dtype_name);
  const DType dtype = dtype_name == "'<f4'" ? DType::kFloat32 : DType::kFloat64;
  if (!sizes)
    refuse<ModelError>("{}: it holds no matrix; a matrix is [rows, columns]", file.string());
  if (!value_of(header, "fortran_order").starts_with("False"))
    refuse<ModelError>("{}: it is stored column by column; save numpy.ascontiguousarray of it",
                       file.string());
  const auto [rows, columns] = *sizes;
  const int64_t bytes = opened.size() - begin;
  const int64_t number = Tensor{dtype, {1}, reinterpret_cast<const std::byte*>(&rows)}.num_bytes();
  constexpr int64_t kMostColumns = int64_t{1} << 48;
  const int64_t row = std::min(columns, kMostColumns) * number;
  if (row == 0 || bytes % row != 0 || bytes / row != rows || columns > kMostColumns) {
    refuse<ModelError>("{}: {} bytes and a header of {} are no matrix [{}, {}]", file.string(),
                       opened.size(), begin, rows, columns);
  }
  const auto all = mapped(file, opened);
  owner = all;
  return {.dtype = dtype, .shape = {rows, columns}, .data = all.get() + begin};
}

Tensor safetensors_matrix(const std::filesystem::path& file, const std::string& name,
                          std::shared_ptr<const void>& owner) {
  const auto opened = SafetensorsFile::open(file);
  owner = opened;
  std::vector<std::string> matrices;
  for (const auto& [entry_name, entry] : opened->entries()) {
    const auto types = names<DType>().all;
    const bool is_read = std::ranges::find(types, entry.dtype) != types.end();
    if (is_read && entry.shape.size() == 2) matrices.push_back(entry_name);
  }
  if (matrices.empty())
    refuse<ModelError>("{}: it holds no matrix of floating-point numbers", file.string());
  const auto found = matrices.size() == 1 ? matrices.begin() : std::ranges::find(matrices, name);
  if (found == matrices.end()) {
    std::vector<std::string> names = matrices;
    if (names.size() > 4) names.resize(5), names.back() = "…";
    refuse<ModelError>("{}: it holds {} matrices ({}); save the one you mean as '{}'",
                       file.string(), matrices.size(), fmt::join(names, ", "), name);
  }
  const SafetensorsFile::Entry& entry = opened->entries().at(*found);
  return {.dtype = parse<DType>(entry.dtype), .shape = entry.shape, .data = entry.data};
}

/// Whether it is .npy rather than safetensors. Throws ModelError if it is neither.
bool is_npy(const std::filesystem::path& file) {
  const std::string head = PlainFile(file).read(64);
  if (head.starts_with("\x93NUMPY")) return true;
  refuse_other_kind(head, file, FileFormat::kSafetensors);
  if (file_kind(head) == nullptr && file.extension() != ".safetensors")
    refuse<ModelError>("{}: this is neither .npy nor .safetensors", file.string());
  return false;
}

constexpr int64_t kMostTableBytes = int64_t{1} << 28, kMostTableColumns = 8192;  // of a table

std::vector<double> values_of(const Tensor& tensor) {
  if (tensor.dtype != DType::kFloat64) {
    const std::vector<float> values = tensor.to_float();
    return {values.begin(), values.end()};
  }
  std::vector<double> values(tensor.num_elements());
  if (!values.empty()) std::memcpy(values.data(), tensor.data, values.size() * sizeof(double));
  return values;
}

TableValues read_any(const std::filesystem::path& file) {
  std::shared_ptr<const void> mapped;
  const Tensor matrix =
      is_npy(file) ? npy_matrix(file, mapped) : safetensors_matrix(file, "positions", mapped);
  if (matrix.shape[1] > kMostTableColumns) {
    refuse<ModelError>("{}: its matrix has {} columns; at most {} are read", file.string(),
                       matrix.shape[1], kMostTableColumns);
  }
  if (matrix.num_bytes() > kMostTableBytes) {
    refuse<ModelError>("{}: its matrix takes {} bytes; at most {} are read", file.string(),
                       matrix.num_bytes(), kMostTableBytes);
  }
  TableValues table{values_of(matrix), matrix.shape[0], matrix.shape[1]};
  if (table.values.empty())
    refuse<ModelError>("{}: its matrix [{}, {}] is empty", file.string(), table.rows,
                       table.columns);
  const auto is_float32 = [](double v) { return std::abs(v) <= std::numeric_limits<float>::max(); };
  const auto bad = std::ranges::find_if_not(table.values, is_float32);
  if (bad != table.values.end()) {
    const auto i = bad - table.values.begin();
    refuse<ModelError>("{}: row {}, column {} is {}; it must be finite, and no larger than float32",
                       file.string(), i / table.columns, i % table.columns, *bad);
  }
  return table;
}

}  // namespace

bool is_table_file(const std::filesystem::path& file) {
  return file.extension() == ".npy" || file.extension() == ".safetensors";
}

TableValues read_table(const std::filesystem::path& file, const std::string& what) {
  return as_input(what, [&] { return read_any(file); });
}

}  // namespace phasor::internal
