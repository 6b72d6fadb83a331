#include "models/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "files/config_reader.h"
#include "files/file_kinds.h"
#include "files/files.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

namespace fs = std::filesystem;

/// A format of weights: the name of the file, or of the index of several, and what opens one.
struct Format {
  std::string_view one_file;
  std::shared_ptr<const SafetensorsFile> (*open)(const fs::path& file, bool copy);

  std::string index() const { return std::string(one_file) + ".index.json"; }
};
constexpr Format kFormats[] = {{"model.safetensors", SafetensorsFile::open},
                               {"pytorch_model.bin", SafetensorsFile::open_torch}};

/// Usual extensions of files of weights; their bytes tell the format.
constexpr std::string_view kExtensions[] = {".bin",  ".pt",      ".pth",  ".ckpt",       ".h5",
                                            ".gguf", ".msgpack", ".onnx", ".safetensors"};

/// The files in `folder`, then those in its subfolders (ONNX graphs are in "onnx/"), relative to
/// it.
std::vector<std::string> file_names(const fs::path& folder) {
  std::error_code ignored;
  std::vector<std::string> names = list_folder(folder, 1, &ignored);
  std::ranges::sort(names, {}, [](const std::string& name) {
    return std::pair(fs::path(name).has_parent_path(), name);
  });
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

/// Describes `name`, a file that begins with `head`, for a message.
ForeignWeights describe(const std::string& name, const FileKind* kind, const std::string& head) {
  if (kind == nullptr) {
    return {fmt::format("; {} is of no format that phasor knows (it {})", name,
                        head.empty() ? "is empty or cannot be read"
                                     : "begins with " + value_text(head.substr(0, 4))),
            ErrorCode::kUnsupported};
  }
  return {fmt::format("; {} is {}; {}", name, kind->name, kind->advice), kind->code};
}

}  // namespace

ForeignWeights foreign_weights(const ModelPath& folder) {
  const std::vector<std::string> names = file_names(folder);
  std::optional<ForeignWeights> unknown;
  for (const std::string_view extension : kExtensions) {
    for (const std::string& name : names) {
      if (!name.ends_with(extension) || !holds_weights(name)) continue;
      // Of the right name where config.json is what lacks.
      if (std::ranges::find(kFormats, name, &Format::one_file) != std::end(kFormats)) continue;
      const std::string head = file_head(folder / name);
      const FileKind* const kind = file_kind(head, name);
      // A subfolder may belong to a Dense module or to another model.
      const bool below = fs::path(name).has_parent_path();
      if (below && (kind == nullptr || kind->format != FileFormat::kOther)) continue;
      if (kind != nullptr) return describe(name, kind, head);
      if (!unknown) unknown = describe(name, kind, head);
    }
  }
  return unknown.value_or(ForeignWeights());
}

std::string fetch_command(const std::string& name) {
  return fmt::format(
      "hf download {} --include '*.json' --include '*.txt' --include '*.model' --include '*.spm' "
      "--include 'model*.safetensors' --include '*/model.safetensors' (or 'pytorch_model*.bin', if "
      "it has no safetensors)",
      name);
}

void refuse_without_weights(const ModelPath& folder) {
  const ForeignWeights found = foreign_weights(folder);
  refuse<ModelError>(found.code, "{}: no {} in it{}", folder.string(), kFormats[0].one_file,
                     found.clause.empty()
                         ? fmt::format("; fetch it, as by: {}",
                                       fetch_command("OWNER/MODEL --local-dir " + folder.string()))
                         : found.clause);
}

std::shared_ptr<const TensorFiles> TensorFiles::open(const ModelPath& folder, bool copy) {
  for (const Format& format : kFormats) {
    const ModelPath one = folder / format.one_file, index = folder / format.index();
    if (is_there(one)) {
      const std::shared_ptr<TensorFiles> opened(new TensorFiles(one));
      opened->add_file(format.open(within_folder(one), copy));
      return opened;
    }
    if (is_there(index)) {
      const std::shared_ptr<TensorFiles> opened(new TensorFiles(index));
      opened->add_shards(index, [&](const fs::path& file) { return format.open(file, copy); });
      return opened;
    }
  }
  refuse_without_weights(folder);
}

std::shared_ptr<const TensorFiles> TensorFiles::open_torch(const ModelPath& file) {
  const std::shared_ptr<TensorFiles> opened(new TensorFiles(file));
  opened->add_file(SafetensorsFile::open_torch(within_folder(file)));
  return opened;
}

void TensorFiles::add_file(std::shared_ptr<const SafetensorsFile> file) {
  for (const auto& [name, entry] : file->entries()) tensors_.emplace(name, file.get());
  files_.push_back(std::move(file));
}

// {"weight_map": {"encoder.layer.0.…": "model-00001-of-00002.safetensors", …}}
void TensorFiles::add_shards(const ModelPath& file, const Open& open) {
  const JsonDocument document = read_json_object(file);
  const ModelPath folder(file.parent_path(), file.follow_links());
  const ConfigReader index(where_, *document);
  if (index.object("weight_map").keys().empty())
    index.refuse("weight_map", "a file's name for each tensor");
  std::map<std::string, const SafetensorsFile*> opened;
  std::map<std::pair<uint64_t, uint64_t>, const SafetensorsFile*> by_id;
  for (const auto& [tensor, value] : index.value("weight_map")->items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    if (shard.empty() || fs::path(shard).filename() != shard) {
      index.fail("the tensor {} lies in {}; it must be a file in this folder", value_text(tensor),
                 value_text(value));
    }
    const SafetensorsFile*& file = opened[shard];
    if (file == nullptr) {
      if (!is_file(folder / shard)) {
        refuse<ModelError>("{}: {}, which it names, is not there; get all its files", where_,
                           value_text(shard));
      }
      const SafetensorsFile*& same = by_id[file_id(folder / shard)];
      if (same == nullptr) {
        files_.push_back(open(within_folder(folder / shard)));
        same = files_.back().get();
      }
      file = same;
    }
    if (!file->contains(tensor)) {
      refuse<ModelError>(
          "{}: the tensor {} is not in {}, which it names; the files do not belong together",
          where_, value_text(tensor), shard);
    }
    tensors_.emplace(tensor, file);
  }
}

const SafetensorsFile& TensorFiles::file_of(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse<ModelError>("{}: the tensor '{}' is missing", where_, name);
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
