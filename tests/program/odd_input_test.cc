// Lines that are not plain: every command that reads lines takes them alike.
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

class OddInputTest : public testing::Test {
 protected:
  std::vector<Words> commands() const {
    return {{"--json", "-"},
            {"tokenize", "--json", "-"},
            {"observe", "--json", "--only", "norm", "-"},
            {"embed"},
            {"classify", "-m", labels_.path(), "--json", "-i", "-"},
            {"rank", "-m", relevance_.path(), "--json", "a dog", "-i", "-"},
            {"embed", "--nearest", "3", "--json", "a dog"}};
  }

  const BertFolder labels_{{"yes", "no"}}, relevance_{{"relevant"}};
};

TEST_F(OddInputTest, MarksAndEndsOfLinesAreNoText) {
  for (const Words& command : commands()) {
    SCOPED_TRACE(testing::PrintToString(command));
    const Words quiet = command + Words{"-q"};
    const ProgramResult plain = succeed(quiet, {.input = "Tom\na dog\n"});
    EXPECT_TRUE(contains(plain.out, "{"));
    for (const char* const input : {"\xEF\xBB\xBFTom\na dog\n", "Tom\r\na dog\r\n", "Tom\na dog"})
      EXPECT_EQ(run_infer(quiet, {.input = input}).out, plain.out) << input;
    // Within a file the mark is a character.
    EXPECT_NE(run_infer(quiet, {.input = "Tom\n\xEF\xBB\xBF"
                                         "a dog\n"})
                  .out,
              plain.out);
  }
}

TEST_F(OddInputTest, BytesThatAreNotUtf8AreReplacedAndCounted) {
  for (const Words& command : commands()) {
    SCOPED_TRACE(testing::PrintToString(command));
    const ProgramResult result = succeed(command, {.input = "Tom\na \xff dog\n"});
    EXPECT_TRUE(contains(result.err, "1 byte was not UTF-8")) << result.err;
    const ProgramResult quiet = run_infer(command + Words{"-q"}, {.input = "Tom\na \xff dog\n"});
    EXPECT_EQ(quiet.err, "");
    EXPECT_EQ(quiet.out, result.out);
  }
  const json object = infer_json({"-q", "bad \xff\xfe bytes"}).at(0);
  EXPECT_EQ(object["invalid_bytes"], 2);
  EXPECT_EQ(object["text"], "bad \uFFFD\uFFFD bytes");
}

TEST_F(OddInputTest, BlankLinesAreTextsUnlessOneIsRanked) {
  for (const Words& command : commands()) {
    const ProgramResult result = run_infer(command + Words{"-q"}, {.input = "Tom\n\na dog\n"});
    const size_t lines = lines_of(result.out).size();
    const bool one = command[0] == "rank" || contains(testing::PrintToString(command), "nearest");
    EXPECT_EQ(lines, one ? 1u : 3u) << testing::PrintToString(command) << result.out;
    for (const char* const none : {"", "\n \n"}) {
      if (*none != '\0' && !one) continue;
      expect_infer_fails(command + Words{"-q"}, 3, {"input: it holds no text"}, {.input = none});
    }
  }
}

TEST_F(OddInputTest, WhatIsNoTextIsRefusedAndOddLinesAreSaid) {
  for (const Words& command : commands()) {
    SCOPED_TRACE(testing::PrintToString(command));
    expect_infer_fails(command + Words{"-q"}, 3, {"standard input: it is no text file"},
                       {.input = "\x89PNG\r\n\x1a\n"});
    expect_contains(run_infer(command, {.input = "a\ndog\na\rdog\n"}).err, {"line 3: it", "tr '"});
  }
  expect_contains(succeed({"embed"}, {.input = "a\ndog\na\rdog\n"}).err,
                  {"; with NUL or carriage return: 1"});
  expect_infer_fails({"embed", "-q", "--strict"}, 3, {"line 3", "--strict"},
                     {.input = "a\ndog\na\rdog\n"});
}

TEST_F(OddInputTest, ALineThatIsTooLongIsRefusedOrCut) {
  const TempFolder folder;
  const std::string endless(3 << 20, 'x');
  const std::string file = folder.write("long.txt", "a\n" + endless).string();
  const std::string why = "long.txt: line 2 has more than 1048576 bytes";
  expect_infer_fails({"observe", "-i", file}, 3, {why});
  expect_infer_fails({"compare", "sinusoidal", "none", "-i", file}, 3, {why});
  const ProgramResult result = succeed({"embed"}, {.input = endless + "\nTom\n"});
  EXPECT_EQ(lines_of(result.out).size(), 2u);
  EXPECT_TRUE(contains(result.err, "line 1: its end, 2097152 bytes, was left out")) << result.err;
}

}  // namespace
}  // namespace phasor
