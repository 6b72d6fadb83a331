// Hashes that tell files and texts apart.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace infer {

/// A hash that grows with what it is given. Tells inputs apart; no protection against malice.
class Fingerprint {
 public:
  /// Adds a piece: "ab" and "c" are not "a" and "bc".
  void add(std::string_view piece);
  /// Adds the next part of one long piece: where parts end makes no difference.
  void extend(std::string_view part);
  std::string text() const;  // 16 hexadecimal digits

 private:
  void mix(uint64_t word);

  uint64_t hash_ = 0x9E3779B97F4A7C15u;
  uint64_t word_ = 0;   // bytes that are not yet eight
  uint64_t count_ = 0;  // of all bytes
};

/// Of the files that decide what a model computes.
std::string model_fingerprint(const std::filesystem::path& folder);

}  // namespace infer
