// Opens and reads untrusted files of a model's folder, and JSON, with a message for every fault of
// a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "phasor/errors.h"

namespace phasor::internal {

/// The most bytes read of a file. The largest known tokenizers take 35 MB.
constexpr int64_t kMaxConfig = int64_t{16} << 20;
constexpr int64_t kMaxTokenizerFile = int64_t{64} << 20;

/// A plain file, open for reading. Other files (a FIFO, a device) are refused without waiting for
/// them.
class PlainFile {
 public:
  /// Throws ModelError if `file` is missing, unreadable or not a plain file.
  explicit PlainFile(const std::filesystem::path& file);
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  int descriptor() const { return descriptor_; }
  int64_t size() const { return size_; }
  /// Reads the next bytes into `bytes` and returns their number, which is smaller than requested
  /// only at the end. Throws ModelError.
  size_t read(std::span<char> bytes) const;
  /// The next `count` bytes, or all that remain.
  std::string read(int64_t count) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_reading() const;  // because of errno

  const std::filesystem::path file_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// A path in a model's folder. It knows whether links that lead out of the folder are followed
/// (LoadOptions::follow_links), and so do the paths that `/` makes of it. Other paths follow none.
class ModelPath : public std::filesystem::path {
 public:
  ModelPath(std::filesystem::path file, bool follow_links = false)  // NOLINT: implicit
      : std::filesystem::path(std::move(file)), follow_links_(follow_links) {}

  bool follow_links() const { return follow_links_; }
  friend ModelPath operator/(const ModelPath& folder, const std::filesystem::path& name) {
    return {static_cast<const std::filesystem::path&>(folder) / name, folder.follow_links_};
  }

 private:
  bool follow_links_;
};

/// Throws ModelError where a link leads from `folder` to a file or folder outside it: who made the
/// folder could have others' files read. The files of a hub's cache are links to its blobs, which
/// may lie beside the folder "snapshots" that holds `folder`. If `folder` follows links, throws
/// only for a link through /proc. A missing file is no error here.
void refuse_link_out(const ModelPath& folder, const std::filesystem::path& file);

/// `file`, after refuse_link_out() of the folder that it is named in.
const std::filesystem::path& within_folder(const ModelPath& file);

/// All of `file`. Throws ModelError like PlainFile, and for more than `max_bytes`.
std::string read_file(const std::filesystem::path& file, int64_t max_bytes = kMaxTokenizerFile);

/// read_file() of a file that must be within_folder().
std::string read_model_file(const ModelPath& file, int64_t max_bytes = kMaxTokenizerFile);

/// A JSON value, nested at most 64 deep. Its destructor allocates nothing: that of nlohmann::json
/// does where it has children, and ends the process where there is no memory.
class JsonDocument {
 public:
  JsonDocument() : root_(nlohmann::json::object()) {}
  explicit JsonDocument(nlohmann::json&& root) : root_(std::move(root)) {}
  JsonDocument(JsonDocument&&) noexcept = default;
  JsonDocument& operator=(JsonDocument&& other) noexcept {
    root_.swap(other.root_);
    return *this;
  }
  ~JsonDocument();

  const nlohmann::json& operator*() const { return root_; }
  nlohmann::json& operator*() { return root_; }
  const nlohmann::json* operator->() const { return &root_; }
  nlohmann::json take() { return std::move(root_); }

 private:
  nlohmann::json root_;
};

/// Like read_json; ModelError if the content is not a JSON object.
JsonDocument read_json_object(const ModelPath& file, int64_t max_bytes = kMaxConfig);

/// Any JSON value from a file that must be within_folder(), like parse_json(); of at most
/// kMaxConfigValues, or kMaxValues where max_bytes is above kMaxConfig. NaN, Infinity and
/// -Infinity, which Python writes, are values of no type that a reader takes, and which
/// value_text() tells.
JsonDocument read_json(const ModelPath& file, int64_t max_bytes = kMaxConfig);

/// The most values of a file, as each takes memory: of a tokenizer's four million.
constexpr int64_t kMaxValues = int64_t{1} << 22;
constexpr int64_t kMaxConfigValues = int64_t{1} << 20;

/// Parses a value whose objects have no duplicate key, which is nested at most 64 deep, and which
/// has at most `max_values` values in all. `what` names it in ModelError's message.
JsonDocument parse_json(std::string_view text, std::string_view what,
                        int64_t max_values = kMaxConfigValues);

/// The value that read_json() makes of the NaN, Infinity or -Infinity at which a parser stopped, in
/// its byte number `position` from 1; null for anything else.
nlohmann::json literal_at(std::string_view text, size_t position);

/// Like parse_json; ModelError if it is not an object.
JsonDocument parse_json_object(std::string_view text, std::string_view what);

/// Equal for the names of one file, which links may give it; {} where there is none.
std::pair<uint64_t, uint64_t> file_id(const std::filesystem::path& file);

/// What is in `folder` and, to `depth` levels below it, in its folders, as sorted paths from it;
/// links to folders are not followed. Throws ModelError where `folder` cannot be read or, if
/// `error` is given, sets that; folders below that cannot be read count as empty. The iterators of
/// libstdc++'s std::filesystem end the process where they get no memory; this throws.
std::vector<std::string> list_folder(const std::filesystem::path& folder, int depth = 0,
                                     std::error_code* error = nullptr);

/// Whether a plain file of this name exists; false if that cannot be determined.
bool is_file(const std::filesystem::path& file);

/// Whether anything of this name exists, including a dangling link: a file whose absence has a
/// meaning is read if this is true, and refused by name if it cannot be read.
bool is_there(const std::filesystem::path& file);

/// A JSON value in one line of at most 60 characters, for messages; at the same cost for any value.
std::string value_text(const nlohmann::json& value);

inline constexpr int64_t kAnyRows = -1;  // in the shape of a tensor
/// "[8192, 128]"; "any" for kAnyRows.
std::string shape_text(const std::vector<int64_t>& shape);

/// Why a file cannot be opened.
const char* why_not_opened(int error);

/// The result of body(), which reads a file that the user named: its ModelError becomes
/// InvalidArgument, with `what` before the message.
template <typename Body>
auto as_input(const std::string& what, Body body) {
  try {
    return body();
  } catch (const ModelError& error) {
    throw InvalidArgument(what + error.what());
  }
}

}  // namespace phasor::internal
