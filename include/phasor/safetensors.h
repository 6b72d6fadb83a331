// Reads safetensors files, and the tensors of PyTorch's, in place: what they say is checked once,
// and tensors are borrowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "phasor/model.h"

namespace [[gnu::visibility("default")]] phasor {

/// A safetensors file, mapped read-only or copied for as long as this object lives. Immutable and
/// safe to share between threads. Format: https://github.com/huggingface/safetensors.
class SafetensorsFile {
 public:
  /// One tensor as the header describes it, of any dtype ("F32", "I64", …).
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    const std::byte* data = nullptr;  // may be unaligned
    int64_t num_bytes = 0;
  };

  /// `copy`: reads the file into memory; otherwise it stays mapped, and must not be overwritten in
  /// place (see Model::load()). Throws ModelError, naming the file and the tensor, if the file is
  /// missing or not a valid safetensors file.
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& file,
                                                     bool copy = false);
  /// The same of a file that PyTorch's torch.save() has written of a dictionary of tensors, such as
  /// pytorch_model.bin. Its pickle is read and never run; a file that asks for more than tensors is
  /// refused by what it asks for. Tensors that do not lie in one piece are copied.
  static std::shared_ptr<const SafetensorsFile> open_torch(const std::filesystem::path& file,
                                                           bool copy = false);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::map<std::string, Entry>& entries() const;
  /// Name–value pairs of `__metadata__`; values that are not strings are left out.
  const std::map<std::string, std::string>& metadata() const;
  bool contains(const std::string& name) const;
  /// See Model::release_pages.
  void release_pages() const;
  /// Borrowed from this object. Throws ModelError if there is no such tensor or its dtype is not
  /// F32, F16, BF16 or F64.
  Tensor tensor(const std::string& name) const;

 private:
  explicit SafetensorsFile(std::filesystem::path file);
  void map(bool copy);
  void read_header();

  std::filesystem::path file_;
  bool is_copy_ = false;
  const std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::vector<std::byte>> copies_;  // of tensors that do not lie in one piece
};

}  // namespace phasor
