// The arrays of results, by their names.
#pragma once

#include <fmt/ranges.h>

#include "tests/support/test.h"

namespace phasor {

inline std::vector<VectorKind> all_kinds() {
  return parse_list<VectorKind>(fmt::format("{}", fmt::join(names<VectorKind>().all, ",")));
}

/// The array of this name; fails the test where there is none.
inline ResultArray array_named(const std::vector<ResultArray>& arrays, std::string_view name) {
  const auto found = std::ranges::find(arrays, name, &ResultArray::name);
  if (found != arrays.end()) return *found;
  ADD_FAILURE() << "there is no array " << name;
  return {};
}

inline bool have_same_values(const ResultArray& a, const ResultArray& b) {
  return std::visit(
      []<typename A, typename B>(std::span<A> one, std::span<B> other) {
        if constexpr (std::is_same_v<A, B>) return std::ranges::equal(one, other);
        return false;
      },
      a.values, b.values);
}

/// Each of `arrays` is also one of `all`.
inline void expect_arrays_in(const std::vector<ResultArray>& all,
                             const std::vector<ResultArray>& arrays) {
  for (const ResultArray& array : arrays)
    EXPECT_TRUE(have_same_values(array, array_named(all, array.name))) << array.name;
}

}  // namespace phasor
