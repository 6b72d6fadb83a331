// Reading matrices from files; nothing that stands in their headers is believed unchecked.
#include "infer/files/table_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "infer/files/plain_file.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr uint64_t kMostBytes = uint64_t{1} << 28, kMostColumns = 8192;  // of a matrix
constexpr size_t kMostHeaderBytes = 10000;     // of an npy file: as NumPy, by default
constexpr zip_int64_t kMostEntries = 1 << 16;  // of an archive; the header of each is read

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw phasor::InvalidArgument(fmt::format("the table {}: {}", file.string(), why));
}

template <typename T>
void append(std::string_view bytes, std::vector<double>& values) {
  for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    values.push_back(static_cast<double>(value));
  }
}

void refuse_too_large(const std::filesystem::path& file, uint64_t bytes, uint64_t columns) {
  if (columns > kMostColumns) {
    fail(file,
         fmt::format("its matrix has {} columns; at most {} are read", columns, kMostColumns));
  }
  if (bytes <= kMostBytes) return;
  fail(file, fmt::format("its matrix takes {} bytes; at most {} are read", bytes, kMostBytes));
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

/// The bytes of an npy file, one after another.
struct NpySource {
  uint64_t size = 0;  // as the file system or the archive says
  /// Fills what it is given; how much there was: less than asked for only at the end.
  std::function<size_t(std::span<char>)> read;
};

struct NpyHeader {
  uint64_t bytes = 0;  // its own
  int64_t rows = 0, columns = 0;
  bool is_float = true;  // or double
  bool by_columns = false;
};

/// Empty where the file is something else than a matrix in float32 or float64.
std::optional<NpyHeader> read_npy_header(const std::filesystem::path& file,
                                         const NpySource& source) {
  const auto read = [&](void* to, size_t count) {
    return source.read({static_cast<char*>(to), count}) == count;
  };
  std::array<char, 8> magic;  // and version
  if (!read(magic.data(), 8) || std::memcmp(magic.data(), "\x93NUMPY", 6) != 0) {
    fail(file, "this is no .npy file");
  }
  const size_t length_bytes = magic[6] == 1 ? 2 : 4;
  uint32_t length = 0;
  const bool has_length = read(&length, length_bytes);
  if (length > kMostHeaderBytes) {
    fail(file, fmt::format("a header of {} bytes; at most {} are read", length, kMostHeaderBytes));
  }
  std::string header(length, '\0');
  if (!has_length || !read(header.data(), length)) fail(file, "the file ends within its header");

  const auto sizes = two_sizes(value_of(header, "shape"));
  if (!sizes) return {};
  const std::string_view type = value_of(header, "descr");
  const bool is_float = type.starts_with("'<f4'");
  if (!is_float && !type.starts_with("'<f8'")) return {};
  return NpyHeader{.bytes = magic.size() + length_bytes + length,
                   .rows = (*sizes)[0],
                   .columns = (*sizes)[1],
                   .is_float = is_float,
                   .by_columns = !value_of(header, "fortran_order").starts_with("False")};
}

/// Exactly the numbers that the header announces, which must be all that follows it.
Matrix read_npy_matrix(const std::filesystem::path& file, const NpyHeader& header,
                       const NpySource& source) {
  if (header.by_columns) {
    fail(file, "it is stored column by column; save numpy.ascontiguousarray of it");
  }
  const uint64_t width = header.is_float ? 4 : 8;
  const uint64_t size = source.size - header.bytes;  // of the numbers
  const auto rows = static_cast<uint64_t>(header.rows);
  const auto columns = static_cast<uint64_t>(header.columns);
  const bool fits = source.size >= header.bytes && columns > 0 && size % width == 0 &&
                    size / width % columns == 0 && size / width / columns == rows;
  if (!fits) {
    fail(file, fmt::format("{} bytes and a header of {} are no matrix [{}, {}]", source.size,
                           header.bytes, rows, columns));
  }
  refuse_too_large(file, size, columns);
  std::string bytes(size, '\0');
  if (source.read(bytes) != size) fail(file, "it ends too early");
  char more;
  if (source.read({&more, 1}) != 0) fail(file, "it is longer than it says");
  Matrix matrix{.values = {}, .rows = header.rows, .columns = header.columns};
  matrix.values.reserve(size / width);
  (header.is_float ? append<float> : append<double>)(bytes, matrix.values);
  return matrix;
}

/// The one of several matrices, by name, that is meant.
template <typename Map>
const typename Map::value_type& pick(const std::filesystem::path& file, const Map& matrices) {
  if (matrices.empty()) fail(file, "it holds no matrix of floating-point numbers");
  if (matrices.size() == 1) return *matrices.begin();
  if (const auto wanted = matrices.find("positions"); wanted != matrices.end()) return *wanted;
  std::vector<std::string> names;
  for (const auto& [name, matrix] : matrices) names.push_back(names.size() < 4 ? name : "…");
  if (names.size() > 5) names.resize(5);
  fail(file, fmt::format("it holds {} matrices ({}); save the one you mean as 'positions'",
                         matrices.size(), fmt::join(names, ", ")));
}

Matrix read_npy(const std::filesystem::path& file) {
  const phasor::internal::PlainFile plain(file);
  const NpySource source{static_cast<uint64_t>(plain.size()),
                         [&](std::span<char> bytes) { return plain.read(bytes); }};
  const std::optional<NpyHeader> header = read_npy_header(file, source);
  if (!header) {
    fail(file, "it holds no matrix in float32 or float64; a table is [positions, width]");
  }
  return read_npy_matrix(file, *header, source);
}

/// An entry of an archive from its beginning on. Nothing that the archive says of it is believed.
NpySource open_entry(const std::filesystem::path& file, zip_t* archive, zip_uint64_t index) {
  zip_stat_t stat;
  zip_file_t* const opened =
      zip_stat_index(archive, index, 0, &stat) == 0 ? zip_fopen_index(archive, index, 0) : nullptr;
  if (opened == nullptr) fail(file, "an entry cannot be read");
  const auto read = [&file, name = std::string(stat.name),
                     entry = std::shared_ptr<zip_file_t>(opened, zip_fclose)](auto bytes) {
    size_t count = 0;
    for (zip_int64_t n = 1; n > 0 && count < bytes.size(); count += static_cast<size_t>(n)) {
      n = zip_fread(entry.get(), bytes.data() + count, bytes.size() - count);
      if (n < 0) fail(file, fmt::format("its entry {} is damaged", name));
    }
    return count;
  };
  return {stat.size, read};
}

Matrix read_npz(const std::filesystem::path& file) {
  using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
  phasor::internal::PlainFile{file};  // says why it cannot be read
  const Archive archive(zip_open(file.c_str(), ZIP_RDONLY, nullptr), zip_discard);
  if (archive == nullptr) fail(file, "this is no .npz file");
  const zip_int64_t entries = zip_get_num_entries(archive.get(), 0);
  if (entries > kMostEntries) {
    fail(file, fmt::format("{} entries; at most {} are read", entries, kMostEntries));
  }
  std::map<std::string, zip_int64_t> matrices;
  for (zip_int64_t i = 0; i < entries; ++i) {
    if (!read_npy_header(file, open_entry(file, archive.get(), i))) continue;
    std::string name = zip_get_name(archive.get(), i, 0);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    matrices.emplace(name, i);
  }
  const NpySource source = open_entry(file, archive.get(), pick(file, matrices).second);
  return read_npy_matrix(file, read_npy_header(file, source).value(), source);
}

Matrix read_safetensors(const std::filesystem::path& file) {
  const auto opened = phasor::SafetensorsFile::open(file);
  std::map<std::string, const phasor::SafetensorsFile::Entry*> matrices;
  for (const auto& [name, entry] : opened->entries()) {
    constexpr std::array kTypes = {"F64", "F32", "F16", "BF16"};
    const bool is_float = std::ranges::find(kTypes, entry.dtype) != kTypes.end();
    if (is_float && entry.shape.size() == 2) matrices.emplace(name, &entry);
  }
  const auto& [name, entry] = pick(file, matrices);
  const auto [rows, columns] = std::pair(entry->shape[0], entry->shape[1]);
  refuse_too_large(file, static_cast<uint64_t>(entry->num_bytes), static_cast<uint64_t>(columns));
  Matrix matrix{.values = {}, .rows = rows, .columns = columns};
  if (entry->dtype == "F64") {
    const auto* const data = reinterpret_cast<const char*>(entry->data);
    append<double>({data, static_cast<size_t>(entry->num_bytes)}, matrix.values);
  } else {
    const std::vector<float> values = opened->tensor(name).to_float();
    matrix.values.assign(values.begin(), values.end());
  }
  return matrix;
}

}  // namespace

bool is_table_file(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  return extension == ".npy" || extension == ".npz" || extension == ".safetensors";
}

Matrix read_table(const std::filesystem::path& file) {
  if (!is_table_file(file)) {
    fail(file, "its name ends in none of .npy, .npz and .safetensors, the files that are read");
  }
  const std::string extension = file.extension().string();
  const auto read = extension == ".npy"   ? read_npy
                    : extension == ".npz" ? read_npz
                                          : read_safetensors;
  Matrix matrix = as_input("the table ", [&] { return read(file); });
  if (matrix.rows < 1 || matrix.columns < 1) {
    fail(file, fmt::format("its matrix [{}, {}] is empty", matrix.rows, matrix.columns));
  }
  const auto is_float32 = [](double v) { return std::abs(v) <= std::numeric_limits<float>::max(); };
  const auto bad = std::ranges::find_if_not(matrix.values, is_float32);
  if (bad != matrix.values.end()) {
    const auto i = bad - matrix.values.begin();
    fail(file, fmt::format("row {}, column {} is {}; it must be finite, and no larger than float32",
                           i / matrix.columns, i % matrix.columns, *bad));
  }
  return matrix;
}

}  // namespace infer
