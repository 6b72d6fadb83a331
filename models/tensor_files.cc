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

constexpr const char* kOneFile = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// Usual extensions of files of weights; their bytes tell the format.
constexpr std::string_view kExtensions[] = {".bin",  ".pt",      ".pth",  ".ckpt",       ".h5",
                                            ".gguf", ".msgpack", ".onnx", ".safetensors"};

/// The files in `folder`, then those in its subfolders (ONNX graphs are in "onnx/"), relative to
/// it.
std::vector<std::string> file_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    names.push_back(entry->path().lexically_relative(folder).string());
  }
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

/// In single quotes, as a shell reads it.
std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

/// Copies the tensors and their names, of one file or of all shards, as a shell runs it. Tensors
/// that share memory become separate, as safetensors demands.
constexpr std::string_view kConvert =
    R"(python3 -c 'import sys, torch; from safetensors.torch import save_file; )"
    R"(parts = [torch.load(f, map_location="cpu", weights_only=True) for f in sys.argv[2:]]; )"
    R"(save_file({k: t.detach().clone().contiguous() for p in parts )"
    R"(for k, t in p.get("state_dict", p).items() if torch.is_tensor(t)}, )"
    R"(sys.argv[1], {"format": "pt"})')";

/// The command that converts a pickle, which may be one of several: NAME-00001-of-00002.bin.
std::string conversion(const fs::path& pickle) {
  const std::string path = pickle.string();
  constexpr std::string_view kNumber = "-00001";
  const size_t number = path.rfind(std::string(kNumber) + "-of-");
  const std::string files = number == path.npos
                                ? shell_quoted(path)
                                : shell_quoted(path.substr(0, number + 1)) + "*" +
                                      shell_quoted(path.substr(number + kNumber.size()));
  return fmt::format("{} {} {}", kConvert, shell_quoted((pickle.parent_path() / kOneFile).string()),
                     files);
}

/// Describes `name`, a file of `folder` that begins with `head`, for a message.
ForeignWeights describe(const ModelPath& folder, const std::string& name, const FileKind* kind,
                        const std::string& head) {
  if (kind == nullptr) {
    return {fmt::format("; {} is of no format that phasor knows (it {})", name,
                        head.empty() ? "is empty or cannot be read"
                                     : "begins with " + value_text(head.substr(0, 4))),
            ErrorCode::kUnsupported};
  }
  std::string advice(kind->advice);
  if (kind->format == FileFormat::kPickle && is_file(folder / "config.json")) {
    advice =
        "convert it, where torch and safetensors are installed, by: " + conversion(folder / name);
  }
  return {fmt::format("; {} is {}; {}", name, kind->name, advice), kind->code};
}

}  // namespace

ForeignWeights foreign_weights(const ModelPath& folder) {
  const std::vector<std::string> names = file_names(folder);
  std::optional<ForeignWeights> unknown;
  for (const std::string_view extension : kExtensions) {
    for (const std::string& name : names) {
      if (!name.ends_with(extension) || !holds_weights(name)) continue;
      if (name == kOneFile) continue;  // where config.json is what lacks
      const std::string head = file_head(folder / name);
      const FileKind* const kind = file_kind(head, name);
      // A subfolder may belong to a Dense module or to another model.
      const bool below = fs::path(name).has_parent_path();
      if (below && (kind == nullptr || kind->format != FileFormat::kOther)) continue;
      if (kind != nullptr) return describe(folder, name, kind, head);
      if (!unknown) unknown = describe(folder, name, kind, head);
    }
  }
  return unknown.value_or(ForeignWeights());
}

void refuse_without_weights(const ModelPath& folder) {
  const ForeignWeights found = foreign_weights(folder);
  refuse<ModelError>(found.code, "{}: no {} in it{}", folder.string(), kOneFile, found.clause);
}

std::shared_ptr<const TensorFiles> TensorFiles::open(const ModelPath& folder, bool copy) {
  const ModelPath one = folder / kOneFile, index = folder / kIndex;
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
    opened->add_shards(folder, copy);
    return opened;
  }
  refuse_without_weights(folder);
}

// {"weight_map": {"encoder.layer.0.…": "model-00001-of-00002.safetensors", …}}
void TensorFiles::add_shards(const ModelPath& folder, bool copy) {
  const JsonDocument document = read_json_object(folder / kIndex);
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
        files_.push_back(SafetensorsFile::open(within_folder(folder / shard), copy));
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
