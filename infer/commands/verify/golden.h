// Reference activations that lie beside a model: golden.json and golden.safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "phasor/model.h"
#include "phasor/safetensors.h"

namespace infer {

struct GoldenItem {
  std::optional<std::string> text;  // empty: ids only
  std::vector<int32_t> ids;
};

/// What another implementation computed for the same weights.
struct Golden {
  double atol = 0;
  double rtol = 0;
  std::vector<GoldenItem> items;
  std::shared_ptr<const phasor::SafetensorsFile> tensors;

  bool contains(int64_t item, const std::string& name) const;
  /// Throws ModelError where there is no such tensor.
  phasor::Tensor tensor(int64_t item, const std::string& name) const;
};

/// Throws InvalidArgument (golden.json) or ModelError (golden.safetensors) naming file and reason.
Golden load_golden(const std::filesystem::path& folder);

}  // namespace infer
