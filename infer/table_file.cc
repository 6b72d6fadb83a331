// Reading matrices from files; nothing that stands in their headers is believed unchecked.
#include "infer/table_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace infer {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr std::string_view kWanted = "positions";

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw phasor::InvalidArgument(fmt::format("the table {}: {}", file.string(), why));
}

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

/// What stands behind 'key': in the dictionary that is an npy file's header.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + key.size() + 3);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

/// "(3, 4)…" or "(3, 4, )…"; empty where it is something else.
std::optional<std::array<int64_t, 2>> two_sizes(std::string_view text) {
  const std::string_view inside = text.substr(0, text.find(')'));
  if (!text.starts_with('(') || inside.size() == text.size()) return {};
  std::vector<int64_t> sizes;
  for (size_t i = inside.find_first_not_of("( "); i < inside.size();) {
    const char* const last = inside.data() + inside.size();
    const auto [end, error] = std::from_chars(inside.data() + i, last, sizes.emplace_back());
    if (error != std::errc() || sizes.back() < 0) return {};
    i = inside.find_first_not_of(", ", static_cast<size_t>(end - inside.data()));
  }
  if (sizes.size() != 2) return {};
  return std::array{sizes[0], sizes[1]};
}

/// Empty where `bytes` are an npy file of something else than a matrix in float32 or float64.
std::optional<Matrix> parse_npy(const std::filesystem::path& file, std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) fail(file, "this is no .npy file");
  const bool short_length = byte(6) == 1;
  const size_t begin = short_length ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (!short_length) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin) fail(file, "the file ends within its header");
  const std::string_view header = bytes.substr(begin, length);
  bytes.remove_prefix(begin + length);

  const auto sizes = two_sizes(value_of(header, "shape"));
  if (!sizes) return {};
  const std::string_view type = value_of(header, "descr");
  const bool is_float = type.starts_with("'<f4'");
  if (!is_float && !type.starts_with("'<f8'")) return {};
  if (!value_of(header, "fortran_order").starts_with("False")) {
    fail(file, "it is stored column by column; save numpy.ascontiguousarray of it");
  }
  const size_t numbers = bytes.size() / (is_float ? 4 : 8);
  const auto [rows, columns] = *sizes;
  const bool fits = columns > 0 && bytes.size() % (is_float ? 4 : 8) == 0 &&
                    numbers % static_cast<size_t>(columns) == 0 &&
                    numbers / static_cast<size_t>(columns) == static_cast<size_t>(rows);
  if (!fits)
    fail(file, fmt::format("{} bytes are no matrix [{}, {}]", bytes.size(), rows, columns));
  return is_float ? matrix_of<float>(bytes, rows, columns)
                  : matrix_of<double>(bytes, rows, columns);
}

/// The one of several matrices that is meant.
std::string pick(const std::filesystem::path& file, const std::vector<std::string>& names) {
  if (names.empty()) fail(file, "it holds no matrix of floating-point numbers");
  if (names.size() == 1) return names.front();
  if (std::ranges::find(names, kWanted) != names.end()) return std::string(kWanted);
  constexpr size_t kShown = 4;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(names.size(), kShown));
  fail(file, fmt::format("it holds {} matrices ({}{}); save the one you mean as '{}'", names.size(),
                         fmt::join(shown, ", "), names.size() > kShown ? ", …" : "", kWanted));
}

std::string read_file(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) {
    fail(file, std::filesystem::exists(file) ? "not a readable file" : "there is no such file");
  }
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return std::move(bytes).str();
}

Matrix read_npy(const std::filesystem::path& file) {
  std::optional<Matrix> matrix = parse_npy(file, read_file(file));
  if (!matrix)
    fail(file, "it holds no matrix in float32 or float64; a table is [positions, width]");
  return *std::move(matrix);
}

Matrix read_npz(const std::filesystem::path& file) {
  using Archive = std::unique_ptr<zip_t, decltype(&zip_discard)>;
  read_file(file);  // says why it cannot be read
  const Archive archive(zip_open(file.c_str(), ZIP_RDONLY, nullptr), zip_discard);
  if (archive == nullptr) fail(file, "this is no .npz file");
  std::map<std::string, Matrix> matrices;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t stat;
    std::unique_ptr<zip_file_t, decltype(&zip_fclose)> entry(zip_fopen_index(archive.get(), i, 0),
                                                             zip_fclose);
    if (entry == nullptr || zip_stat_index(archive.get(), i, 0, &stat) != 0) {
      fail(file, "an entry cannot be read");
    }
    std::string name = stat.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    std::string bytes;
    std::array<char, 1 << 16> part;
    // Read in parts: the size that the archive states may be anything.
    for (zip_int64_t n = 0; (n = zip_fread(entry.get(), part.data(), part.size())) != 0;) {
      if (n < 0) fail(file, fmt::format("its entry {} is damaged", name));
      bytes.append(part.data(), static_cast<size_t>(n));
    }
    if (auto matrix = parse_npy(file, bytes)) matrices.emplace(name, *std::move(matrix));
  }
  std::vector<std::string> names;
  for (const auto& [name, matrix] : matrices) names.push_back(name);
  return matrices.at(pick(file, names));
}

Matrix read_safetensors(const std::filesystem::path& file) {
  try {
    const auto opened = phasor::SafetensorsFile::open(file);
    std::vector<std::string> names;
    for (const auto& [name, entry] : opened->entries()) {
      const bool is_float = entry.dtype == "F64" || entry.dtype == "F32" || entry.dtype == "F16" ||
                            entry.dtype == "BF16";
      if (is_float && entry.shape.size() == 2) names.push_back(name);
    }
    const std::string name = pick(file, names);
    const phasor::SafetensorsFile::Entry& entry = opened->entries().at(name);
    const auto [rows, columns] = std::pair(entry.shape[0], entry.shape[1]);
    if (entry.dtype == "F64") {
      return matrix_of<double>(
          {reinterpret_cast<const char*>(entry.data), static_cast<size_t>(entry.num_bytes)}, rows,
          columns);
    }
    const std::vector<float> values = opened->tensor(name).to_float();
    return {{values.begin(), values.end()}, rows, columns};
  } catch (const phasor::ModelError& error) {
    throw phasor::InvalidArgument(fmt::format("the table {}", error.what()));
  }
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
  Matrix matrix = extension == ".npy"   ? read_npy(file)
                  : extension == ".npz" ? read_npz(file)
                                        : read_safetensors(file);
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
