#include "infer/commands/embed/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "models/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

bool decides(const fs::path& file) {
  constexpr std::array kExtensions = {".json", ".safetensors", ".model", ".spm", ".txt"};
  return file.stem() != "golden" &&
         std::ranges::find(kExtensions, file.extension()) != kExtensions.end();
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
  while (!part.empty()) {
    const size_t at = count_ % 8, taken = std::min(part.size(), 8 - at);
    std::memcpy(reinterpret_cast<char*>(&word_) + at, part.data(), taken);
    count_ += taken;
    part.remove_prefix(taken);
    if (count_ % 8 == 0) mix(std::exchange(word_, 0));
    for (; count_ % 8 == 0 && part.size() >= 8; part.remove_prefix(8), count_ += 8) {
      uint64_t word;
      std::memcpy(&word, part.data(), 8);
      mix(word);
    }
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
  fs::directory_iterator{folder};  // throws where the folder itself cannot be listed
  std::vector<fs::path> files;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied);
  for (; entry != fs::recursive_directory_iterator(); ++entry) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && decides(entry->path())) files.push_back(entry->path());
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

}  // namespace infer
