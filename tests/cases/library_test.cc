// What tests/cases must have, so that a surface which forgets an option gives another answer.
#include "tests/support/cases.h"

namespace phasor {
namespace {

/// "embed dense max_tokens", … of the fields that a call uses and text can say.
std::set<std::string> pairs_of(const Case& one) {
  std::set<std::string> all;
  for (const Field& field : fields()) {
    if (field.read == nullptr || (field.uses & one.uses()) == 0) continue;
    all.insert(fmt::format("{} {} {}", one.call, one.kinds(), field.name));
  }
  return all;
}

/// The same of the options without which the answer is another.
std::set<std::string> that_matter(CaseModels& models, const Case& one, const Answer& answer) {
  std::set<std::string> all;
  for (const std::string& pair : pairs_of(one)) {
    const std::string name = pair.substr(pair.rfind(' ') + 1);
    Case without = one;
    if (without.options.erase(name) > 0 && models.answer(without).arrays != answer.arrays)
      all.insert(pair);
  }
  return all;
}

class LibraryCasesTest : public testing::TestWithParam<const char*> {};

TEST_P(LibraryCasesTest, EveryOptionOfEveryCallMattersInOneAndErrorsHaveTheirWords) {
  CaseModels models;
  std::set<std::string> used, matter;
  for (const Case& one : cases_of(GetParam())) {
    const Answer answer = models.answer(one);
    EXPECT_EQ(answer.error.empty(), one.error.empty()) << one.to_json() << answer.error;
    for (const std::string& word : one.error)
      EXPECT_NE(answer.error.find(word), std::string::npos) << one.to_json() << answer.error;
    if (!one.error.empty()) continue;
    matter.merge(that_matter(models, one, answer));
    if (std::ranges::count(one.kinds(), ',') == 0) used.merge(pairs_of(one));
  }
  for (const std::string& pair : used) {
    if (pair == "embed dense kinds" || pair.ends_with("batch_tokens"))
      continue;  // they change none
    EXPECT_TRUE(matter.contains(pair)) << pair;
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, LibraryCasesTest,
                         testing::Values("embed", "classify", "label", "rank", "encode"));

}  // namespace
}  // namespace phasor
