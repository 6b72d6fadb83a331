#include "infer/commands/embed/embed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "infer/commands.h"
#include "infer/files/plain_file.h"
#include "infer/files/save.h"
#include "infer/files/temporary_file.h"
#include "models/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// As long for any number of lines.
std::string safetensors_header(const VectorFormat& format, int64_t lines) {
  const auto text = [&](int64_t rows, int64_t bytes) {
    nlohmann::ordered_json header;
    header["__metadata__"] = format.metadata;
    header["embeddings"] = {
        {"dtype", "F32"}, {"shape", {rows, format.width}}, {"data_offsets", {0, bytes}}};
    return header.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const uint64_t size = (text(kLongest, kLongest).size() + 7) / 8 * 8;
  std::string header = text(lines, lines * format.width * 4);
  header.resize(size, ' ');
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header;
}

}  // namespace

// A multiplication and a shift each spread a change over the whole word.
void Fingerprint::mix(uint64_t word) {
  hash_ = (hash_ ^ word) * 0xFF51AFD7ED558CCDu;
  hash_ ^= hash_ >> 32;
}

void Fingerprint::add(std::string_view piece) {
  mix(piece.size());
  extend(piece);
}

void Fingerprint::extend(std::string_view part) {
  for (const char byte : part) {
    word_ |= uint64_t{static_cast<unsigned char>(byte)} << count_ % 8 * 8;
    if (++count_ % 8 == 0) mix(std::exchange(word_, 0));
  }
}

std::string Fingerprint::text() const {
  Fingerprint whole = *this;
  whole.mix(word_);
  whole.mix(count_);
  return fmt::format("{:016x}", whole.hash_);
}

// Links to folders are not followed, and what is no plain file, or a link that leads nowhere, is
// none of the model's.
std::string model_fingerprint(const fs::path& folder) {
  constexpr std::array kExtensions = {".json", ".safetensors", ".model", ".spm", ".txt"};
  fs::directory_iterator{folder};  // throws where the folder itself cannot be listed
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    std::error_code ignored;
    const fs::path& file = entry->path();
    const bool decides = file.stem() != "golden" &&
                         std::ranges::find(kExtensions, file.extension()) != kExtensions.end();
    if (decides && entry->is_regular_file(ignored)) files.push_back(file);
  }
  std::ranges::sort(files);
  Fingerprint fingerprint;
  std::vector<char> buffer(1 << 20);
  for (const fs::path& name : files) {
    fingerprint.add(name.lexically_relative(folder).string());
    try {
      const phasor::internal::PlainFile file(name);
      while (const size_t count = file.read(buffer)) fingerprint.add({buffer.data(), count});
    } catch (const phasor::ModelError&) {
      // The model was loaded without it.
    }
  }
  return fingerprint.text();
}

VectorFormat::Kind VectorFormat::kind_of(const fs::path& path) {
  if (path.extension() == ".npy") return Kind::kNpy;
  if (path.extension() == ".safetensors") return Kind::kSafetensors;
  if (path.extension() == ".jsonl") return Kind::kJsonLines;
  throw UsageError(
      fmt::format("-o: {} ends in none of .npy, .jsonl and .safetensors; these are the formats "
                  "that infer embed writes",
                  path.string()));
}

std::string VectorFormat::header(int64_t lines) const {
  if (kind == Kind::kNpy) return npy_header(SavedTensor::Kind::kFloat32, std::array{lines, width});
  return kind == Kind::kSafetensors ? safetensors_header(*this, lines) : "";
}

std::string VectorFormat::rows(std::span<const float> values, int64_t first_line) const {
  if (kind != Kind::kJsonLines) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  std::string text;
  for (int64_t line = first_line; !values.empty(); ++line, values = values.subspan(width)) {
    text += fmt::format("{{\"line\":{},\"embedding\":[{}]}}\n", line,
                        fmt::join(values.first(width), ","));
  }
  return text;
}

