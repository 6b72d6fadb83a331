// Files for tests: a folder that removes itself; safetensors and PyTorch's files, byte by byte.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/model.h"

namespace phasor {

/// A fresh folder, removed with all in it: under the system's temporary one, or another.
class TempFolder {
 public:
  TempFolder() : TempFolder(std::filesystem::temp_directory_path()) {}
  explicit TempFolder(const std::filesystem::path& parent);
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Writes a file (and the folders it lies in) and says where.
  std::filesystem::path write(const std::string& name, std::string_view bytes) const;
  std::filesystem::path write_json(const std::string& name, const nlohmann::json& value) const;
  /// Files by name: JSON, or text as it is.
  void write_files(const nlohmann::json& files) const;

 private:
  std::filesystem::path path_;
};

/// The bundled model of this name in the source tree.
std::filesystem::path bundled_model(const std::string& name);
/// $PHASOR_SHARED, else `shared` beside the repository; empty where that is no folder.
inline std::optional<std::filesystem::path> shared_dir() {
  const char* const asked_for = std::getenv("PHASOR_SHARED");
  const std::filesystem::path folder =
      asked_for != nullptr ? std::filesystem::path(asked_for)
                           : std::filesystem::path(PHASOR_SOURCE_DIR).parent_path() / "shared";
  return std::filesystem::is_directory(folder) ? std::optional(folder) : std::nullopt;
}
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
/// All tensors that small_config_json() asks for; each one's values count up from its place.
std::vector<TestTensor> small_tensors();
/// Writes config.json and model.safetensors into a folder.
void write_checkpoint(const TempFolder& folder, const nlohmann::json& config = small_config_json(),
                      const std::vector<TestTensor>& tensors = small_tensors());
/// The model of a folder with these and nothing else.
std::shared_ptr<const Model> load_checkpoint(const nlohmann::json& config,
                                             const std::vector<TestTensor>& tensors);

// Files as PyTorch's torch.save() writes them, and crafted ones.

/// Operations of a pickle: numbers, texts and tuples as torch.save() writes them.
std::string pickled(int64_t number);
std::string pickled(std::string_view text);
std::string pickled_tuple(const std::vector<std::string>& items);
/// A call of _rebuild_tensor_v2 with a storage of `count` numbers of `dtype` (safetensors' name).
struct PickledTensor {
  std::string key = "0", dtype = "F32";
  int64_t count = 6, offset = 0;
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};

  std::string operations() const;
};
/// A whole pickle of a dictionary, from operations of its values by their names.
std::string pickled_dictionary(const std::vector<std::pair<std::string, std::string>>& values);

/// A zip archive of stored files.
std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& files);
/// The archive "model" with this pickle and these storages by their keys.
std::string torch_archive(const std::string& pickle,
                          const std::map<std::string, std::string>& storages);

/// Each tensor with a storage of its own, as PyTorch writes them now, and wrote them before 1.6.
std::string torch_bytes(const std::vector<TestTensor>& tensors);
std::string old_torch_bytes(const std::vector<TestTensor>& tensors);

}  // namespace phasor
