#include "models/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "models/files.h"
#include "phasor/errors.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// What a file is by its extension.
constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
    {".bin", "a Python pickle"},           {".pt", "a Python pickle"},
    {".pth", "a Python pickle"},           {".ckpt", "a Python pickle"},
    {".h5", "a TensorFlow file"},          {".msgpack", "a Flax file"},
    {".gguf", "llama.cpp's format"},       {".onnx", "an ONNX graph"},
    {".safetensors", "under another name"}};

/// The files in `folder` and its subfolders (ONNX graphs are in "onnx/"), relative to it.
std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    names.push_back(entry->path().lexically_relative(folder).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Whether `file` may hold weights, rather than a tokenizer or a training run's state.
bool holds_weights(const fs::path& file) {
  const std::string name = file.filename();
  for (const std::string_view other :
       {"training_args", "optimizer", "scheduler", "rng_state", "golden"}) {
    if (name.starts_with(other)) return false;
  }
  return true;
}

/// In single quotes, as a shell reads it.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string advice(std::string_view extension, const fs::path& folder) {
  if (extension == ".gguf" || extension == ".onnx") {
    return fmt::format(
        "which phasor does not read; get the original model, with config.json and {}", kOneFile);
  }
  if (extension == ".safetensors") {
    return fmt::format("which phasor does not look for; if it holds the model, name it {}",
                       kOneFile);
  }
  return fmt::format(
      "which phasor does not read; convert it with: python3 -c 'import sys; from transformers "
      "import AutoModel; AutoModel.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])' {}",
      shell_quoted(folder.string()));
}

}  // namespace

ForeignWeights foreign_weights(const fs::path& folder) {
  const std::vector<std::string> names = file_names(folder);
  for (const auto& [extension, what] : kForeign) {
    for (const std::string& name : names) {
      if (!name.ends_with(extension) || !holds_weights(name)) continue;
      // A subfolder may belong to a Dense module or to another model.
      if (extension == ".safetensors" && fs::path(name).has_parent_path()) continue;
      if (name == kOneFile) continue;  // where config.json is what lacks
      return {fmt::format("; {} is {}, {}", name, what, advice(extension, folder)),
              extension == ".safetensors" ? ErrorCode::kInvalidModel : ErrorCode::kUnsupported};
    }
  }
  return {};
}

std::shared_ptr<const TensorFiles> TensorFiles::open(const fs::path& folder, bool copy) {
  const fs::path one = folder / kOneFile, index = folder / kIndex;
  if (is_file(one)) {
    const std::shared_ptr<TensorFiles> opened(new TensorFiles(one));
    opened->files_.push_back(SafetensorsFile::open(within_folder(one), copy));
    for (const auto& [name, entry] : opened->files_.front()->entries()) {
      opened->tensors_.emplace(name, opened->files_.front().get());
    }
    return opened;
  }
  if (is_file(index)) {
    const std::shared_ptr<TensorFiles> opened(new TensorFiles(index));
    opened->add_shards(index, copy);
    return opened;
  }
  const ForeignWeights found = foreign_weights(folder);
  throw ModelError(fmt::format("{}: no {} in it{}", folder.string(), kOneFile, found.clause),
                   found.code);
}

// {"weight_map": {"encoder.layer.0.…": "model-00001-of-00002.safetensors", …}}
void TensorFiles::add_shards(const fs::path& index, bool copy) {
  const JsonDocument document = read_json_object(index);
  const nlohmann::json& json = *document;
  const auto weight_map = json.find("weight_map");
  if (weight_map == json.end() || !weight_map->is_object() || weight_map->empty()) {
    throw ModelError(fmt::format("{}: weight_map is {}; it must name a file for each tensor",
                                 where_,
                                 weight_map == json.end() ? "missing" : value_text(*weight_map)));
  }
  std::map<std::string, const SafetensorsFile*> opened;
  std::map<std::pair<uint64_t, uint64_t>, const SafetensorsFile*> by_id;
  for (const auto& [tensor, value] : weight_map->items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || fs::path(shard).filename() != shard) {
      throw ModelError(fmt::format("{}: the tensor {} lies in {}; it must be a file in this folder",
                                   where_, value_text(tensor), value_text(value)));
    }
    const SafetensorsFile*& file = opened[shard];
    if (file == nullptr) {
      if (!is_file(index.parent_path() / shard)) {
        throw ModelError(fmt::format("{}: {}, which it names, is not there; get all its files",
                                     where_, value_text(shard)));
      }
      const SafetensorsFile*& same = by_id[file_id(index.parent_path() / shard)];
      if (same == nullptr) {
        files_.push_back(SafetensorsFile::open(within_folder(index.parent_path() / shard), copy));
        same = files_.back().get();
      }
      file = same;
    }
    if (!file->contains(tensor)) {
      throw ModelError(
          fmt::format("{}: the tensor {} is not in {}, which it names; the files do "
                      "not belong together",
                      where_, value_text(tensor), shard));
    }
    tensors_.emplace(tensor, file);
  }
}

const SafetensorsFile& TensorFiles::file_of(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw ModelError(fmt::format("{}: the tensor '{}' is missing", where_, name));
  }
  return *found->second;
}

const std::vector<int64_t>& TensorFiles::shape(const std::string& name) const {
  return file_of(name).entries().at(name).shape;
}

void TensorFiles::release_pages() const {
  for (const auto& file : files_) file->release_pages();
}

Tensor TensorFiles::tensor(const std::string& name) const { return file_of(name).tensor(name); }

}  // namespace phasor::internal
