// Rows of results, taken apart and joined.
#include "infer/columns.h"

#include "tests/support/test.h"

namespace infer {
namespace {

using phasor::ResultArray;

/// Of four texts, of which the first and the last have no token.
phasor::Vectors some_vectors() {
  phasor::Vectors all;
  all.width = 2;
  all.dense = {1, 2, 3, 4, 5, 6, 7, 8};
  all.sparse = {9, {0, 2, 2, 3, 3}, {1, 8, 4}, {1, 2, 3}};
  all.tokens = {2, {0, 0, 1, 3, 3}, {1, 2, 3, 4, 5, 6}, {7, 8, 9}, {{0, 1}, {0, 2}, {2, 5}}};
  all.reports = {{0, 1, 2, 0}, {0, 0, 0, 1}, {5, 0, 0, 0}};
  return all;
}

void expect_same(const std::vector<ResultArray>& got, const std::vector<ResultArray>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, want[i].name);
    EXPECT_EQ(got[i].columns, want[i].columns) << want[i].name;
    EXPECT_EQ(got[i].rows, want[i].rows) << want[i].name;
    EXPECT_TRUE(std::ranges::equal(got[i].offsets, want[i].offsets)) << want[i].name;
    std::visit(
        [&](auto values) {
          EXPECT_TRUE(std::ranges::equal(std::get<decltype(values)>(got[i].values), values))
              << want[i].name;
        },
        want[i].values);
  }
}

TEST(ColumnsTest, WhatIsTakenApartAndJoinedIsTheWhole) {
  const phasor::Vectors whole = some_vectors();
  for (int64_t cut = 0; cut <= 4; ++cut) {
    Columns columns;
    columns.add(whole.arrays(), 0, cut);
    columns.add(whole.arrays(), cut, 4 - cut);
    expect_same(columns.arrays(), whole.arrays());
  }
}

TEST(ColumnsTest, SpansThatOnlyTextsWithoutTokensListAreLeftOut) {
  phasor::Vectors first;
  first.tokens.width = 2;
  first.tokens.offsets = {0, 0};
  first.reports = {{0}, {0}, {0}};
  phasor::Vectors others = some_vectors();
  others.tokens.spans.clear();
  Columns columns;
  columns.add(first.arrays(), 0, 1);
  columns.add(others.arrays(), 0, 4);
  for (const ResultArray& array : columns.arrays()) EXPECT_NE(array.name, "token_spans");
}

}  // namespace
}  // namespace infer
