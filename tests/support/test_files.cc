// Writes the small files that tests read back.
#include "tests/support/test_files.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>

namespace phasor {
namespace {

int64_t count_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

}  // namespace

TempFolder::TempFolder(const std::filesystem::path& parent) {
  std::string name = (parent / "phasor-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder: " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempFolder::write(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path file = path_ / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
  return file;
}

std::filesystem::path TempFolder::write_json(const std::string& name,
                                             const nlohmann::json& value) const {
  return write(name, value.dump());
}

void TempFolder::write_files(const nlohmann::json& files) const {
  for (const auto& [name, content] : files.items())
    write(name, content.is_string() ? content.get<std::string>() : content.dump());
}

std::filesystem::path bundled_model(const std::string& name) {
  return std::filesystem::path(PHASOR_SOURCE_DIR) / "models" / name;
}

std::string repeat(std::string_view part, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += part;
  return text;
}

std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(PHASOR_SOURCE_DIR) / "tests/fixtures" / name;
}

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes.append(header).append(data);
}

std::string safetensors_bytes(const std::vector<TestTensor>& tensors) {
  nlohmann::json header = {{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const TestTensor& tensor : tensors) {
    const int64_t size = tensor.dtype.ends_with("64") ? 8 : tensor.dtype == "F32" ? 4 : 2;
    std::string bytes = tensor.bytes;
    if (bytes.empty()) bytes.assign(size * count_of(tensor.shape), '\0');
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + bytes.size()}}};
    data += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // as safetensors writes it: the data are aligned
  return safetensors_bytes(text, data);
}

TestTensor& tensor_of(std::vector<TestTensor>& tensors, const std::string& name) {
  return *std::ranges::find(tensors, name, &TestTensor::name);
}

void remove_tensor(std::vector<TestTensor>& tensors, const std::string& name) {
  std::erase_if(tensors, [&](const TestTensor& tensor) { return tensor.name == name; });
}

std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string double_bytes(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

nlohmann::json small_config_json() {
  return nlohmann::json::parse(R"({
    "model_type": "phasor", "d_model": 4, "d_ff": 6, "num_layers": 2, "num_heads": 2,
    "vocab_size": 5, "max_positions": 7, "norm_order": "post", "layer_norm_eps": 1e-5,
    "activation": "gelu", "embedding_scale": 2.0, "embedding_norm": false, "final_norm": false,
    "position": {"kind": "learned", "first_position": 0}, "mlm_head": false})");
}

void write_checkpoint(const TempFolder& folder, const nlohmann::json& config,
                      const std::vector<TestTensor>& tensors) {
  folder.write_json("config.json", config);
  folder.write("model.safetensors", safetensors_bytes(tensors));
}

std::shared_ptr<const Model> load_checkpoint(const nlohmann::json& config,
                                             const std::vector<TestTensor>& tensors) {
  const TempFolder folder;
  write_checkpoint(folder, config, tensors);
  return Model::load(folder.path());
}

std::vector<TestTensor> small_tensors() {
  std::vector<TestTensor> tensors = {{"token_embedding.weight", {5, 4}},
                                     {"position_embedding.weight", {7, 4}}};
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    for (const char* const part : {"q", "k", "v", "out"}) {
      tensors.push_back({block + "attn." + part + ".weight", {4, 4}});
      tensors.push_back({block + "attn." + part + ".bias", {4}});
    }
    for (const char* const norm : {"attn_norm", "mlp_norm"}) {
      tensors.push_back({block + norm + ".weight", {4}});
      tensors.push_back({block + norm + ".bias", {4}});
    }
    tensors.push_back({block + "mlp.up.weight", {6, 4}});
    tensors.push_back({block + "mlp.up.bias", {6}});
    tensors.push_back({block + "mlp.down.weight", {4, 6}});
    tensors.push_back({block + "mlp.down.bias", {4}});
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<float> values(count_of(tensors[i].shape));
    std::iota(values.begin(), values.end(), static_cast<float>(i));
    tensors[i].bytes = float_bytes(values);
  }
  return tensors;
}

