// Reference activations and logits that lie beside a model: golden.json and golden.safetensors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "files/files.h"
#include "phasor/safetensors.h"

namespace infer {

struct GoldenItem {
  std::optional<std::string> text;  // empty: ids only
  std::optional<std::string> text_pair;
  std::vector<int32_t> ids;
  std::vector<int32_t> token_types;  // empty: not given, all 0
  std::vector<float> logits;         // of a classification head; empty: not given
};

/// What another implementation computed for the same weights.
struct Golden {
  double atol = 0;
  double rtol = 0;
  std::vector<GoldenItem> items;
  std::shared_ptr<const phasor::SafetensorsFile> tensors;  // null: there are logits only

  /// An item's tensor, or its "logits"; empty where there is none. Borrowed.
  std::optional<phasor::Tensor> tensor(int64_t item, const std::string& name) const {
    const std::vector<float>& logits = items[item].logits;
    if (name == "logits" && !logits.empty()) {
      return phasor::Tensor{.shape = {std::ssize(logits)},
                            .data = reinterpret_cast<const std::byte*>(logits.data())};
    }
    const std::string full = std::to_string(item) + "." + name;
    if (!tensors || !tensors->contains(full)) return std::nullopt;
    return tensors->tensor(full);
  }
};

/// Throws InvalidArgument (golden.json) or ModelError (golden.safetensors) naming file and reason.
Golden load_golden(const phasor::internal::ModelPath& folder);

}  // namespace infer
