// A safetensors file, mapped and copied: every tensor that it admits is read to its end.
#include "phasor/safetensors.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/test_files.h"

namespace phasor::fuzz {
namespace {

bool run_safetensors(std::string_view bytes) {
  static const Folder folder;
  folder.write("model.safetensors", bytes);
  bool accepted = true;
  for (const bool copy : {false, true}) {
    accepted &= survive([&] {
      const auto file = SafetensorsFile::open(folder.path() / "model.safetensors", copy);
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
          .run = run_safetensors,
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

}  // namespace phasor::fuzz
