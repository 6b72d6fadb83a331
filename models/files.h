// Opening and reading the files of a model's folder, which may be anything at all, and JSON, with a
// sentence for everything that can be wrong with a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

namespace phasor::internal {

/// A kind of file that people have in place of the one they want: "a web page (HTML)", "a Git LFS
/// pointer, not the file itself; run 'git lfs pull'". Empty where `head`, the file's first bytes,
/// looks like none of them.
std::string_view imposter(std::string_view head);

/// As imposter(), of a file's first bytes; empty where it cannot be read.
std::string_view imposter_in(const std::filesystem::path& file);

/// What is read at most of a file, in bytes. The largest tokenizers known take 35 MB.
constexpr int64_t kMaxConfig = int64_t{16} << 20;
constexpr int64_t kMaxTokenizerFile = int64_t{64} << 20;

/// A plain file, open for reading. What is no plain file (a FIFO, a device) is refused without
/// waiting for it.
class PlainFile {
 public:
  /// Throws ModelError where `file` is missing, unreadable or no plain file.
  explicit PlainFile(const std::filesystem::path& file);
  ~PlainFile();
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;

  int descriptor() const { return descriptor_; }
  int64_t size() const { return size_; }
  /// Fills `bytes` with those that come next, and says how many there were: fewer than asked for
  /// only at the end. Throws ModelError.
  size_t read(std::span<char> bytes) const;
  /// The next bytes, `count` or all there are.
  std::string read(int64_t count) const;

 private:
  [[noreturn]] void fail(std::string_view what) const;

  const std::filesystem::path file_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// All of `file`. Throws ModelError as PlainFile does, and for one of more than `max_bytes`.
std::string read_file(const std::filesystem::path& file, int64_t max_bytes = kMaxTokenizerFile);

/// As read_json, and ModelError where the content is no JSON object.
nlohmann::json read_json_object(const std::filesystem::path& file, int64_t max_bytes = kMaxConfig);

/// Any JSON value from a file, as parse_json().
nlohmann::json read_json(const std::filesystem::path& file, int64_t max_bytes = kMaxConfig);

/// Parses a value whose objects name no key twice, which nests no more than 64 deep, and which has
/// at most four million values in all: so much memory it may cost. `what` stands for it in
/// ModelError's message.
nlohmann::json parse_json(std::string_view text, std::string_view what);

/// As parse_json, and ModelError where it is no object.
nlohmann::json parse_json_object(std::string_view text, std::string_view what);

/// Whether a plain file of this name is there; false where that cannot be known.
bool is_file(const std::filesystem::path& file);

/// Whether anything of this name is there, be it a link to nothing: a file whose absence has a
/// meaning is read where this is true, and refused by name where it cannot be read.
bool is_there(const std::filesystem::path& file);

/// A JSON value in one line of at most 60 characters, for messages; the same cost for any value.
std::string value_text(const nlohmann::json& value);

}  // namespace phasor::internal
