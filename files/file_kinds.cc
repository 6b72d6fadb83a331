#include "files/file_kinds.h"

#include <algorithm>
#include <array>

#include "files/files.h"
#include "files/refuse.h"

namespace phasor::internal {
namespace {

constexpr int64_t kHeadBytes = 512;

std::string_view without_space(std::string_view head) {
  return head.substr(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
}

bool is_pointer(std::string_view head) {
  return without_space(head).starts_with("version https://git-lfs");
}

bool is_web_page(std::string_view head) {
  constexpr std::array kBeginnings = {"<!", "<html", "<HTML", "<?xml"};
  return std::ranges::any_of(kBeginnings, [text = without_space(head)](const char* beginning) {
    return text.starts_with(beginning);
  });
}

/// The header's length in eight bytes, of which the higher are zero, and the header in JSON.
bool is_safetensors(std::string_view head) {
  return head.size() > 8 && head.substr(4, 5) == std::string_view("\0\0\0\0{", 5);
}

bool is_zip(std::string_view head) { return head.starts_with("PK\x03\x04"); }

/// PyTorch's files: a zip archive that begins with NAME/data.pkl; in old versions, a bare pickle.
bool is_pickle(std::string_view head) {
  if (is_zip(head)) return head.find("/data.pkl") != head.npos;
  constexpr std::string_view kFirstOperations = "}]()cX\x8a\x95";
  return head.size() > 2 && head[0] == '\x80' && head[1] >= '\x02' && head[1] <= '\x05' &&
         kFirstOperations.find(head[2]) != head.npos;
}

bool is_gzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }
bool is_gguf(std::string_view head) { return head.starts_with("GGUF"); }
bool is_hdf5(std::string_view head) { return head.starts_with("\x89HDF\r\n"); }

/// A protobuf that begins with ir_version (a small number) and producer_name (a text).
bool is_onnx(std::string_view head) {
  return head.size() > 8 && head[0] == '\x08' && head[1] > 0 && head[1] < 0x20 && head[2] == '\x12';
}

bool never(std::string_view) { return false; }

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kOriginal =
    "get the original model, with config.json and model.safetensors";

/// The first that fits counts: safetensors may begin with the bytes of a pickle or an ONNX graph.
constexpr FileKind kKinds[] = {
    {.name = "a Git LFS pointer, not the file itself",
     .advice = "run 'git lfs pull' where it came from",
     .begins = is_pointer},
    {.name = "a web page (HTML), not the file itself",
     .advice = "download it again",
     .begins = is_web_page},
    {.name = "a safetensors file",
     .advice = "if it holds the model, name it model.safetensors",
     .begins = is_safetensors,
     .format = FileFormat::kSafetensors},
    {.name = "a Python pickle",
     .advice = "if it holds the model's tensors, name it pytorch_model.bin",
     .begins = is_pickle,
     .format = FileFormat::kPickle,
     .code = ErrorCode::kUnsupported},
    {.name = "a zip archive", .advice = kUnpack, .begins = is_zip},
    {.name = "a gzip archive", .advice = kUnpack, .begins = is_gzip},
    {.name = "a GGUF file of llama.cpp, which phasor does not read",
     .advice = kOriginal,
     .begins = is_gguf,
     .code = ErrorCode::kUnsupported},
    {.name = "an HDF5 file of TensorFlow, which phasor does not read",
     .advice = kOriginal,
     .begins = is_hdf5,
     .code = ErrorCode::kUnsupported},
    {.name = "an ONNX graph, which phasor does not read",
     .advice = kOriginal,
     .begins = is_onnx,
     .code = ErrorCode::kUnsupported,
     .extension = ".onnx"},
    {.name = "a Flax file, which phasor does not read",
     .advice = kOriginal,
     .begins = never,
     .code = ErrorCode::kUnsupported,
     .extension = ".msgpack"}};

}  // namespace

const FileKind* file_kind(std::string_view head, std::string_view name) {
  for (const FileKind& kind : kKinds) {
    if (kind.begins(head)) return &kind;
  }
  for (const FileKind& kind : kKinds) {
    if (!kind.extension.empty() && name.ends_with(kind.extension)) return &kind;
  }
  return nullptr;
}

std::string file_head(const ModelPath& file) {
  try {
    return PlainFile(within_folder(file)).read(kHeadBytes);
  } catch (const ModelError&) {
    return {};
  }
}

void refuse_other_kind(std::string_view bytes, const std::filesystem::path& file,
                       FileFormat wanted) {
  const FileKind* const kind = file_kind(bytes.substr(0, kHeadBytes));
  if (kind == nullptr || (wanted != FileFormat::kOther && kind->format == wanted)) return;
  refuse<ModelError>("{}: this is {}; {}", file.string(), kind->name, kind->advice);
}

}  // namespace phasor::internal
