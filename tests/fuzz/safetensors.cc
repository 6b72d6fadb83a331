// Files of safetensors and of PyTorch, mapped and copied: every tensor that it admits is read to
// its end. Tables of position vectors in files that other programs wrote.
#include "files/matrix_file.h"
#include "infer/cli/save.h"
#include "tests/fuzz/fuzz.h"

namespace phasor::fuzz {
namespace {

template <auto open>
bool read_tensors(std::string_view bytes) {
  static const Folder folder;
  folder.write("weights", bytes);
  bool accepted = true;
  for (const bool copy : {false, true}) {
    accepted &= survive([&] {
      const auto file = open(folder / "weights", copy);
      for (const auto& entry : file->entries()) {
        look_at(entry.second.data, static_cast<size_t>(entry.second.num_bytes));
        survive([&] { static_cast<void>(file->tensor(entry.first).to_float()); });
      }
    });
  }
  return accepted;
}

}  // namespace

Fuzzer safetensors_fuzzer() {
  return {.name = "safetensors",
          .run = read_tensors<&SafetensorsFile::open>,
          .seeds = []() -> std::vector<std::string> {
            return {
                safetensors_bytes(small_tensors()),
                safetensors_bytes({{"half", {2, 3}, "F16"}, {"ids", {2}, "I64"}, {"e", {0, 4}}}),
                safetensors_bytes(R"({"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", "a"),
                safetensors_bytes("{}", "")};
          },
          .words = words(R"(
"__metadata__" "dtype" "shape" "data_offsets" "F64" "F32" "F16" "BF16" "I64" "I8" "BOOL" "F8_E4M3"
"F4" "F6_E2M3" 9223372036854775807 18446744073709551615 4294967296 1e400 \\ud800 [[[[)")};
}

Fuzzer torch_fuzzer() {
  return {.name = "torch",
          .run = read_tensors<&SafetensorsFile::open_torch>,
          .seeds = []() -> std::vector<std::string> {
            const std::vector<TestTensor> tensors = {
                {"half", {2, 3}, "F16"}, {"ids", {2}, "I64"}, {"e", {0, 4}}};
            const PickledTensor view = {.shape = {3, 2}, .strides = {1, 3}};
            return {torch_bytes(tensors), old_torch_bytes(tensors),
                    torch_archive(pickled_dictionary({{"w", view.operations()}}),
                                  {{"0", std::string(24, 'x')}})};
          },
          .words = words(R"(
PK\x01\x02 PK\x03\x04 PK\x05\x06 PK\x06\x06 PK\x06\x07 collections\nOrderedDict\n torch\nFloatStorage\n
torch._utils\n_rebuild_tensor_v2\n torch._utils\n_rebuild_parameter\n state_dict storage little
\x80\x02 \x8a\x08 \x85 \x86 \x87 \x88 \x89 \xff\xff\xff\x7f )Q )R h\x01 q\x01)")};
}

namespace {

bool run_table(std::string_view bytes) {
  static const Folder folder;
  bool accepted = false;
  for (const char* const name : {"table.npy", "table.safetensors"}) {
    folder.write(name, bytes);
    accepted |= survive([&] {
      const auto matrix = internal::read_table(folder / name, "table");
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
