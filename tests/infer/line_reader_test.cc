// Lines of files, files that are no text, and the best of many lines.
#include "infer/cli/line_reader.h"

#include "infer/cli/line_stream.h"
#include "tests/support/test.h"

namespace infer {
namespace {

using phasor::TempFolder;

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

TEST(LineReaderTest, ALongLineIsCutAtTheEndOfTheLastWholeCharacter) {
  const TempFolder folder;
  for (const std::string character : {"x", "\u00E9", "\u6771", "\U0001F600", "\xFF", "\x80"}) {
    for (const size_t before : {0, 1, 2, 3}) {
      const std::string start(before, 'a');
      const auto text = start + phasor::repeat(character, kMaxLineBytes / character.size() + 1);
      LineReader reader(folder.write("long", text + "\n"), true);
      const auto line = reader.next();
      ASSERT_TRUE(line);
      const size_t kept = before + (kMaxLineBytes - before) / character.size() * character.size();
      EXPECT_EQ(line->text.size(), kept) << character << " " << before;
      EXPECT_EQ(line->left_out, std::ssize(text) - std::ssize(line->text));
      EXPECT_TRUE(text.starts_with(line->text));
    }
  }
}

TEST(LineReaderTest, TheEndOfALineIsNoPartOfItThatIsLeftOut) {
  const TempFolder folder;
  for (const std::string end : {"", "\n", "\r\n", "\r"}) {
    for (const int beyond : {-1, 0, 1}) {
      const std::string text(kMaxLineBytes + beyond, 'a');
      LineReader reader(folder.write("long", text + end), true);
      const auto line = reader.next();
      ASSERT_TRUE(line);
      EXPECT_EQ(line->text, text.substr(0, kMaxLineBytes)) << end.size() << " " << beyond;
      EXPECT_EQ(line->left_out, std::max(beyond, 0)) << end.size() << " " << beyond;
      EXPECT_FALSE(reader.next());
    }
  }
}

/// Text of ASCII and of the characters U+6771 and U+4EAC in another encoding.
std::string encoded(std::u32string_view text, int bytes, bool little) {
  std::string all;
  for (const char32_t c : text)
    for (int b = 0; b < bytes; ++b) all += static_cast<char>(c >> 8 * (little ? b : bytes - 1 - b));
  return all;
}

TEST(LineReaderTest, FilesOfOtherSystemsAreRefusedAndOddLinesOfOthersAreMarked) {
  const TempFolder folder;
  for (const int bytes : {2, 4}) {
    for (const bool little : {true, false}) {
      for (const std::u32string_view text :
           {U"Tom bit.\nA dog.\n", U"Tom bit.\r\nA dog.\r\n", U"Tom bit.",
            U"\u6771\u4EAC\n\u4EAC\n", U"\n\u6771\n", U"\uFEFFTom bit.\n"}) {
        const std::string problem = problem_of(folder.write("wide", encoded(text, bytes, little)));
        EXPECT_NE(problem.find("iconv"), std::string::npos) << bytes << little << problem;
      }
    }
  }
  for (const std::string bytes : {"Tom bit.\rA dog.\r", "\rTom", "one\nTom\r\rdog"}) {
    const std::string problem = problem_of(folder.write("mac", bytes));
    EXPECT_NE(problem.find("old Macs"), std::string::npos) << problem;
  }
  using namespace std::string_literals;
  LineReader reader(folder.write("later", "one\r\r\ntwo\nthr\0e\nfo\rur\nfive"s), true);
  for (const char* const said : {"", "", "NUL", "old Macs", ""}) {
    const auto line = reader.next();
    ASSERT_TRUE(line);
    const std::string oddity = line->oddity == nullptr ? "" : line->oddity;
    EXPECT_EQ(oddity.empty(), said == ""s) << line->number;
    EXPECT_NE(oddity.find(said), std::string::npos) << oddity;
  }
}

TEST(LineReaderTest, OtherFormatsAreRefused) {
  const TempFolder folder;
  const std::pair<std::string, const char*> refused[] = {
      {std::string("\xFF\xFET\0\n\0", 6), "iconv"},
      {std::string("\xFE\xFF\0T\0\n", 6), "in UTF-16"},
      {std::string("\0\0\xFE\xFF\0\0\0T\0\0\0\n", 12), "UTF-32"},
      {std::string("\x1F\x8B\x08\0\0", 5),
       "gzip; make a text file of it first, as in: zcat corpus.gz >"},
      {"\x28\xB5\x2F\xFDmore",
       "zstdcat corpus.zst > corpus.txt && infer embed -i corpus.txt -o v.npy"},
      {std::string("\x5E\x2A\x4D\x18\x03\0\0\0xyz", 11), "zstdcat"},  // pzstd's
      {std::string("\xFD\x37zXZ\0\0", 7), "xzcat"},
      {"BZh91AY&SYmore", "bzcat"},
      {"BZh11AY&SYmore", "bzcat"},
      {"PK\x03\x04more", "unzip"},
      {"\x04\x22\x4D\x18more", "lz4cat"},
      {std::string("\x80\0\0\0\0\0\0\0{", 9), "safetensors"},
      {"\x93NUMPY\n", "NumPy"},
      {"\x89PNG\r\n", "PNG"}};
  for (const auto& [bytes, why] : refused) {
    const std::string problem = problem_of(folder.write("other", bytes));
    EXPECT_NE(problem.find(why), std::string::npos) << why << ": " << problem;
  }
  EXPECT_EQ(problem_of(folder.write("later", "T\n\xFF\xFE")), "");
  for (const std::string text : {"B", "BZh", "BZh9 is a word", "P", "PKzip", "Tom", "("})
    EXPECT_EQ(lines_in(folder.write("text", text)), std::vector<std::string>{text});
}

TEST(RankingTest, KeepsTheLargestKeysAndOfEqualOnesTheFirstLines) {
  Ranking ranking;
  for (const int64_t number : {4, 1, 5, 2, 3}) {
    const double key = number == 2 ? 0.5 : 0.25;
    add(key, {.text = std::to_string(number), .number = number}, 3, ranking, 2 * key);
  }
  std::vector<std::string> texts;
  for (const RankedLine& line : ranking) {
    texts.push_back(line.text);
    EXPECT_EQ(line.score, 2 * line.key);
    EXPECT_EQ(line.text, std::to_string(line.number));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"2", "1", "3"}));
}

// A long line is compared with a thousand queries.
TEST(RankingTest, TheTextOfALineThatIsNotKeptIsNotCopied) {
  Ranking ranking;
  add(1, {.text = "best", .number = 1}, 1, ranking);
  const Line line = {.text = std::string(kMaxLineBytes, 'a'), .number = 2};
  phasor::expect_cpu_seconds_below(1, [&] {
    for (int query = 0; query < 100'000; ++query) add(0, line, 1, ranking);
  });
  EXPECT_EQ(ranking.begin()->text, "best");
}

}  // namespace
}  // namespace infer
