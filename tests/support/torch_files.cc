#include "tests/support/torch_files.h"

#include <cstring>

namespace phasor {
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
  return number == static_cast<int32_t>(number) ? "J" + bytes_of(static_cast<int32_t>(number))
                                                : "\x8a\x08" + bytes_of(number);
}
std::string pickled(std::string_view text) {
  return "X" + bytes_of(static_cast<uint32_t>(text.size())) + std::string(text);
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
