// A file of PyTorch's, mapped and copied: every tensor that it admits is read to its end.
#include "phasor/safetensors.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/torch_files.h"

namespace phasor::fuzz {
namespace {

bool run_torch(std::string_view bytes) {
  static const Folder folder;
  folder.write("pytorch_model.bin", bytes);
  bool accepted = true;
  for (const bool copy : {false, true}) {
    accepted &= survive([&] {
      const auto file = SafetensorsFile::open_torch(folder.path() / "pytorch_model.bin", copy);
      for (const auto& entry : file->entries()) {
        look_at(entry.second.data, static_cast<size_t>(entry.second.num_bytes));
      }
    });
  }
  return accepted;
}

}  // namespace

Fuzzer torch_fuzzer() {
  return {.name = "torch",
          .run = run_torch,
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

}  // namespace phasor::fuzz