PartialFile::PartialFile(const fs::path& path, std::map<std::string, std::string> made_with,
                         bool resume)
    : path_(path),
      partial_(path.string() + ".partial"),
      record_(path.string() + ".partial.json"),
      made_with_(std::move(made_with)) {
  refuse_to_replace("-o", path);
  std::error_code ignored;
  const fs::path folder = path.parent_path();
  if (!folder.empty() && fs::status(folder, ignored).type() == fs::file_type::not_found) {
    throw phasor::InvalidArgument(fmt::format("-o: cannot write {}: there is no folder {}; make it",
                                              path.string(), folder.string()));
  }
  try {
    open_partial();
    if (resume && fs::exists(record_, ignored)) {
      restore();
    } else if (unlink(record_.c_str()) != 0 && errno != ENOENT) {
      fail(record_);  // it must never speak of other data
    }
  } catch (...) {
    if (descriptor_ >= 0) close(descriptor_);
    throw;
  }
}

PartialFile::~PartialFile() {
  if (descriptor_ < 0) return;
  if (state_.lines == 0) {
    unlink(partial_.c_str());
    unlink(record_.c_str());
  }
  close(descriptor_);
}

// In a folder that others can write into, this name may lead to any file, or wait for a reader.
// Files of the folder's owner, who can replace all of them anyway, are accepted, too.
void PartialFile::open_partial() {
  const auto not_ours = [&](const char* what) {
    throw phasor::InvalidArgument(fmt::format(
        "-o: cannot write {}: {}; remove it or choose another name", partial_.string(), what));
  };
  descriptor_ =
      open(partial_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
  std::error_code ignored;
  if (descriptor_ < 0 && errno == ELOOP && fs::is_symlink(partial_, ignored)) {
    not_ours("it is a symbolic link");
  }
  if (descriptor_ < 0) fail(partial_);
  using Status = struct stat;
  Status opened{}, named{}, folder{};
  if (fstat(descriptor_, &opened) != 0) fail(partial_);
  if (!S_ISREG(opened.st_mode)) not_ours("it is not a plain file");
  const bool locked = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  // Another run may have given the file its name, or removed it, before it was locked here.
  const bool there = lstat(partial_.c_str(), &named) == 0 && fstat(descriptor_, &opened) == 0;
  if (!locked || !there || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
    throw phasor::InvalidArgument(
        fmt::format("{} is being written by another run; wait for it or choose another name",
                    partial_.string()));
  }
  if (opened.st_nlink > 1) not_ours("the same file has another name, too");
  const fs::path parent = partial_.has_parent_path() ? partial_.parent_path() : ".";
  if (stat(parent.c_str(), &folder) != 0) fail(parent);
  if (opened.st_uid != geteuid() && opened.st_uid != folder.st_uid) {
    not_ours("it belongs to another user");
  }
}

void PartialFile::fail(const fs::path& file) const {
  const int reason = errno;
  throw phasor::InvalidArgument(fmt::format("-o: cannot write {}: {}{}", file.string(),
                                            std::strerror(reason), how_to_resume()));
}

void PartialFile::refuse(const std::string& why) const {
  throw phasor::InvalidArgument(
      fmt::format("--resume: {}: {}; leave --resume out to begin again", record_.string(), why));
}

void PartialFile::restore() {
  struct stat partial {};
  if (fstat(descriptor_, &partial) != 0) fail(partial_);
  try {
    constexpr int64_t kMostBytes = 1 << 20;
    const json record = json::parse(
        as_input("--resume: ", [&] { return phasor::internal::read_file(record_, kMostBytes); }));
    const auto before = record.at("made_with").get<std::map<std::string, std::string>>();
    for (const auto& [what, now] : made_with_) {
      const auto found = before.find(what);
      const std::string then = found == before.end() ? "?" : found->second;
      if (then != now) refuse(fmt::format("it was made with {} {}, not {}", what, then, now));
    }
    const auto count = [&](const char* what) {
      const json& number = record.at(what);
      const auto most = static_cast<uint64_t>(partial.st_size);
      if (!number.is_number_unsigned() || number.get<uint64_t>() > most) {
        refuse(fmt::format("its \"{}\" is {}; {} has {} bytes", what,
                           number.is_number() ? number.dump() : number.type_name(),
                           partial_.string(), most));
      }
      return number.get<int64_t>();
    };
    const PartialState state{count("lines"), count("bytes"), record.at("input"), record.at("rows")};
    if (state.lines > 0) state_ = state;
  } catch (const json::exception&) {
    refuse("it is damaged");
  }
}

bool PartialFile::begin(const VectorFormat& format, const std::function<bool()>& stop) {
  if (state_.lines > 0 && !check_rows(format, stop)) return false;
  if (ftruncate(descriptor_, state_.bytes) != 0) fail(partial_);
  if (lseek(descriptor_, state_.bytes, SEEK_SET) < 0) fail(partial_);
  if (state_.lines > 0) return true;
  const std::string header = format.header(0);
  write(header);
  PartialState state = state_;
  state.bytes = std::ssize(header);
  write_state(state);
  state_ = std::move(state);
  return true;
}

// The header is not read: commit() writes it anew, maybe not to its end.
bool PartialFile::check_rows(const VectorFormat& format, const std::function<bool()>& stop) {
  constexpr int64_t kBlock = 1 << 20;
  std::string block;
  int64_t at = std::ssize(format.header(0)), ends = 0;
  const int64_t bytes = state_.bytes - at, row = 4 * format.width;
  while (at < state_.bytes) {
    if (stop()) return false;
    block.resize(static_cast<size_t>(std::min(kBlock, state_.bytes - at)));
    const ssize_t count = pread(descriptor_, block.data(), block.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw phasor::InvalidArgument(fmt::format("--resume: {} cannot be read: {}",
                                                partial_.string(),
                                                count < 0 ? std::strerror(errno) : "it ends"));
    }
    block.resize(static_cast<size_t>(count));
    rows_.extend(block);
    ends += std::ranges::count(block, '\n');
    at += count;
  }
  const bool text = format.kind == VectorFormat::Kind::kJsonLines;
  const bool fits = text ? ends == state_.lines && block.ends_with('\n')
                         : bytes >= 0 && bytes % row == 0 && bytes / row == state_.lines;
  if (!fits) {
    refuse(fmt::format("the {} bytes of {} are not {} vectors of {} numbers", state_.bytes,
                       partial_.string(), state_.lines, format.width));
  }
  if (rows_.text() != state_.rows) refuse(fmt::format("{} was changed since", partial_.string()));
  return true;
}

void PartialFile::write(std::string_view bytes) {
  if (!write_all(descriptor_, std::as_bytes(std::span(bytes)))) fail(partial_);
}

void PartialFile::append(std::string_view rows, PartialState state) {
  write(rows);
  rows_.extend(rows);
  state.bytes = state_.bytes + std::ssize(rows);
  state.rows = rows_.text();
  write_state(state);
  state_ = std::move(state);
}

// A new record takes the place of the old one whole, so that there always is one. It need not reach
// the disk before the rows do: --resume holds one against the other.
void PartialFile::write_state(const PartialState& state) const {
  const json record = {{"made_with", made_with_},
                       {"lines", state.lines},
                       {"bytes", state.bytes},
                       {"input", state.input},
                       {"rows", state.rows}};
  const std::string text = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  try {
    TemporaryFile file("-o", record_, {.name = record_.string() + ".tmp", .sync = false});
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  } catch (const phasor::InvalidArgument& error) {
    throw phasor::InvalidArgument(error.what() + how_to_resume());
  }
}

void PartialFile::commit(std::string_view header) {
  if (lseek(descriptor_, 0, SEEK_SET) < 0) fail(partial_);
  write(header);
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail(partial_);
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail(path_);
  close(std::exchange(descriptor_, -1));
  unlink(record_.c_str());
}

}  // namespace infer
