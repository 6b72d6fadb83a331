// A hash of texts whose collisions nobody can prepare.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace phasor::internal {

/// SipHash-1-3 (Aumasson and Bernstein 2012) with a key that each process draws at random: whoever
/// writes a file's pieces cannot choose them so that they share a bucket.
struct SeededHash {
  size_t operator()(std::string_view text) const {
    static const Key key;
    uint64_t v0 = key.first ^ 0x736f6d6570736575, v1 = key.second ^ 0x646f72616e646f6d;
    uint64_t v2 = key.first ^ 0x6c7967656e657261, v3 = key.second ^ 0x7465646279746573;
    const auto round = [&] {
      v0 += v1, v2 += v3, v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32) + v3, v2 += v1, v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0, v2 = std::rotl(v2, 32);
    };
    const auto add = [&](uint64_t word) { v3 ^= word, round(), v0 ^= word; };
    const uint64_t size = text.size();
    uint64_t word = 0;
    for (; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
      std::memcpy(&word, text.data(), sizeof(word));
      add(word);
    }
    word = 0;
    if (!text.empty()) std::memcpy(&word, text.data(), text.size());
    add(word | size << 56);
    v2 ^= 0xff, round(), round(), round();
    return v0 ^ v1 ^ v2 ^ v3;
  }

 private:
  struct Key {
    uint64_t first = random(), second = random();
    static uint64_t random() {
      std::random_device device;
      return uint64_t{device()} << 32 | device();
    }
  };
};

}  // namespace phasor::internal
