// Programs in a locale with a decimal comma, bytes for characters and a lower case of its own for
// I: they print what they print without one.
#include <regex>

#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

class LocaleTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string made = (folder_ / "tr_TR").string();
    const ProgramResult result =
        run_program({"/usr/bin/env", "localedef", "-i", "tr_TR", "-f", "ISO-8859-9", made});
    if (result.exit_code != 0) GTEST_SKIP() << "install the package locales: " << result.err;
  }

  ProgramResult run(const Words& program) const {
    return run_program(Words{"/usr/bin/env", "LOCPATH=" + folder_.path().string(), "LC_ALL=tr_TR",
                             std::string("LD_PRELOAD=") + SET_LOCALE_LIBRARY} +
                       program);
  }

  void expect_same(const Words& program) const {
    const ProgramResult here = run_program(program), there = run(program);
    EXPECT_EQ(there.exit_code, 0) << fmt::format("{}", fmt::join(program, " ")) << there.err;
    EXPECT_EQ(here.out, there.out) << fmt::format("{}", fmt::join(program, " "));
    EXPECT_FALSE(here.out.empty());
  }

  const TempFolder folder_;
};

TEST_F(LocaleTest, InferPrintsTheSame) {
  const BertFolder bert({"INSIDE", "OUTSIDE"});
  const std::string texts = folder_.write("texts", "Tom bit a dog.\nIT RAINS.\n");
  for (const std::string line :
       {"'Tom bit a dog.'", "--json 'Tom bit a dog.'", "tokenize --offsets 'I AM'", "info --json",
        "info rotary", "embed --json 'I AM' IT", "embed --precision int8 -m learned I",
        "observe --json 'Tom bit a dog.' --edit scale=0.5",
        "observe --csv --positions rotary:10000.5 'Tom bit a dog.'",
        "compare learned rotary 'Tom bit a dog.'", "compare --json learned none 'I AM'",
        "positions --json", "positions sinusoidal:paper", "--help", "embed --similarity 'I AM' IT"})
    expect_same(Words{INFER_BINARY} + words_of(line));
  for (const char* const line : {"classify --json -m", "classify -m"})
    expect_same(Words{INFER_BINARY} + words_of(line) + Words{bert.path(), "a b", "I"});
  expect_same({INFER_BINARY, "embed", "--json", "-i", texts});
}

TEST_F(LocaleTest, TheCInterfaceAndTheExamplesComputeTheSame) {
  const fs::path programs = EXAMPLES_DIR;
  const ProgramResult capi =
      run({(programs / "capi_folders").string(), (programs / "capi_test").string()});
  EXPECT_EQ(capi.exit_code, 0) << capi.out << capi.err;
  bool has_comma = false;
  for (const char* const name : {"encode", "encode_c", "zero_head_c", "lens", "trace_positions"}) {
    // They print as the locale has it.
    static const std::regex kComma("([0-9]),([0-9])");
    const ProgramResult there = run({(programs / name).string()});
    EXPECT_EQ(there.exit_code, 0) << there.err;
    has_comma = has_comma || std::regex_search(there.out, kComma);
    EXPECT_EQ(std::regex_replace(there.out, kComma, "$1.$2"),
              run_program({(programs / name).string()}).out);
  }
  EXPECT_TRUE(has_comma);  // the locale is set
}

}  // namespace
}  // namespace phasor
