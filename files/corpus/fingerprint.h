// XXH64 of what a file or a stream holds.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace infer {

/// A running XXH64. It detects accidental changes, not deliberate ones.
class Fingerprint {
 public:
  Fingerprint();

  /// The same as `xxhsum` prints for a file of all the bytes.
  void add(std::span<const std::byte> bytes);
  /// A piece with its length: "ab" and "c" are not "a" and "bc".
  void add_piece(std::string_view piece);

  std::string text() const;  // 16 hexadecimal digits

 private:
  struct Free {
    void operator()(XXH64_state_t* state) const { XXH64_freeState(state); }
  };
  std::unique_ptr<XXH64_state_t, Free> state_;
};

/// Of a whole file; throws ModelError where it cannot be read.
std::string fingerprint_of(const std::filesystem::path& file);

}  // namespace infer
