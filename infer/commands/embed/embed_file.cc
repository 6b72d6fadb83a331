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
#include <map>
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
std::string header_of(const VectorFormat& format, int64_t lines) {
  const auto header = [&](int64_t rows, int64_t bytes) -> nlohmann::ordered_json {
    return {{"__metadata__", format.made_with},
            {"embeddings",
             {{"dtype", "F32"}, {"shape", {rows, format.width}}, {"data_offsets", {0, bytes}}}}};
  };
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();
  const size_t length = safetensors_header(header(kLongest, kLongest)).size() - sizeof(uint64_t);
  return safetensors_header(header(lines, lines * format.width * 4), length);
}

}  // namespace

// Links to folders are not followed, and what is no plain file, or a link that leads nowhere or out
// of the folder, is none of the model's.
std::string model_fingerprint(const phasor::internal::ModelPath& folder) {
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
  std::map<std::pair<uint64_t, uint64_t>, std::string> contents;  // links may lead to one file
  for (const fs::path& file : files) {
    try {
      phasor::internal::refuse_link_out(folder, file);
      std::string& content = contents[phasor::internal::file_id(file)];
      if (content.empty()) content = fingerprint_of(file);
      fingerprint.add_piece(file.lexically_relative(folder).string());
      fingerprint.add_piece(content);
    } catch (const phasor::ModelError&) {
      // The model was loaded without it.
    }
  }
  return fingerprint.text();
}

VectorFormat::Kind VectorFormat::kind_of(const fs::path& path) {
  const std::string extension = path.extension().string();
  for (size_t kind = 0; kind < kExtensions.size(); ++kind) {
    if (extension == fmt::format(".{}", kExtensions[kind])) return static_cast<Kind>(kind);
  }
  throw UsageError(
      fmt::format("-o: {} ends in none of .npy, .jsonl and .safetensors; these are the formats "
                  "that infer embed writes",
                  path.string()));
}

std::string VectorFormat::header(int64_t lines) const {
  if (kind == Kind::kNpy) return npy_header("<f4", std::array{lines, width});
  return kind == Kind::kSafetensors ? header_of(*this, lines) : "";
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

PartialFile::PartialFile(const fs::path& path, VectorFormat format, bool resume)
    : path_(path),
      partial_(path.string() + ".partial"),
      record_(path.string() + ".partial.json"),
      format_(std::move(format)) {
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
    if (ftruncate(descriptor_, bytes_) != 0 || lseek(descriptor_, bytes_, SEEK_SET) < 0) {
      fail(partial_);
    }
  } catch (...) {
    if (descriptor_ >= 0) close(descriptor_);
    throw;
  }
}

PartialFile::~PartialFile() {
  if (descriptor_ < 0) return;
  // A record may have got its name and failed after that.
  if (state_.lines == 0 && access(record_.c_str(), F_OK) != 0) unlink(partial_.c_str());
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

// Bytes after those of the record may be half of a window.
void PartialFile::restore() {
  struct stat partial {};
  if (fstat(descriptor_, &partial) != 0) fail(partial_);
  try {
    constexpr int64_t kMostBytes = 1 << 20;
    const std::string written =
        as_input("--resume: ", [&] { return phasor::internal::read_file(record_, kMostBytes); });
    const json record = phasor::internal::parse_json_object(written, record_.string()).take();
    const auto before = record.at("made_with").get<std::map<std::string, std::string>>();
    for (const auto& [what, now] : format_.made_with) {
      const auto found = before.find(what);
      const std::string then = found == before.end() ? "?" : found->second;
      if (then != now) refuse(fmt::format("it was made with {} {}, not {}", what, then, now));
    }
    const auto count = [&](const char* what) {
      const json& number = record.at(what);
      const auto most = static_cast<uint64_t>(partial.st_size);
      if (number.is_number_unsigned() && number.get<uint64_t>() <= most) {
        return number.get<int64_t>();
      }
      refuse(fmt::format("its \"{}\" is {}; {} has {} bytes", what,
                         phasor::internal::value_text(number), partial_.string(), most));
    };
    const int64_t lines = count("lines"), bytes = count("bytes");
    const int64_t rows = bytes - std::ssize(format_.header(0)), row = 4 * format_.width;
    const bool text = format_.kind == VectorFormat::Kind::kJsonLines;
    if (rows < 0 || (!text && (rows % row != 0 || rows / row != lines))) {
      refuse(fmt::format("the {} bytes of {} are not {} vectors of {} numbers", bytes,
                         partial_.string(), lines, format_.width));
    }
    if (text && lines_in(bytes) != lines) {
      refuse(fmt::format("the {} bytes of {} are not {} lines", bytes, partial_.string(), lines));
    }
    state_ = {lines, record.at("input")};
    bytes_ = bytes;
  } catch (const json::exception&) {
    refuse("it is damaged");
  } catch (const phasor::ModelError&) {
    refuse("it is damaged");
  }
}

/// The lines in the first `bytes` of the file; -1 where the last of them has no end, or one is
/// longer than a line can be: a file with holes may say that it has any number of bytes.
int64_t PartialFile::lines_in(int64_t bytes) const {
  constexpr int64_t kMostOfRow = 64, kMostOfNumber = 24;
  const int64_t longest = kMostOfRow + kMostOfNumber * format_.width;
  std::vector<char> piece(size_t{1} << 20);
  int64_t lines = 0;
  char last = '\n';
  for (int64_t done = 0; done < bytes;) {
    const auto size = std::min(std::ssize(piece), bytes - done);
    const ssize_t got = pread(descriptor_, piece.data(), static_cast<size_t>(size), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(partial_);
    if (got == 0) refuse(fmt::format("{} has become shorter", partial_.string()));
    lines += std::count(piece.begin(), piece.begin() + got, '\n');
    last = piece[static_cast<size_t>(got) - 1];
    done += got;
    if (done / longest > lines) return -1;
  }
  return last == '\n' ? lines : -1;
}

void PartialFile::write(std::string_view bytes) const {
  if (!write_all(descriptor_, std::as_bytes(std::span(bytes)))) fail(partial_);
}

// The record never says more than is on the disk. It takes the place of the old one whole, so that
// there always is one.
void PartialFile::append(std::span<const float> values, LinesDone state) {
  const std::string rows =
      (bytes_ == 0 ? format_.header(0) : "") + format_.rows(values, state_.lines + 1);
  write(rows);
  if (fdatasync(descriptor_) != 0 && errno != EINVAL) fail(partial_);
  bytes_ += std::ssize(rows);
  const json record = {{"made_with", format_.made_with},
                       {"lines", state.lines},
                       {"bytes", bytes_},
                       {"input", state.input}};
  const std::string text = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  try {
    TemporaryFile file("-o", record_, {.name = record_.string() + ".tmp"});
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  } catch (const phasor::InvalidArgument& error) {
    throw phasor::InvalidArgument(error.what() + how_to_resume());
  }
  state_ = std::move(state);
}

void PartialFile::commit() {
  if (lseek(descriptor_, 0, SEEK_SET) < 0) fail(partial_);
  write(format_.header(state_.lines));
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail(partial_);
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail(path_);
  close(std::exchange(descriptor_, -1));
  if (!sync_name(path_)) fail(path_);
  unlink(record_.c_str());
}

}  // namespace infer
