// PyTorch's files, one or shards: what torch.save() writes is read, and whatever asks for more is
// refused by name. What is said about folders that hold weights in another form.
#include "models/tensor_files.h"
#include "tests/support/test.h"

namespace phasor {
using namespace internal;

namespace {

using Entry = SafetensorsFile::Entry;

const std::string kSixFloats = float_bytes({0, 1, 2, 3, 4, 5});

std::string_view bytes_of(const Entry& entry) {
  return {reinterpret_cast<const char*>(entry.data), static_cast<size_t>(entry.num_bytes)};
}

/// An archive of the tensor "w", whose storage holds six floats.
std::string archive_of(const PickledTensor& tensor) {
  return torch_archive(pickled_dictionary({{"w", tensor.operations()}}), {{"0", kSixFloats}});
}

std::shared_ptr<const SafetensorsFile> opened(const std::string& bytes, bool copy = false) {
  static const TempFolder folder;
  return SafetensorsFile::open_torch(folder.write("pytorch_model.bin", bytes), copy);
}

void expect_refused(const std::string& bytes, const std::vector<std::string>& words) {
  EXPECT_REFUSED(opened(bytes), {"pytorch_model.bin: "});
  EXPECT_REFUSED(opened(bytes), words);
}

const std::vector<TestTensor> kTensors = {{"a", {2, 3}, "F32", kSixFloats},
                                          {"b", {}, "F32", float_bytes({7})},
                                          {"half", {2}, "F16", "\x01\x02\x03\x04"},
                                          {"brain", {1, 2}, "BF16", "\x05\x06\x07\x08"},
                                          {"wide", {1}, "F64", double_bytes({0.1})},
                                          {"ids", {2}, "I64"},
                                          {"i", {1}, "I32", "\x01\x02\x03\x04"},
                                          {"short", {3}, "I16", "\x01\x02\x03\x04\x05\x06"},
                                          {"char", {2}, "I8", "\x02\x83"},
                                          {"byte", {2}, "U8", "\x01\xff"},
                                          {"flag", {1}, "BOOL", "\x01"},
                                          {"none", {0, 4}, "F32"}};

TEST(TorchFileTest, HoldsWhatASafetensorsFileOfTheSameTensorsHolds) {
  const TempFolder folder;
  const auto expected =
      SafetensorsFile::open(folder.write("model.safetensors", safetensors_bytes(kTensors)));
  for (const std::string& bytes : {torch_bytes(kTensors), old_torch_bytes(kTensors)}) {
    for (const bool copy : {false, true}) {
      const auto file = opened(bytes, copy);
      EXPECT_EQ(file->entries().size(), kTensors.size());
      for (const auto& [name, entry] : expected->entries()) {
        ASSERT_TRUE(file->contains(name)) << name;
        EXPECT_EQ(file->entries().at(name).dtype, entry.dtype) << name;
        EXPECT_EQ(file->entries().at(name).shape, entry.shape) << name;
        EXPECT_EQ(bytes_of(file->entries().at(name)), bytes_of(entry)) << name;
      }
    }
  }
}

TEST(TorchFileTest, ViewsAreCopiedInTheOrderOfTheirIndices) {
  const auto values = [](const PickledTensor& tensor) {
    return opened(archive_of(tensor))->tensor("w").to_float();
  };
  using Floats = std::vector<float>;
  EXPECT_EQ(values({}), (Floats{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values({.shape = {3, 2}, .strides = {1, 3}}), (Floats{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values({.offset = 1, .shape = {2, 2}, .strides = {3, 1}}), (Floats{1, 2, 4, 5}));
  EXPECT_EQ(values({.offset = 1, .shape = {3}, .strides = {2}}), (Floats{1, 3, 5}));
  EXPECT_EQ(values({.offset = 5, .shape = {1, 1}, .strides = {1 << 30, 9}}), Floats{5});
  EXPECT_EQ(values({.shape = {2, 3, 1}, .strides = {0, 2, 7}}), (Floats{0, 2, 4, 0, 2, 4}));
}

TEST(TorchFileTest, StateDictsParametersAndTiedTensorsAreRead) {
  const std::string tensor = PickledTensor().operations();
  const std::string parameter =
      "ctorch._utils\n_rebuild_parameter\n" + pickled_tuple({tensor, "\x88", "}"}) + "R";
  const std::string inner = "}(" + pickled("w") + tensor + "q\x05" + pickled("tied") + "h\x05" +
                            pickled("p") + parameter + pickled("version") + pickled(2) +
                            pickled("best") + "G\x3f\xf0" + std::string(6, '\0') + "u}" +
                            pickled("_metadata") + "Ns" + "b";
  const auto file = opened(torch_archive(
      pickled_dictionary({{"epoch", pickled(3)}, {"state_dict", inner}, {"ignored", tensor}}),
      {{"0", kSixFloats}}));
  ASSERT_EQ(file->entries().size(), 3u);
  for (const char* const name : {"w", "tied", "p"})
    EXPECT_EQ(file->tensor(name).to_float(), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(TorchFileTest, PicklesThatAskForMoreThanTensorsAreRefusedByName) {
  const auto with = [](const std::string& operations) {
    return torch_archive(pickled_dictionary({{"w", operations}}), {{"0", kSixFloats}});
  };
  const std::string command = pickled_tuple({pickled("true")});
  expect_refused(with("cposix\nsystem\n" + command + "R"),
                 {"\"system\"", "\"posix\"", "runs nothing"});
  expect_refused(with("cbuiltins\neval\n" + command + "R"), {"\"eval\"", "\"builtins\""});
  expect_refused(with("ctorch\nload\n" + command + "R"), {"\"load\"", "\"torch\""});
  expect_refused(with("ctorch.\x1b[2J\nx\n)R"), {"\\u001b[2J"});
  for (const std::string operation : {"i", "o", "\x93", "\x81", "\x92", "P", "0", "2"})
    expect_refused(with("(" + operation), {"the operation 0x"});
  // A function that is called with what it is not for.
  const std::string tensor = PickledTensor().operations();
  for (const std::string& operations :
       {std::string("ctorch\nFloatStorage\n)R"), "ccollections\nOrderedDict\n" + command + "R",
        std::string("ctorch._utils\n_rebuild_tensor_v2\n)R"), command + ")R", tensor + ")R",
        "ctorch._utils\n_rebuild_parameter\n" + command + "R"})
    expect_refused(with(operations), {"pickle is damaged"});
}

TEST(TorchFileTest, PicklesThatAreDamaged) {
  const auto pickle = [](const std::string& operations) {
    return torch_archive("\x80\x02" + operations, {});
  };
  for (const char* const operations :
       {".", "(.", "t.", "(u.", "}(K\1u.", "K\1K\2s.", "K\1a.", "h\1.", "q\1.", "R.", "Q.", "b.",
        "NN}b.", "\x85.", "NN\x87.", "(\x85."})
    expect_refused(pickle(operations), {"damaged"});
  for (const char* const operations : {"", "N", "X\xff\xff\xff\x7f", "c", "cposix\nsystem", "J\1"})
    expect_refused(pickle(operations), {"ends in the middle"});
  for (const std::string& operations : {std::string("N."), std::string("K\1."), std::string(")."),
                                        std::string("}."), "}" + pickled("a") + "K\1s."})
    expect_refused(pickle(operations), {"no dictionary of tensors"});
  std::string memo = "N";
  for (int32_t i = 0; i < 1 << 21; ++i) {
    memo += 'r';
    memo.append(reinterpret_cast<const char*>(&i), sizeof i);
  }
  for (const std::string& operations :
       {repeat("}", (1 << 21) + 1), "Nq\1" + repeat("h\1", 1 << 21), memo})
    expect_refused(pickle(operations), {"more than 2097152 operations"});
  expect_refused(torch_archive(pickled_dictionary({{"\xff", PickledTensor().operations()}}),
                               {{"0", kSixFloats}}),
                 {"not valid UTF-8"});
}

TEST(TorchFileTest, TensorsThatDoNotFitTheirStoragesAreRefused) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const auto refused = [](const PickledTensor& tensor, const std::string& word) {
    expect_refused(archive_of(tensor), {"\"w\"", word});
  };
  refused({.key = "1"}, "its storage is missing");
  refused({.count = 5}, "another number of bytes");
  refused({.dtype = "F16"}, "another number of bytes");
  refused({.offset = 1}, "ends past its storage");
  refused({.offset = kHuge}, "ends past its storage");
  refused({.offset = -1}, "storage is damaged");
  refused({.strides = {4, 1}}, "ends past its storage");
  refused({.strides = {kHuge, kHuge}}, "more elements");
  refused({.shape = {kHuge, 4}}, "more elements");
  refused({.shape = {1 << 20, 1 << 20}, .strides = {0, 0}}, "share memory");
  refused({.shape = {-2, 3}}, "shape is damaged");
  refused({.shape = {6}}, "shape is damaged");
  refused({.shape = std::vector<int64_t>(9, 1), .strides = std::vector<int64_t>(9, 1)},
          "shape is damaged");
  for (const int64_t count : {int64_t{-1}, kHuge})
    expect_refused(archive_of({.count = count}), {"storage is damaged"});
  // Many views, each of which would be copied: memory out of proportion to the file.
  std::vector<std::pair<std::string, std::string>> views;
  for (int i = 0; i < 100; ++i) {
    views.emplace_back(
        std::to_string(i),
        PickledTensor{.count = 5000, .shape = {50, 100}, .strides = {1, 50}}.operations());
  }
  expect_refused(torch_archive(pickled_dictionary(views), {{"0", std::string(20'000, 'x')}}),
                 {"too many others"});
}

TEST(TorchFileTest, ArchivesThatAreRefused) {
  const std::string pickle = pickled_dictionary({{"w", PickledTensor().operations()}});
  const std::vector<std::pair<std::string, std::string>> files = {{"m/data.pkl", pickle},
                                                                  {"m/data/0", kSixFloats}};
  const std::string good = zip_bytes(files);
  EXPECT_EQ(opened(good)->entries().size(), 1u);
  EXPECT_EQ(opened(good.substr(0, good.size() - 2) + std::string("\3\0end", 5))->entries().size(),
            1u);
  expect_refused(zip_bytes({{"m/data/0", kSixFloats}}), {"no data.pkl"});
  expect_refused(zip_bytes({files[0], files[1], files[1]}), {"\"m/data/0\"", "twice"});
  expect_refused(zip_bytes({files[0], files[1], {"m/byteorder", "big"}}), {"little-endian"});
  const auto changed = [&](size_t field, const std::string& to) {
    std::string bytes = good;
    return bytes.replace(bytes.find("PK\x01\x02") + field, to.size(), to);
  };
  expect_refused(changed(8, "\x01"), {"encrypted"});
  expect_refused(changed(10, "\x08"), {"compressed"});
  for (const size_t field : {0, 20, 24, 28, 30, 32, 42})
    expect_refused(changed(field, std::string(2, '\x7f')), {"damaged"});
  expect_refused(changed(42, std::string(4, '\xff')), {"damaged"});  // zip64 without its field
}

// As a download may leave it. The fuzzer of this reader changes bytes, too.
TEST(TorchFileTest, AFileThatIsCutOffAnywhereIsRefused) {
  for (const std::string& whole : {torch_bytes(kTensors), old_torch_bytes(kTensors)})
    for (size_t size = 0; size < whole.size(); size += 3)
      EXPECT_THROW(opened(whole.substr(0, size)), ModelError) << size;
}

TEST(TorchFileTest, ManyTensorsAndReferencesTakeTheTimeOfReadingThem) {
  std::vector<std::pair<std::string, std::string>> values;
  for (int i = 0; i < 20'000; ++i)
    values.emplace_back(std::to_string(i), PickledTensor().operations());
  const std::string many = torch_archive(pickled_dictionary(values), {{"0", kSixFloats}});
  // A long tuple that is handed to many calls.
  std::string calls = "\x80\x02(" + repeat("N", 100'000) + "tq\1";
  calls += repeat("ctorch._utils\n_rebuild_tensor_v2\nh\1R", 100'000) + ".";
  const std::string archive = torch_archive(calls, {});
  expect_cpu_seconds_below(10, [&] {
    EXPECT_EQ(opened(many)->entries().size(), 20'000u);
    expect_refused(archive, {"no dictionary of tensors"});
  });
}

constexpr const char* kIndex = "model.safetensors.index.json";

void expect_folder_refused(const TempFolder& folder, const std::vector<std::string>& words) {
  EXPECT_REFUSED(TensorFiles::open(folder.path()), words);
}

/// Two shards, "a" in the first and "b" in the second, with this index.
void write_shards(const TempFolder& folder, const json& index) {
  folder.write("1.safetensors", safetensors_bytes({{"a", {1}, "F32", float_bytes({1})}}));
  folder.write("2.safetensors", safetensors_bytes({{"b", {2}, "F32", float_bytes({2, 3})}}));
  folder.write_json(kIndex, index);
}

json index_of(const json& weight_map) {
  return {{"metadata", {{"total_size", 12}}}, {"weight_map", weight_map}};
}

TEST(TensorFilesTest, ShardsAreReadAsOneFile) {
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    const TempFolder folder;
    write_shards(folder, index_of({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));
    if (name == "pytorch_model.bin") {
      folder.write("1.safetensors", torch_bytes({{"a", {1}, "F32", float_bytes({1})}}));
      folder.write("2.safetensors", old_torch_bytes({{"b", {2}, "F32", float_bytes({2, 3})}}));
      fs::rename(folder / kIndex, folder / (name + ".index.json"));
    }
    const auto files = TensorFiles::open(folder.path());
    EXPECT_EQ(files->tensors().size(), 2u);
    EXPECT_EQ(files->tensor("a").to_float(), std::vector<float>{1.0f});
    EXPECT_EQ(files->tensor("b").to_float(), (std::vector<float>{2.0f, 3.0f}));
    EXPECT_EQ(files->shape("b"), std::vector<int64_t>{2});
    EXPECT_EQ(files->metadata().contains("format"), name == "model.safetensors");
    EXPECT_FALSE(files->contains("c"));
    EXPECT_REFUSED(files->tensor("c"), {name + ".index.json", "'c'", "missing"});
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
    if (n % 2 == 0) fs::create_symlink("1.safetensors", folder / name);
    if (n % 2 == 1) fs::create_hard_link(file, folder / name);
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
constexpr auto kPointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 90\n";

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
