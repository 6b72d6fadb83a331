// Lines of files, plain and compressed.
#include "infer/cli/line_reader.h"

#include "tests/support/compressed.h"
#include "tests/support/test.h"

namespace infer {
namespace {

using phasor::gzip_of;
using phasor::TempFolder;
using phasor::zstd_of;

std::vector<std::string> lines_in(const std::string& file) {
  LineReader reader(file, true);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.push_back(line->text);
  return lines;
}

/// What reading says, or nothing.
std::string problem_of(const std::string& file) {
  try {
    lines_in(file);
  } catch (const phasor::InvalidArgument& error) {
    return error.what();
  }
  return "";
}

std::string many_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::string(i * 37 % 200, 'a' + i % 26) + std::to_string(i * 7919) + "\n";
  return text;
}

/// As one stream, and in two parts that follow each other.
struct Form {
  const char* name;
  std::string (*compress)(const std::string&);
};
class CompressedTest : public testing::TestWithParam<Form> {};

TEST_P(CompressedTest, HasTheLinesOfTheText) {
  const TempFolder folder;
  const std::string text = many_lines(20000);  // several buffers
  const std::string plain = folder.write("plain", text), half = text.substr(0, text.size() / 2);
  const auto expected = lines_in(plain);
  ASSERT_EQ(expected.size(), 20000u);
  EXPECT_EQ(lines_in(folder.write("one", GetParam().compress(text))), expected);
  const std::string two = GetParam().compress(half) + GetParam().compress(text.substr(half.size()));
  EXPECT_EQ(lines_in(folder.write("two", two)), expected);
  EXPECT_EQ(lines_in(folder.write("empty", GetParam().compress(""))).size(), 0u);
}

// What is left of a line when the data ends must not count as one.
TEST_P(CompressedTest, DataThatEndsTooSoonIsRefused) {
  const TempFolder folder;
  const std::string bytes = GetParam().compress(many_lines(30));
  for (size_t size = 4; size < bytes.size(); ++size) {
    const std::string file = folder.write("cut", bytes.substr(0, size));
    EXPECT_NE(problem_of(file).find("cut is damaged"), std::string::npos)
        << size << ": " << problem_of(file);
  }
}

TEST_P(CompressedTest, ChangedBytesAreRefusedOrChangeNothing) {
  const TempFolder folder;
  const std::string text = many_lines(30), bytes = GetParam().compress(text);
  const auto expected = lines_in(folder.write("plain", text));
  int refused = 0;
  for (size_t i = 4; i < bytes.size(); i += 3) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x40);
    const std::string file = folder.write("changed", changed);
    if (!problem_of(file).empty()) {
      ++refused;
    } else if (GetParam().name == std::string("gzip")) {  // zstd_of() adds no checksum
      EXPECT_EQ(lines_in(file), expected) << i;
    }
  }
  EXPECT_GT(refused, 10);
}

INSTANTIATE_TEST_SUITE_P(All, CompressedTest,
                         testing::Values(Form{"gzip", gzip_of}, Form{"zstd", zstd_of}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LineReaderTest, CountsLinesAndLeavesOutAByteOrderMark) {
  const TempFolder folder;
  LineReader reader(folder.write("a", "\xEF\xBB\xBFone\r\n\ntwo"), true);
  for (const auto& [number, text] : {std::pair(1, "one"), std::pair(2, ""), std::pair(3, "two")}) {
    const auto line = reader.next();
    ASSERT_TRUE(line);
    EXPECT_EQ(line->text, text);
    EXPECT_EQ(line->number, number);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.bytes_read(), reader.size());
}

TEST(LineReaderTest, OtherFormatsAreRefused) {
  const TempFolder folder;
  const std::pair<std::string, const char*> refused[] = {
      {std::string("\xFF\xFET\0\n\0", 6), "iconv"},
      {std::string("\xFE\xFF\0T\0\n", 6), "in UTF-16"},
      {std::string("\0\0\xFE\xFF\0\0\0T\0\0\0\n", 12), "UTF-32"},
      {std::string("\xFD\x37zXZ\0\0", 7), "other is compressed by something else"},
      {"BZh91AY&SYmore", "other"},
      {"PK\x03\x04more", "other"},
      {"\x04\x22\x4D\x18more", "other"}};
  for (const auto& [bytes, why] : refused) {
    const std::string problem = problem_of(folder.write("other", bytes));
    EXPECT_NE(problem.find(why), std::string::npos) << why << ": " << problem;
  }
  EXPECT_EQ(problem_of(folder.write("later", "T\n\xFF\xFE")), "");
  for (const std::string text : {"B", "BZh", "P", "PKzip", "Tom", "("}) {
    EXPECT_EQ(lines_in(folder.write("text", text)), std::vector<std::string>{text});
  }
  const std::string skippable("\x5E\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_EQ(lines_in(folder.write("pzstd", skippable + zstd_of("one\ntwo\n"))),
            (std::vector<std::string>{"one", "two"}));
}

}  // namespace
}  // namespace infer
