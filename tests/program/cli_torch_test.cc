// Folders whose weights are PyTorch's files.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"
#include "tests/support/torch_files.h"

namespace phasor {
namespace {

TEST(CliTorchTest, TheFormatOfTheWeightsChangesNoVector) {
  const BertFolder model({"no", "yes"});
  const TempFolder& folder = model.folder();
  folder.write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
    {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}])");
  folder.write("1_Pooling/config.json", "{}");
  folder.write("2_Dense/config.json", R"({"in_features": 12, "out_features": 2})");
  folder.write("2_Dense/model.safetensors",
               safetensors_bytes(
                   {{"linear.weight", {2, 12}, "F32", float_bytes(std::vector<float>(24, 0.25f))},
                    {"linear.bias", {2}, "F32", float_bytes({0.5f, -0.5f})}}));
  const auto answers = [&] { return succeed({"embed", "-q", "-m", model.path(), "a dog"}).out; };
  const std::string expected = answers();
  for (const std::string part : {"", "2_Dense/"}) {
    const fs::path one = folder.path() / (part + "model.safetensors");
    folder.write(part + "pytorch_model.bin", torch_bytes(tensors_in(one)));
    fs::rename(one, folder.path() / (part + "none"));
    EXPECT_EQ(answers(), expected);
  }
  std::vector<TestTensor> tensors = tensors_in(folder.path() / "none"), second;
  for (int i = 0; i < 5; ++i, tensors.pop_back()) second.push_back(tensors.back());
  json map;
  for (const TestTensor& tensor : tensors) map[tensor.name] = "pytorch_model-00001-of-00002.bin";
  for (const TestTensor& tensor : second) map[tensor.name] = "pytorch_model-00002-of-00002.bin";
  fs::remove(folder.path() / "pytorch_model.bin");
  folder.write("pytorch_model-00001-of-00002.bin", old_torch_bytes(tensors));
  folder.write("pytorch_model-00002-of-00002.bin", torch_bytes(second));
  folder.write("pytorch_model.bin.index.json", json{{"weight_map", map}}.dump());
  EXPECT_EQ(answers(), expected);
}

TEST(CliTorchTest, WhereThereIsSafetensorsItIsTaken) {
  const BertFolder model({});
  const auto answers = [&] { return succeed({"embed", "-q", "-m", model.path(), "a dog"}).out; };
  const std::string expected = answers();
  model.folder().write("pytorch_model.bin",
                       "\x80\x02"
                       "cposix\nsystem\n");
  EXPECT_EQ(answers(), expected);
}

}  // namespace
}  // namespace phasor
