// Hashes of what is read line by line, written part by part, or lies in a model's folder.
#include "infer/commands/embed/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <vector>

#include "infer/files/plain_file.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 4096;  // bytes of the parts that are added at once

bool decides(const fs::path& file) {
  constexpr std::array kExtensions = {".json", ".safetensors", ".model", ".spm", ".txt"};
  return file.stem() != "golden" &&
         std::find(kExtensions.begin(), kExtensions.end(), file.extension()) != kExtensions.end();
}

void add_file(Fingerprint& fingerprint, const fs::path& name) {
  try {
    PlainFile file(name);
    std::vector<char> buffer(1 << 20);
    for (size_t count = 0; (count = file.read(buffer)) > 0;) {
      fingerprint.add({buffer.data(), count});
    }
  } catch (const phasor::InvalidArgument&) {
    // The model was loaded without it.
  }
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

void Fingerprint::extend(std::string_view part) {
  while (!part.empty()) {
    const std::string_view taken = part.substr(0, kBlock - rest_.size());
    rest_ += taken;
    part.remove_prefix(taken.size());
    if (rest_.size() < kBlock) break;
    add(rest_);
    rest_.clear();
  }
}

std::string Fingerprint::text() const {
  Fingerprint whole = *this;
  if (!rest_.empty()) whole.add(rest_);
  return fmt::format("{:016x}", whole.hash_);
}

// Links to folders are not followed, and what is no plain file, or a link that leads nowhere, is
// none of the model's.
std::string model_fingerprint(const fs::path& folder) {
  fs::directory_iterator{folder};  // throws where the folder itself cannot be listed
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && decides(entry->path())) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  Fingerprint fingerprint;
  for (const fs::path& file : files) {
    fingerprint.add(file.lexically_relative(folder).string());
    add_file(fingerprint, file);
  }
  return fingerprint.text();
}

}  // namespace infer
