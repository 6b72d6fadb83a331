// A bundled model on disk, with other files beside it.
#pragma once

#include <string>
#include <vector>

#include "tests/support/test.h"

namespace phasor {

class BundledFolder {
 public:
  explicit BundledFolder(const std::string& model = "sinusoidal",
                         const json& files = json::object()) {
    for (const char* const name : {"config.json", "model.safetensors", "tokenizer.model"})
      fs::copy(bundled_model(model) / name, folder_.path() / name);
    for (const auto& [name, content] : files.items()) folder_.write(name, content.dump());
  }

  /// sentence-transformers' modules of these kinds, in the folders 1_Pooling, 2_Dense, …
  void write_modules(const std::vector<std::string>& kinds,
                     const std::string& of = "sentence_transformers.modules.") const {
    json modules = json::array();
    for (size_t i = 0; i < kinds.size(); ++i) {
      const std::string path = i == 0 ? "" : std::to_string(i) + "_" + kinds[i];
      modules.push_back({{"path", path}, {"type", of + kinds[i]}});
    }
    folder_.write("modules.json", modules.dump());
  }
  std::string path() const { return folder_.path().string(); }
  const TempFolder& folder() const { return folder_; }
  std::shared_ptr<const Model> load() const { return Model::load(folder_.path()); }

 private:
  TempFolder folder_;
};

}  // namespace phasor
