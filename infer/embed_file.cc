// A file that infer embed fills for a long time: partial data, the record of how far it has come,
// and fingerprints that tell whether both still belong to what a run is about.
#include "infer/embed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

bool decides(const fs::path& file) {
  constexpr std::array kExtensions = {".json", ".safetensors", ".model", ".spm", ".txt"};
  return file.stem() != "golden" &&
         std::find(kExtensions.begin(), kExtensions.end(), file.extension()) != kExtensions.end();
}

void add_file(Fingerprint& fingerprint, const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  do {
    stream.read(buffer.data(), std::ssize(buffer));
    fingerprint.add({buffer.data(), static_cast<size_t>(stream.gcount())});
  } while (stream);
}

}  // namespace

// Eight bytes at a time: a multiplication and a shift each spread a change over the whole word.
void Fingerprint::add(std::string_view bytes) {
  const auto mix = [&](uint64_t word) {
    hash_ = (hash_ ^ word) * 0xFF51AFD7ED558CCDu;
    hash_ ^= hash_ >> 32;
  };
  mix(bytes.size());
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
  }
  uint64_t rest = 0;
  std::memcpy(&rest, bytes.data(), bytes.size());
  mix(rest);
}

std::string Fingerprint::text() const { return fmt::format("{:016x}", hash_); }

std::string model_fingerprint(const fs::path& folder) {
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    if (entry->is_regular_file() && decides(entry->path())) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  Fingerprint fingerprint;
  for (const fs::path& file : files) {
    fingerprint.add(fs::relative(file, folder).string());
    add_file(fingerprint, file);
  }
  return fingerprint.text();
}

PartialFile::PartialFile(const fs::path& path, std::map<std::string, std::string> made_with,
                         bool resume)
    : path_(path),
      partial_(path.string() + ".partial"),
      record_(path.string() + ".partial.json"),
      made_with_(std::move(made_with)) {
  if (fs::is_directory(path)) {
    errno = EISDIR;
    fail(path_);
  }
  if (const fs::path folder = path.parent_path(); !folder.empty() && !fs::exists(folder)) {
    throw phasor::InvalidArgument(fmt::format("-o: cannot write {}: there is no folder {}; make it",
                                              path.string(), folder.string()));
  }
  descriptor_ = open(partial_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(partial_);
  try {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw phasor::InvalidArgument(
          fmt::format("{} is being written by another run; wait for it or choose another name",
                      partial_.string()));
    }
    if (resume && fs::exists(record_)) {
      restore();
    } else {
      fs::remove(record_);  // first: a record must never speak of other data
    }
    if (ftruncate(descriptor_, state_.bytes) != 0) fail(partial_);
    if (lseek(descriptor_, state_.bytes, SEEK_SET) < 0) fail(partial_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

PartialFile::~PartialFile() {
  if (descriptor_ < 0) return;
  if (state_.lines == 0) {
    std::error_code ignored;
    fs::remove(partial_, ignored);
    fs::remove(record_, ignored);
  }
  close(descriptor_);
}

void PartialFile::fail(const fs::path& file) const {
  const int reason = errno;
  throw phasor::InvalidArgument(
      fmt::format("-o: cannot write {}: {}{}", file.string(), std::strerror(reason),
                  state_.lines > 0 ? "; when that is put right, --resume goes on" : ""));
}

void PartialFile::restore() {
  const auto refuse = [&](std::string_view why) {
    throw phasor::InvalidArgument(
        fmt::format("--resume: {}: {}; leave --resume out to begin again", record_.string(), why));
  };
  try {
    const json record = json::parse(std::ifstream(record_));
    const auto before = record.at("made_with").get<std::map<std::string, std::string>>();
    for (const auto& [what, now] : made_with_) {
      const auto found = before.find(what);
      const std::string then = found == before.end() ? "?" : found->second;
      if (then != now) refuse(fmt::format("it was made with {} {}, not {}", what, then, now));
    }
    state_ = {.lines = record.at("lines"),
              .bytes = record.at("bytes"),
              .input = record.at("input"),
              .lines_cut = record.at("lines_cut"),
              .lines_invalid = record.at("lines_invalid")};
  } catch (const json::exception&) {
    refuse("it is damaged");
  }
  const auto size = static_cast<int64_t>(fs::file_size(partial_));
  if (state_.lines < 0 || state_.bytes < 0 || state_.bytes > size) {
    refuse(fmt::format("it speaks of {} bytes, {} has {}", state_.bytes, partial_.string(), size));
  }
}

void PartialFile::append(std::string_view bytes, PartialState state) {
  write(bytes);
  state.bytes = state_.bytes + std::ssize(bytes);
  std::swap(state_, state);
  try {
    write_state();
  } catch (...) {
    std::swap(state_, state);
    throw;
  }
}

void PartialFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      fail(partial_);
    }
  }
}

// A new record takes the place of the old one whole, so that there always is one.
void PartialFile::write_state() const {
  const json record = {{"made_with", made_with_},       {"lines", state_.lines},
                       {"bytes", state_.bytes},         {"input", state_.input},
                       {"lines_cut", state_.lines_cut}, {"lines_invalid", state_.lines_invalid}};
  const fs::path fresh = record_.string() + ".tmp";
  errno = 0;
  std::ofstream stream(fresh, std::ios::binary);
  stream << record.dump(1, ' ', false, json::error_handler_t::replace) << "\n";
  stream.close();
  if (!stream || rename(fresh.c_str(), record_.c_str()) != 0) {
    const int reason = errno;
    unlink(fresh.c_str());
    errno = reason;
    fail(record_);
  }
}

void PartialFile::commit(std::string_view header) {
  if (lseek(descriptor_, 0, SEEK_SET) < 0) fail(partial_);
  write(header);
  // Some file systems say only here that there was no room.
  if (fsync(descriptor_) != 0 && errno != EINVAL) fail(partial_);
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail(path_);
  close(std::exchange(descriptor_, -1));
  std::error_code ignored;
  fs::remove(record_, ignored);
}

}  // namespace infer
