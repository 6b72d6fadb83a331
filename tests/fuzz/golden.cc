// Reference activations beside a model.
#include "infer/commands/verify/golden.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/test_files.h"

namespace phasor::fuzz {
namespace {

constexpr std::string_view kGoldenFiles[] = {"golden.json", "golden.safetensors"};

bool run_golden(std::string_view bytes) {
  static const Folder folder;
  folder.write(parts_of(bytes, "golden.json", kGoldenFiles), kGoldenFiles);
  return survive([&] {
    const infer::Golden golden = infer::load_golden(folder.path());
    for (size_t item = 0; item < golden.items.size(); ++item) {
      for (const char* const name : {"hidden", "logits"}) {
        survive([&] {
          const auto tensor = golden.tensor(static_cast<int64_t>(item), name);
          if (tensor) static_cast<void>(tensor->to_float());
        });
      }
    }
  });
}

}  // namespace

Fuzzer golden_fuzzer() {
  return {
      .name = "golden",
      .run = run_golden,
      .seeds = []() -> std::vector<std::string> {
        const char* const json =
            R"({"atol": 1e-5, "rtol": 0, "items": [{"text": "a b", "text_pair": "c", "ids": [0, 7],
"token_type_ids": [0, 1], "logits": [0.5, -1e-3]}, {"ids": [1]}]})";
        return {input_of({{"golden.json", json},
                          {"golden.safetensors",
                           safetensors_bytes({{"0.hidden", {2, 2}}, {"1.logits", {1, 3}}})}}),
                json};
      },
      .words = words(R"(
===\sgolden.safetensors\n "atol" "rtol" "items" "ids" "text" "text_pair" "token_type_ids" "logits"
"0.hidden" 4294967301 -1 1e999 1e308)")};
}

}  // namespace phasor::fuzz
