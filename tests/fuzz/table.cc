// Tables of position vectors in files that other programs wrote.
#include <array>

#include "files/matrix_file.h"
#include "infer/cli/save.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/test_files.h"

namespace phasor::fuzz {
namespace {

bool run_table(std::string_view bytes) {
  static const Folder folder;
  bool accepted = false;
  for (const char* const name : {"table.npy", "table.safetensors"}) {
    folder.write(name, bytes);
    accepted |= survive([&] {
      const auto matrix = internal::read_table(folder.path() / name, "table");
      require(std::ssize(matrix.values) == matrix.rows * matrix.columns, "a table is whole");
    });
  }
  return accepted;
}

std::string npy(const char* type, std::vector<int64_t> shape, size_t bytes) {
  return infer::npy_header(type, shape) + std::string(bytes, '?');
}

}  // namespace

Fuzzer table_fuzzer() {
  return {.name = "table",
          .run = run_table,
          .seeds = []() -> std::vector<std::string> {
            return {npy("<f4", {2, 3}, 24), npy("<f8", {2, 1}, 16),
                    safetensors_bytes({{"positions", {2, 3}}, {"other", {2, 2}, "F16"}}),
                    safetensors_bytes({{"a", {2, 3}, "BF16"}})};
          },
          .words = words(R"(
\x93NUMPY 'descr':\s 'shape':\s 'fortran_order':\s '<f4' '<f8' False True (2,\s3)
9223372036854775807 4611686018427387904 "F64" "positions" "shape" "data_offsets")"),
          .refused = {npy("<i8", {2, 1}, 16), npy("<f4", {2, 3}, 20)}};
}

}  // namespace phasor::fuzz
