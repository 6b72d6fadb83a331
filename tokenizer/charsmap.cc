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

AlignedText Charsmap::normalize_clusters(const AlignedView& text, size_t most) const {
  constexpr size_t kMostOfCluster = 5;
  AlignedText result = AlignedText::of(text);
  result.reserve(text.text.size());
  const auto replace = [&](std::string_view whole) {
    const Rule rule = shortest(whole);
    if (rule.length == 0) return false;
    // One character for one; those that are more come from the last.
    Source source;
    for (std::string_view to = rule.replacement; !to.empty();) {
      if (!whole.empty()) {
        source = text.source_of(whole);
        whole.remove_prefix(character_size(whole));
      }
      const size_t size = character_size(to);
      result.append(to.substr(0, size), source);
      to.remove_prefix(size);
    }
    return true;
  };
  for (std::string_view rest = text.text; !rest.empty() && result.size() <= most;) {
    std::string_view cluster = rest.substr(0, cluster_size(rest));
    rest.remove_prefix(cluster.size());
    if (cluster.size() <= kMostOfCluster && replace(cluster)) continue;
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, character_size(cluster));
      cluster.remove_prefix(character.size());
      if (!replace(character)) result.append(text.part(character));
    }
  }
  return result;
}

}  // namespace phasor::internal
