// The files of a folder's weights, combined.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "files/files.h"
#include "phasor/errors.h"
#include "phasor/safetensors.h"

namespace phasor::internal {

/// model.safetensors, or all the shards that model.safetensors.index.json lists; without them
/// pytorch_model.bin, or its shards. Immutable. Borrowed data lives as long as this object.
class TensorFiles {
 public:
  /// `copy`: see SafetensorsFile::open(). Throws ModelError, where there is no such file like
  /// refuse_without_weights().
  static std::shared_ptr<const TensorFiles> open(const ModelPath& folder, bool copy = false);

  /// The same of one file that torch.save() has written, such as sparse_linear.pt.
  static std::shared_ptr<const TensorFiles> open_torch(const ModelPath& file);

  /// The names of all tensors, each with its file.
  const std::map<std::string, const SafetensorsFile*>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return tensors_.count(name) > 0; }
  /// Throw ModelError if there is no such tensor or its dtype is not F32, F16 or BF16.
  const std::vector<int64_t>& shape(const std::string& name) const;
  Tensor tensor(const std::string& name) const;
  /// The first file's.
  const std::map<std::string, std::string>& metadata() const { return files_.front()->metadata(); }
  /// See Model::release_pages.
  void release_pages() const;
  /// The file that lists the tensors, for messages.
  const std::string& where() const { return where_; }

 private:
  explicit TensorFiles(const std::filesystem::path& file) : where_(file.string()) {}
  using Open = std::function<std::shared_ptr<const SafetensorsFile>(const std::filesystem::path&)>;
  void add_file(std::shared_ptr<const SafetensorsFile> file);
  void add_shards(const ModelPath& index, const Open& open);
  const SafetensorsFile& file_of(const std::string& name) const;

  std::string where_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> tensors_;
};

/// The first file in a folder that holds weights where or as phasor does not read them.
struct ForeignWeights {
  std::string clause;  // "; FILE is …", for the end of a message; empty where there is none
  ErrorCode code = ErrorCode::kInvalidModel;
};
ForeignWeights foreign_weights(const ModelPath& folder);

/// The command that gets what phasor reads of a model of the hub, for messages.
std::string fetch_command(const std::string& name = "OWNER/MODEL");

/// Throws ModelError: the folder has no weights that phasor reads. The message names others, or
/// says how to get them.
[[noreturn]] void refuse_without_weights(const ModelPath& folder);

}  // namespace phasor::internal
