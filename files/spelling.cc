#include "files/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace phasor::internal {
namespace {

/// Levenshtein's.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

constexpr size_t kMostEdits = 2;

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names) {
  size_t least = std::clamp<size_t>((word.size() + 1) / 3, 1, kMostEdits) + 1;
  std::string_view best;
  for (const std::string_view name : names) {
    // Words of such different lengths are no misspellings, however long a stranger makes them.
    if (word.size() > name.size() + kMostEdits || name.size() > word.size() + kMostEdits) continue;
    const size_t distance = edit_distance(word, name);
    if (distance < least) best = name;
    least = std::min(least, distance);
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view name = nearest_name(word, names);
  return name.empty() ? "" : fmt::format("; did you mean {}?", name);
}

}  // namespace phasor::internal
