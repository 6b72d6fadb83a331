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

  /// An item's tensor; empty where there is none.
  std::optional<phasor::Tensor> tensor(int64_t item, const std::string& name) const {
    const std::string full = std::to_string(item) + "." + name;
    return tensors->contains(full) ? std::optional(tensors->tensor(full)) : std::nullopt;
  }
};

/// Throws InvalidArgument (golden.json) or ModelError (golden.safetensors) naming file and reason.
Golden load_golden(const std::filesystem::path& folder);

}  // namespace infer
