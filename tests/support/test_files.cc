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
  folder.write("config.json", config.dump());
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

}  // namespace phasor
