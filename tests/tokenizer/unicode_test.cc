// Unicode's normal forms.
#include "tokenizer/unicode.h"

#include "tests/support/cpu_seconds.h"
#include "tests/support/test.h"

namespace phasor::internal {
namespace {

std::string normal(const AlignedView& text, NormalForm form) {
  return to_normal_form(text, form).text();
}

TEST(NormalFormTest, MarksStandInCanonicalOrder) {
  const std::string text = "a\u0301\u0316";  // an acute, then a grave below
  EXPECT_EQ(normal(text, NormalForm::kNfd), "a\u0316\u0301");
  EXPECT_EQ(normal(text, NormalForm::kNfc), "\u00E1\u0316");
  EXPECT_EQ(normal("\u1E69", NormalForm::kNfd), "s\u0323\u0307");
  EXPECT_EQ(normal("s\u0307\u0323", NormalForm::kNfc), "\u1E69");
  EXPECT_EQ(normal("\u0301\u0316", NormalForm::kNfc), "\u0316\u0301");  // of nothing
  EXPECT_EQ(normal("e\u0301e\u0301", NormalForm::kNfc), "\u00E9\u00E9");
  EXPECT_EQ(normal("", NormalForm::kNfc), "");
}

TEST(NormalFormTest, HangulAndCompatibilityForms) {
  EXPECT_EQ(normal("\uD55C", NormalForm::kNfd), "\u1112\u1161\u11AB");
  EXPECT_EQ(normal("\u1112\u1161\u11AB", NormalForm::kNfc), "\uD55C");
  const std::string long_ones = repeat("\uFDFA", 1000);  // of 18 characters each
  for (const NormalForm form : {NormalForm::kNfkc, NormalForm::kNfkd}) {
    EXPECT_GT(to_normal_form(long_ones, form, 100).size(), 100u);
    EXPECT_LT(to_normal_form(long_ones, form, 100).size(), 300u);
    EXPECT_EQ(to_normal_form(long_ones, form).size(), 33'000u);
  }
  EXPECT_EQ(normal("\uFB01", NormalForm::kNfc), "\uFB01");
  EXPECT_EQ(normal("\uFB01", NormalForm::kNfkc), "fi");
  EXPECT_EQ(normal("\uFF76\uFF9E", NormalForm::kNfkd), "\u30AB\u3099");
  EXPECT_EQ(normal("\uFF76\uFF9E", NormalForm::kNfkc), "\u30AC");
}

TEST(NormalFormTest, ManyMarksTakeAShortTime) {
  for (const char* const pair : {"\u0301\u0316", "\u0F73\u0F74", "\u0301\uFF9E"}) {
    const std::string text = "a" + repeat(pair, 100000);
    SCOPED_TRACE(pair);
    std::string once;
    expect_cpu_seconds_below(2, [&] { once = normal(text, NormalForm::kNfkc); });
    EXPECT_EQ(normal(once, NormalForm::kNfkc), once);
  }
}

}  // namespace
}  // namespace phasor::internal
