// A tiny model of sparse vectors on disk.
#pragma once

#include "tests/support/bundled_folder.h"

namespace phasor {

/// A bundled model, whose masked-language-model head has 8192 pieces, with a SpladePooling.
class SparseFolder : public BundledFolder {
 public:
  explicit SparseFolder(const json& pooling)
      : BundledFolder("sinusoidal", {{"1_SpladePooling/config.json", pooling}}) {
    write_modules({"MLMTransformer", "SpladePooling"},
                  "sentence_transformers.sparse_encoder.models.");
  }
};

}  // namespace phasor