namespace {

template <typename T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

struct Dtype {
  std::string storage;
  int64_t size;
};
const std::map<std::string, Dtype> kDtypes = {
    {"F32", {"FloatStorage", 4}},  {"F16", {"HalfStorage", 2}}, {"BF16", {"BFloat16Storage", 2}},
    {"F64", {"DoubleStorage", 8}}, {"I64", {"LongStorage", 8}}, {"I32", {"IntStorage", 4}},
    {"I16", {"ShortStorage", 2}},  {"I8", {"CharStorage", 1}},  {"U8", {"ByteStorage", 1}},
    {"BOOL", {"BoolStorage", 1}}};

std::string pickled_numbers(const std::vector<int64_t>& numbers) {
  std::vector<std::string> items;
  for (const int64_t number : numbers) items.push_back(pickled(number));
  return pickled_tuple(items);
}

/// The pickle of all tensors, whose storages are named by their place.
std::string pickle_of(const std::vector<TestTensor>& tensors,
                      std::map<std::string, std::string>& storages) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [name, shape, dtype, bytes] : tensors) {
    PickledTensor tensor = {
        .key = std::to_string(values.size()), .dtype = dtype, .count = 1, .shape = shape};
    tensor.strides.assign(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 0; tensor.count *= shape[d])
      tensor.strides[d] = tensor.count;
    values.emplace_back(name, tensor.operations());
    std::string& storage = storages[tensor.key] = bytes;
    storage.resize(tensor.count * kDtypes.at(dtype).size);
  }
  return pickled_dictionary(values);
}

}  // namespace

std::string pickled(int64_t number) {
  return number == static_cast<int32_t>(number)
             ? std::string("J") + bytes_of(static_cast<int32_t>(number))
             : std::string("\x8a\x08") + bytes_of(number);
}
std::string pickled(std::string_view text) {
  return std::string("X") + bytes_of(static_cast<uint32_t>(text.size())) + std::string(text);
}
std::string pickled_tuple(const std::vector<std::string>& items) {
  std::string operations = "(";
  for (const std::string& item : items) operations += item;
  return operations + "t";
}

std::string PickledTensor::operations() const {
  const std::string kind = "ctorch\n" + kDtypes.at(dtype).storage + "\n";
  const std::string storage =
      pickled_tuple({pickled("storage"), kind, pickled(key), pickled("cpu"), pickled(count)}) + "Q";
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         pickled_tuple({storage, pickled(offset), pickled_numbers(shape), pickled_numbers(strides),
                        "\x89", "ccollections\nOrderedDict\n)R"}) +
         "R";
}

std::string pickled_dictionary(const std::vector<std::pair<std::string, std::string>>& values) {
  std::string pickle =
      "\x80\x02"
      "ccollections\nOrderedDict\n)Rq\x01(";
  for (const auto& [name, operations] : values) pickle += pickled(name) + operations;
  return pickle + "u.";
}

std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& files) {
  std::string archive, directory;
  const auto u16 = [](size_t value) { return bytes_of(static_cast<uint16_t>(value)); };
  const auto u32 = [](size_t value) { return bytes_of(static_cast<uint32_t>(value)); };
  for (const auto& [name, content] : files) {
    const size_t place = archive.size();
    const std::string rest = u32(0) + u32(0) + u32(content.size()) + u32(content.size());
    archive +=
        "PK\x03\x04" + u16(0) + u16(0) + u16(0) + rest + u16(name.size()) + u16(0) + name + content;
    directory += "PK\x01\x02" + u16(0) + u16(0) + u16(0) + u16(0) + rest + u16(name.size()) +
                 u16(0) + u16(0) + u16(0) + u16(0) + u32(0) + u32(place) + name;
  }
  return archive + directory + "PK\x05\x06" + u16(0) + u16(0) + u16(files.size()) +
         u16(files.size()) + u32(directory.size()) + u32(archive.size()) + u16(0);
}

std::string torch_archive(const std::string& pickle,
                          const std::map<std::string, std::string>& storages) {
  std::vector<std::pair<std::string, std::string>> files = {{"model/data.pkl", pickle},
                                                            {"model/byteorder", "little"}};
  for (const auto& [key, bytes] : storages) files.emplace_back("model/data/" + key, bytes);
  return zip_bytes(files);
}

std::string torch_bytes(const std::vector<TestTensor>& tensors) {
  std::map<std::string, std::string> storages;
  const std::string pickle = pickle_of(tensors, storages);
  return torch_archive(pickle, storages);
}

std::string old_torch_bytes(const std::vector<TestTensor>& tensors) {
  std::map<std::string, std::string> storages;
  const std::string pickle = pickle_of(tensors, storages), begin = "\x80\x02";
  std::string bytes = begin + "\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
  bytes += begin + pickled(1001) + ".";
  bytes += begin + "}(" + pickled("little_endian") + "\x88u." + pickle + begin + "](";
  for (const auto& [key, storage] : storages) bytes += pickled(key);
  bytes += "e.";
  for (const auto& [key, storage] : storages) {
    const int64_t size = kDtypes.at(tensors[std::stoul(key)].dtype).size;
    bytes += bytes_of(std::ssize(storage) / size) + storage;
  }
  return bytes;
}

}  // namespace phasor
