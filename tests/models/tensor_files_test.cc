// One file or shards, and what is said about folders that hold weights in another form.
#include "models/tensor_files.h"

#include "tests/support/cpu_seconds.h"
#include "tests/support/test.h"
#include "tests/support/torch_files.h"

namespace phasor {
using namespace internal;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

void expect_folder_refused(const TempFolder& folder, const std::vector<std::string>& words) {
  expect_error<ModelError>([&] { TensorFiles::open(folder.path()); }, words);
}

/// Two shards, "a" in the first and "b" in the second, with this index.
void write_shards(const TempFolder& folder, const json& index) {
  folder.write("1.safetensors", safetensors_bytes({{"a", {1}, "F32", float_bytes({1.0f})}}));
  folder.write("2.safetensors", safetensors_bytes({{"b", {2}, "F32", float_bytes({2.0f, 3.0f})}}));
  folder.write(kIndex, index.dump());
}

json index_of(const json& weight_map) {
  return {{"metadata", {{"total_size", 12}}}, {"weight_map", weight_map}};
}

TEST(TensorFilesTest, ShardsAreReadAsOneFile) {
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    const TempFolder folder;
    write_shards(folder, index_of({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));
    if (name == "pytorch_model.bin") {
      folder.write("1.safetensors", torch_bytes({{"a", {1}, "F32", float_bytes({1.0f})}}));
      folder.write("2.safetensors",
                   old_torch_bytes({{"b", {2}, "F32", float_bytes({2.0f, 3.0f})}}));
      fs::rename(folder.path() / kIndex, folder.path() / (name + ".index.json"));
    }
    const auto files = TensorFiles::open(folder.path());
    EXPECT_EQ(files->tensors().size(), 2u);
    EXPECT_EQ(files->tensor("a").to_float(), std::vector<float>{1.0f});
    EXPECT_EQ(files->tensor("b").to_float(), (std::vector<float>{2.0f, 3.0f}));
    EXPECT_EQ(files->shape("b"), std::vector<int64_t>{2});
    EXPECT_EQ(files->metadata().contains("format"), name == "model.safetensors");
    EXPECT_FALSE(files->contains("c"));
    expect_error<ModelError>([&] { files->tensor("c"); }, {name + ".index.json", "'c'", "missing"});
    // One file wins over shards.
    folder.write(name, name == "pytorch_model.bin" ? torch_bytes({{"c", {1}}})
                                                   : safetensors_bytes({{"c", {1}}}));
    EXPECT_TRUE(TensorFiles::open(folder.path())->contains("c"));
  }
}

TEST(TensorFilesTest, AFileOfSeveralNamesIsReadOnce) {
  const TempFolder folder;
  std::vector<TestTensor> tensors;
  for (int n = 0; n < 20'000; ++n) tensors.push_back({.name = std::to_string(n), .shape = {1}});
  const fs::path file = folder.write("1.safetensors", safetensors_bytes(tensors));
  json map;
  for (int n = 0; n < 200; ++n) {
    const std::string name = "link" + std::to_string(n) + ".safetensors";
    if (n % 2 == 0) fs::create_symlink("1.safetensors", folder.path() / name);
    if (n % 2 == 1) fs::create_hard_link(file, folder.path() / name);
    map[std::to_string(n)] = name;
  }
  folder.write(kIndex, index_of(map).dump());
  expect_cpu_seconds_below(
      5, [&] { EXPECT_EQ(TensorFiles::open(folder.path())->tensors().size(), 200u); });
}

TEST(TensorFilesTest, AnIndexThatDoesNotFitItsShards) {
  const TempFolder folder;
  write_shards(folder, json::object());
  expect_folder_refused(folder, {kIndex, "weight_map is missing"});
  folder.write(kIndex, index_of(json::array()).dump());
  expect_folder_refused(folder, {kIndex, "weight_map is []"});
  folder.write(kIndex, index_of({{"a", "2.safetensors"}}).dump());
  expect_folder_refused(folder, {kIndex, "\"a\"", "2.safetensors", "belong together"});
  folder.write(kIndex, index_of({{"a", "3.safetensors"}}).dump());
  expect_folder_refused(folder, {kIndex, "\"3.safetensors\"", "is not there; get all"});
  for (const char* const outside : {"../1.safetensors", "/etc/passwd", ""}) {
    folder.write(kIndex, index_of({{"a", outside}}).dump());
    expect_folder_refused(folder, {kIndex, outside, "in this folder"});
  }
  folder.write(kIndex, index_of({{"a", 7}}).dump());
  expect_folder_refused(folder, {kIndex, "7", "in this folder"});
}

constexpr const char* kPickle = "\x80\x02\x8a\nl\xfc\x9c";
constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 90\n";

TEST(TensorFilesTest, WeightsInAnotherFormAreNamedWithTheWayFromThere) {
  struct Case {
    std::string name, bytes;
    std::vector<std::string> words;
  };
  const std::string safetensors = safetensors_bytes({{"a", {1}}});
  const std::string zipped = "PK\x03\x04/data.pkl", original = "get the original model";
  for (const auto& [name, bytes, words] : std::vector<Case>{
           {"model-00001-of-00002.bin", zipped, {"Python pickle", "name it pytorch_model.bin"}},
           {"model.pt", zipped, {"Python pickle"}},
           {"model.gguf", kPickle, {"Python pickle"}},
           {"model.bin", "GGUF\x03", {"llama.cpp", original}},
           {"tf_model.h5", "\x89HDF\r\n\x1a\n", {"TensorFlow", original}},
           {"model.bin", "\x08\x07\x12\x07pytorch\x1a\x05", {"ONNX", original}},
           {"flax_model.msgpack", "x", {"Flax", original}},
           {"onnx/model.onnx", "\x08\x08:x", {"ONNX", original}},
           {"onnx/model.onnx", kPointer, {"Git LFS pointer", "git lfs pull"}},
           {"model.bin", kPointer, {"Git LFS pointer", "git lfs pull"}},
           {"model.bin", "<!DOCTYPE html>", {"web page"}},
           {"model.bin", "PK\x03\x04", {"zip archive", "unpack"}},
           {"model.bin", "", {"no format that phasor knows", "empty"}},
           {"e5-small-q4.bin", "E5S1\x01", {"no format that phasor knows", "begins with \"E5S1\""}},
           {"model.fp16.safetensors", safetensors, {"name it model.safetensors"}},
           {"model.bin", safetensors, {"a safetensors file", "name it model.safetensors"}}}) {
    const TempFolder folder;
    folder.write("config.json", "{}");
    folder.write("training_args.bin", kPickle);
    folder.write("2_Dense/model.safetensors", safetensors);
    folder.write("2_Dense/pytorch_model.bin", kPickle);
    folder.write("old/golden.bin", kPickle);
    expect_folder_refused(folder, {"no model.safetensors"});
    EXPECT_EQ(foreign_weights(folder.path()).clause, "");
    folder.write(name, bytes);
    expect_folder_refused(folder, {"no model.safetensors", name});
    expect_folder_refused(folder, words);
  }
}

TEST(TensorFilesTest, AHeaderAsLongAsTheFirstBytesOfAnotherFormatIsNone) {
  for (const size_t length : {0x00120708, 0x005d0280}) {  // the bytes of ONNX, of a pickle
    std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.append(length - header.size(), ' ');
    const TempFolder folder;
    folder.write("model.safetensors", safetensors_bytes(header, float_bytes({5.0f})));
    EXPECT_EQ(TensorFiles::open(folder.path())->tensor("a").to_float(), std::vector<float>{5.0f});
  }
}

}  // namespace
}  // namespace phasor
