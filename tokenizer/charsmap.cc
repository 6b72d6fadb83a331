#include "tokenizer/charsmap.h"

#include <cstring>

#include "files/utf8.h"
#include "tokenizer/unicode.h"

namespace phasor::internal {

DoubleArray::DoubleArray(std::string_view bytes) : units_(bytes.size() / sizeof(uint32_t)) {
  std::memcpy(units_.data(), bytes.data(), units_.size() * sizeof(uint32_t));
}

Charsmap::Charsmap(std::string_view bytes) {
  if (bytes.empty()) return;
  uint32_t trie_size = 0;
  std::memcpy(&trie_size, bytes.data(), sizeof(trie_size));
  trie_ = DoubleArray(bytes.substr(sizeof(trie_size), trie_size));
  replacements_ = bytes.substr(sizeof(trie_size) + trie_size);
}

Charsmap::Rule Charsmap::find(std::string_view text, bool longest) const {
  Rule rule;
  if (trie_.size() == 0) return rule;
  size_t node = 0, value = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node = trie_.base(node) ^ byte;
    if (trie_.label(node) != byte) break;
    if (!trie_.ends_rule(node)) continue;
    value = trie_.value(node);
    rule.length = i + 1;
    if (!longest) break;
  }
  if (rule.length > 0) rule.replacement = replacements_.data() + value;  // up to NUL
  return rule;
}

std::string Charsmap::normalize_clusters(std::string_view text, size_t most) const {
  constexpr size_t kMostOfCluster = 5;
  std::string result;
  result.reserve(text.size());
  const auto replace = [&](std::string_view whole) {
    const Rule rule = shortest(whole);
    if (rule.length > 0) result += rule.replacement;
    return rule.length > 0;
  };
  while (!text.empty() && result.size() <= most) {
    std::string_view cluster = text.substr(0, cluster_size(text));
    text.remove_prefix(cluster.size());
    if (cluster.size() <= kMostOfCluster && replace(cluster)) continue;
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, character_size(cluster));
      cluster.remove_prefix(character.size());
      if (!replace(character)) result += character;
    }
  }
  return result;
}

}  // namespace phasor::internal
