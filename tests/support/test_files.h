// Files for tests: a folder that removes itself, and safetensors written byte by byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/model.h"

namespace phasor {

/// A fresh folder, removed with everything in it at the end: under the system's temporary one, or
/// another.
class TempFolder {
 public:
  TempFolder() : TempFolder(std::filesystem::temp_directory_path()) {}
  explicit TempFolder(const std::filesystem::path& parent);
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file (and the folders it lies in) and says where.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const;

 private:
  std::filesystem::path path_;
};

/// The bundled model of this name in the source tree.
std::filesystem::path bundled_model(const std::string& name);
/// A text so many times.
std::string repeat(std::string_view part, int64_t count);
/// The file of this name in tests/fixtures.
std::filesystem::path fixture(const std::string& name);

/// A safetensors file: the header's length, the header, the data.
std::string safetensors_bytes(std::string_view header, std::string_view data);

/// A tensor to be written, filled with zeros where `bytes` is empty.
struct TestTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";
  std::string bytes = {};
};
std::string safetensors_bytes(const std::vector<TestTensor>& tensors);
/// The tensor of this name, which is there.
TestTensor& tensor_of(std::vector<TestTensor>& tensors, const std::string& name);
void remove_tensor(std::vector<TestTensor>& tensors, const std::string& name);

/// The bytes of `values` as float32, or as float64.
std::string float_bytes(const std::vector<float>& values);
std::string double_bytes(const std::vector<double>& values);

/// A small, complete config.json of type phasor: d_model 4, d_ff 6, 2 layers, 2 heads, vocabulary
/// 5, 7 learned positions, no tokenizer.
nlohmann::json small_config_json();
/// All tensors that small_config_json() asks for; the values of each count up from its place in the
/// list.
std::vector<TestTensor> small_tensors();
/// Writes config.json and model.safetensors into a folder.
void write_checkpoint(const TempFolder& folder, const nlohmann::json& config = small_config_json(),
                      const std::vector<TestTensor>& tensors = small_tensors());
/// The model of a folder with these and nothing else.
std::shared_ptr<const Model> load_checkpoint(const nlohmann::json& config,
                                             const std::vector<TestTensor>& tensors);

}  // namespace phasor
