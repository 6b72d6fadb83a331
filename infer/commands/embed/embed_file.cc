#include "infer/commands/embed/embed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "files/corpus/save.h"
#include "files/corpus/temporary_file.h"
#include "infer/commands.h"
#include "infer/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

}  // namespace

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

std::string VectorFormat::header(int64_t lines, const std::string& input) const {
  if (kind == Kind::kNpy) return npy_header("<f4", std::array{lines, width});
  if (kind == Kind::kJsonLines) return "";
  MadeWith metadata = made_with;
  metadata["input"] = input;
  const auto json = [&](int64_t rows, int64_t bytes) -> nlohmann::ordered_json {
    return {
        {"__metadata__", metadata},
        {"embeddings", {{"dtype", "F32"}, {"shape", {rows, width}}, {"data_offsets", {0, bytes}}}}};
  };
  constexpr int64_t kLongest = std::numeric_limits<int64_t>::max();  // so that all are as long
  const size_t length = safetensors_header(json(kLongest, kLongest)).size() - sizeof(uint64_t);
  return safetensors_header(json(lines, lines * width * 4), length);
}

int64_t VectorFormat::row_bytes() const {
  constexpr int64_t kBesideNumbers = 64, kNumber = 24;  // as text
  return kind == Kind::kJsonLines ? kBesideNumbers + kNumber * width
                                  : width * int64_t{sizeof(float)};
}

std::string VectorFormat::rows(std::span<const float> values, int64_t first_line) const {
  if (kind != Kind::kJsonLines) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  std::string text;
  for (int64_t line = first_line; !values.empty(); ++line, values = values.subspan(width)) {
    fmt::format_to(std::back_inserter(text), "{{\"line\":{},\"embedding\":[{}]}}\n", line,
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
  refuse_to_replace_record(path);
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
  const std::optional<VectorRecord> record = VectorRecord::read("--resume: ", record_);
  if (!record) refuse("it is damaged");
  for (const Difference& difference : differences(record->made_with, format_.made_with)) {
    refuse("it was made with " + text_of(difference, record->made_with, format_.made_with));
  }
  const int64_t lines = record->lines, bytes = record->bytes;
  for (const auto& [what, number] : {std::pair("lines", lines), std::pair("bytes", bytes)}) {
    if (number <= partial.st_size) continue;
    refuse(fmt::format("its \"{}\" is {}; {} has {} bytes", what, number, partial_.string(),
                       partial.st_size));
  }
  const int64_t rows = bytes - std::ssize(format_.header(0)), row = 4 * format_.width;
  const bool text = format_.kind == VectorFormat::Kind::kJsonLines;
  if (rows < 0 || (!text && (rows % row != 0 || rows / row != lines))) {
    refuse(fmt::format("the {} bytes of {} are not {} vectors of {} numbers", bytes,
                       partial_.string(), lines, format_.width));
  }
  if (text && lines_in(bytes) != lines) {
    refuse(fmt::format("the {} bytes of {} are not {} lines", bytes, partial_.string(), lines));
  }
  state_ = {lines, record->input};
  bytes_ = bytes;
}

/// The lines in the first `bytes` of the file; -1 where the last of them has no end, or one is
/// longer than a line can be: a file with holes may say that it has any number of bytes.
int64_t PartialFile::lines_in(int64_t bytes) const {
  const int64_t longest = format_.row_bytes();
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
  write_record(state);
  state_ = std::move(state);
}

void PartialFile::write_record(const LinesDone& state, const std::string& xxh64) const {
  const VectorRecord record = {.made_with = format_.made_with,
                               .lines = state.lines,
                               .bytes = bytes_,
                               .input = state.input,
                               .xxh64 = xxh64};
  try {
    record.write("-o", record_);
  } catch (const phasor::InvalidArgument& error) {
    throw phasor::InvalidArgument(error.what() + how_to_resume());
  }
}

// The record beside the old file goes before that file does, so that it never speaks of another.
// Where only the last step is left, complete_record() takes it.
void PartialFile::commit() {
  if (state_.lines == 0) state_.input = Fingerprint().text();
  const std::string header = format_.header(state_.lines, state_.input);
  if (lseek(descriptor_, 0, SEEK_SET) < 0) fail(partial_);
  write(header);
  bytes_ = std::max(bytes_, std::ssize(header));
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail(partial_);
  const bool beside = format_.kind != VectorFormat::Kind::kSafetensors;
  if (beside) write_record(state_, as_input("-o: ", [&] { return fingerprint_of(partial_); }));
  const fs::path record = record_beside(path_);
  if (unlink(record.c_str()) != 0 && errno != ENOENT) fail(record);
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail(path_);
  close(std::exchange(descriptor_, -1));
  if (!sync_name(path_)) fail(path_);
  if (!beside) {
    unlink(record_.c_str());
  } else if (rename(record_.c_str(), record.c_str()) != 0 || !sync_name(record)) {
    fail(record);
  }
}

VectorRecord complete_record(const fs::path& path, const MadeWith& made_with) {
  const auto refuse = [&](const std::string& why) {
    throw phasor::InvalidArgument(
        fmt::format("--resume: {} is complete, and {}; leave --resume out to make it anew",
                    path.string(), why));
  };
  const fs::path last = path.string() + ".partial.json", beside = record_beside(path);
  std::error_code ignored;
  const std::optional<VectorRecord> left =
      fs::exists(last, ignored) ? VectorRecord::read("--resume: ", last) : std::nullopt;
  const auto is_whole = [&](const VectorRecord& record) {
    return record.bytes == static_cast<int64_t>(fs::file_size(path)) &&
           (record.xxh64.empty() ||
            record.xxh64 == as_input("--resume: ", [&] { return fingerprint_of(path); }));
  };
  if (left && !left->xxh64.empty() && is_whole(*left)) {
    if (rename(last.c_str(), beside.c_str()) != 0 || !sync_name(beside)) {
      throw phasor::InvalidArgument(
          fmt::format("-o: cannot write {}: {}", beside.string(), std::strerror(errno)));
    }
  } else if (left && path.extension() == ".safetensors") {
    unlink(last.c_str());
  }
  const std::optional<VectorRecord> record = VectorRecord::find(path);
  if (!record) refuse("no record says what made it");
  if (!is_whole(*record)) refuse("it has changed since it was made");
  for (const Difference& difference : differences(record->made_with, made_with)) {
    refuse("was made with " + text_of(difference, record->made_with, made_with));
  }
  return *record;
}

}  // namespace infer
