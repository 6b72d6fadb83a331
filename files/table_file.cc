#include "files/table_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "files/matrix_file.h"
#include "files/plain_file.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 28, kMostColumns = 8192;  // of a matrix

[[noreturn]] void refuse_table(const std::filesystem::path& file, const std::string& why) {
  refuse<ModelError>("{}: {}", file.string(), why);
}

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
  const MatrixFile opened(file, "positions");
  if (opened.columns() > kMostColumns) {
    refuse_table(file, fmt::format("its matrix has {} columns; at most {} are read",
                                   opened.columns(), kMostColumns));
  }
  if (opened.tensor().num_bytes() > kMostBytes) {
    refuse_table(file, fmt::format("its matrix takes {} bytes; at most {} are read",
                                   opened.tensor().num_bytes(), kMostBytes));
  }
  TableValues matrix{values_of(opened.tensor()), opened.rows(), opened.columns()};
  if (matrix.values.empty())
    refuse_table(file, fmt::format("its matrix [{}, {}] is empty", matrix.rows, matrix.columns));
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

TableValues read_table(const std::filesystem::path& file, const std::string& what) {
  return as_input(what, [&] { return read_any(file); });
}

}  // namespace phasor::internal
