// The parts of results, by their names.
#pragma once

#include "tests/support/test.h"

namespace phasor {

/// The part of this name; fails the test where there is none.
inline Part part_of(const std::vector<Part>& parts, std::string_view name) {
  const auto found = std::ranges::find(parts, name, &Part::name);
  if (found != parts.end()) return *found;
  ADD_FAILURE() << "there is no part " << name;
  return {};
}

inline bool have_same_values(const Part& a, const Part& b) {
  return std::visit(
      []<typename A, typename B>(std::span<A> one, std::span<B> other) {
        if constexpr (std::is_same_v<A, B>) return std::ranges::equal(one, other);
        return false;
      },
      a.values, b.values);
}

/// Each of `parts` is also one of `all`.
inline void expect_parts_in(const std::vector<Part>& all, const std::vector<Part>& parts) {
  for (const Part& part : parts)
    EXPECT_TRUE(have_same_values(part, part_of(all, part.name))) << part.name;
}

}  // namespace phasor
