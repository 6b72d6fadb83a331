#include "files/corpus/fingerprint.h"

#include <fmt/format.h>

#include <new>
#include <vector>

#include "files/files.h"

namespace infer {

Fingerprint::Fingerprint() : state_(XXH64_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH64_reset(state_.get(), 0);
}

void Fingerprint::add(std::span<const std::byte> bytes) {
  XXH64_update(state_.get(), bytes.data(), bytes.size());
}

void Fingerprint::add_piece(std::string_view piece) {
  const uint64_t size = piece.size();
  add(std::as_bytes(std::span(&size, 1)));
  add(std::as_bytes(std::span(piece)));
}

std::string Fingerprint::text() const { return fmt::format("{:016x}", XXH64_digest(state_.get())); }

std::string fingerprint_of(const std::filesystem::path& file) {
  const phasor::internal::PlainFile opened(file);
  Fingerprint fingerprint;
  std::vector<char> buffer(1 << 20);
  for (int64_t rest = opened.size(); rest > 0;) {  // files of /proc have no size, and no end
    const size_t count = opened.read(buffer);
    if (count == 0) break;
    fingerprint.add(std::as_bytes(std::span(buffer).first(count)));
    rest -= static_cast<int64_t>(count);
  }
  return fingerprint.text();
}

}  // namespace infer
