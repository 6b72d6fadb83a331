// Files as PyTorch's torch.save() writes them, and crafted ones.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/test_files.h"

namespace phasor {

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
