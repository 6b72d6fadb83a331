// A tiny model of sparse vectors on disk.
#pragma once

#include <filesystem>

#include "tests/support/test.h"
#include "tests/support/test_files.h"

namespace phasor {

/// A bundled model, whose masked-language-model head has 8192 pieces, with a SpladePooling.
class SparseFolder {
 public:
  explicit SparseFolder(const nlohmann::json& pooling) {
    for (const char* const name : {"config.json", "model.safetensors", "tokenizer.model"})
      std::filesystem::copy(bundled_model("sinusoidal") / name, folder_.path() / name);
    const std::string of = "sentence_transformers.sparse_encoder.models.";
    const nlohmann::json modules = {{{"path", ""}, {"type", of + "MLMTransformer"}},
                                    {{"path", "1_SpladePooling"}, {"type", of + "SpladePooling"}}};
    folder_.write("modules.json", modules.dump());
    folder_.write("1_SpladePooling/config.json", pooling.dump());
  }

  std::string path() const { return folder_.path().string(); }
  const TempFolder& folder() const { return folder_; }

 private:
  TempFolder folder_;
};

}  // namespace phasor
