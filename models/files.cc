// The plain file and JSON reading behind config.json, tokenizer files and safetensors headers.
#include "models/files.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>
#include <vector>

#include "phasor/errors.h"

namespace phasor::internal {
namespace {

constexpr size_t kHeadBytes = 512;
constexpr uintmax_t kMaxFileSize = uintmax_t{1} << 30;

uintmax_t checked_size(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw ModelError(fmt::format("{}: no such file", file.string()));
  }
  if (error) throw ModelError(fmt::format("{}: {}", file.string(), error.message()));
  if (status.type() != std::filesystem::file_type::regular) {
    throw ModelError(fmt::format("{}: not a plain file", file.string()));
  }
  const uintmax_t size = std::filesystem::file_size(file, error);
  if (error) throw ModelError(fmt::format("{}: {}", file.string(), error.message()));
  return size;
}

/// Refuses an object that names a key twice, which JSON parsers otherwise let pass.
class UniqueKeys {
 public:
  bool operator()(int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    switch (event) {
      case nlohmann::json::parse_event_t::object_start:
        open_.emplace_back();
        break;
      case nlohmann::json::parse_event_t::object_end:
        open_.pop_back();
        break;
      case nlohmann::json::parse_event_t::key:
        if (!open_.back().insert(parsed.get<std::string>()).second && !twice_) {
          twice_ = value_text(parsed);
        }
        break;
      default:
        break;
    }
    return true;
  }
  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::optional<std::string> twice_;
};

/// A protobuf that begins with ir_version (a small number) and producer_name (a text). As the
/// length of a safetensors header it would be above 4 GiB.
bool is_onnx(std::string_view head) {
  return head.size() > 8 && head[0] == '\x08' && head[1] > 0 && head[1] < 0x20 &&
         head[2] == '\x12' && head[4] != '\0';
}

/// A value whose objects name no key twice.
nlohmann::json parse_json(std::string_view text, std::string_view what) {
  UniqueKeys keys;
  nlohmann::json parsed;
  try {
    parsed = nlohmann::json::parse(text, std::ref(keys));
  } catch (const nlohmann::json::parse_error& error) {
    throw ModelError(fmt::format("{}: not valid JSON from byte {} on", what, error.byte));
  }
  if (keys.twice()) {
    throw ModelError(fmt::format("{}: the key {} is there twice", what, *keys.twice()));
  }
  return parsed;
}

nlohmann::json must_be_object(nlohmann::json parsed, std::string_view what) {
  if (!parsed.is_object()) {
    throw ModelError(
        fmt::format("{}: {} where a JSON object {{…}} must be", what, value_text(parsed)));
  }
  return parsed;
}

}  // namespace

std::string_view imposter(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  const std::string_view text = first == head.npos ? std::string_view() : head.substr(first);
  if (text.starts_with("version https://git-lfs")) {
    return "a Git LFS pointer, not the file itself; run 'git lfs pull' where it came from";
  }
  if (text.starts_with("<!") || text.starts_with("<html") || text.starts_with("<HTML") ||
      text.starts_with("<?xml")) {
    return "a web page (HTML), not the file itself; download it again";
  }
  if (head.starts_with("PK\x03\x04")) {
    return "a zip archive, as PyTorch saves .bin and .pt files, not safetensors or JSON; save the "
           "model again with save_pretrained() of Transformers";
  }
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= '\x02' && head[1] <= '\x05' &&
      (head[2] == '\x8a' || head[2] == '}' || head[2] == 'c' || head[2] == '\x95')) {
    return "a Python pickle, not safetensors or JSON; save the model again with save_pretrained() "
           "of "
           "Transformers";
  }
  if (head.starts_with("\x1f\x8b")) return "a gzip archive; unpack it first";
  if (head.starts_with("GGUF")) {
    return "a GGUF file of llama.cpp; get the original model, with config.json and "
           "model.safetensors";
  }
  if (head.starts_with("\x89HDF\r\n")) {
    return "an HDF5 file of TensorFlow, not safetensors; get the original model, with "
           "model.safetensors";
  }
  if (is_onnx(head)) {
    return "an ONNX graph; get the original model, with config.json and model.safetensors";
  }
  return {};
}

std::string_view imposter_in(const std::filesystem::path& file) {
  std::array<char, kHeadBytes> head;
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), head.size());
  return imposter({head.data(), static_cast<size_t>(stream.gcount())});
}

bool is_file(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored);
}

std::string read_file(const std::filesystem::path& file) {
  const uintmax_t size = checked_size(file);
  if (size > kMaxFileSize) {
    throw ModelError(
        fmt::format("{}: {} bytes; at most {} are read", file.string(), size, kMaxFileSize));
  }
  std::ifstream stream(file, std::ios::binary);
  std::string bytes(size, '\0');
  if (!stream.is_open() || !stream.read(bytes.data(), static_cast<std::streamsize>(size))) {
    throw ModelError(fmt::format("{}: cannot be read: {}", file.string(),
                                 std::generic_category().message(errno)));
  }
  return bytes;
}

nlohmann::json parse_json_object(std::string_view text, std::string_view what) {
  return must_be_object(parse_json(text, what), what);
}

nlohmann::json read_json(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  if (const std::string_view what = imposter(text); !what.empty()) {
    throw ModelError(fmt::format("{}: this is {}", file.string(), what));
  }
  return parse_json(text, file.string());
}

nlohmann::json read_json_object(const std::filesystem::path& file) {
  return must_be_object(read_json(file), file.string());
}

std::string value_text(const nlohmann::json& value) {
  using Handler = nlohmann::json::error_handler_t;
  std::string text = value.dump(-1, ' ', true, Handler::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace phasor::internal
