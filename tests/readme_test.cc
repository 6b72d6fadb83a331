// The README's commands and programs run, and print what it shows.
//
// PHASOR_UPDATE_README=1 readme_test writes what they print into the README.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "tests/run_program.h"
#include "tests/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;

const fs::path kReadme = fs::path(PHASOR_SOURCE_DIR) / "README.md";

/// A fenced block: where its contents lie in `lines`.
struct Block {
  std::string language;
  size_t begin = 0, end = 0;
};

struct Readme {
  std::vector<std::string> lines = lines_of(read_text_file(kReadme));

  std::vector<Block> blocks() const {
    std::vector<Block> blocks;
    bool open = false;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].starts_with("```")) continue;
      if (open) {
        blocks.back().end = i;
      } else {
        blocks.push_back({lines[i].substr(3), i + 1, i + 1});
      }
      open = !open;
    }
    return blocks;
  }
  std::vector<std::string> contents(const Block& block) const {
    return {lines.begin() + block.begin, lines.begin() + block.end};
  }
};

/// Runs a line of the README in an empty folder, where `infer` is the binary under test.
ProgramResult run_line(std::string line) {
  if (line.starts_with("./dev infer")) line.erase(0, 6);
  const TempFolder folder;
  const std::string path = fs::path(INFER_BINARY).parent_path().string();
  return run_program({"/bin/sh", "-c", "PATH='" + path + "':$PATH; " + line},
                     {.directory = folder.path()});
}

/// What stands in a block of this README: a program, or what a block printed. Empty where it may
/// hold anything.
std::optional<std::vector<std::string>> expected(const Readme& readme, size_t b) {
  const std::vector<Block> blocks = readme.blocks();
  const fs::path program = fs::path(PHASOR_SOURCE_DIR) / "examples" / "encode.cc";
  if (blocks[b].language == "cpp") {
    std::vector<std::string> lines = lines_of(read_text_file(program));
    lines.erase(lines.begin());  // the comment that says what the file is
    return lines;
  }
  if (blocks[b].language != "text" || b == 0) return std::nullopt;
  const Block& before = blocks[b - 1];
  if (before.language == "cpp") {
    return lines_of(run_program({(fs::path(EXAMPLES_DIR) / "encode").string()}).out);
  }
  EXPECT_EQ(before.language, "sh");
  return lines_of(run_line(readme.lines.at(before.begin)).out);
}

/// A line of output taken apart.
struct Line {
  std::string rest;  // each number a '#', and no bars
  std::vector<std::string> numbers;
};

Line take_apart(const std::string& text) {
  Line line;
  for (size_t i = 0; i < text.size();) {
    const size_t digits = std::min(text.find_first_not_of("0123456789.", i), text.size());
    const std::string word = text.substr(i, digits - i);
    if (word.size() > 2 && word.find('.') < word.size() - 1 && word[0] != '.') {
      line.numbers.push_back(word);
      line.rest += '#';
      i = digits;
    } else if (text.compare(i, 3, "\u2588") >= 0 && text.compare(i, 3, "\u258f") <= 0) {
      // a block of a bar, and the blanks behind it
      i = std::min(text.find_first_not_of(' ', i + 3), text.size());
    } else {
      line.rest += text[i++];
    }
  }
  return line;
}

/// Equal but for numbers with a point, which may differ by one in their last digit, and bars.
void expect_same_output(const std::string& want, const std::string& got) {
  const Line a = take_apart(want), b = take_apart(got);
  EXPECT_EQ(a.rest, b.rest);
  ASSERT_EQ(a.numbers.size(), b.numbers.size()) << got;
  for (size_t i = 0; i < a.numbers.size(); ++i) {
    const auto digits = static_cast<double>(a.numbers[i].size() - a.numbers[i].find('.') - 1);
    EXPECT_NEAR(std::stod(a.numbers[i]), std::stod(b.numbers[i]), 1.01 * std::pow(10, -digits))
        << got;
  }
}

TEST(ReadmeTest, ShowsWhatItsCommandsAndProgramsPrint) {
  Readme readme;
  const bool update = std::getenv("PHASOR_UPDATE_README") != nullptr;
  size_t compared = 0;
  for (size_t b = 0; b < readme.blocks().size(); ++b) {
    const auto want = expected(readme, b);
    if (!want) continue;
    ++compared;
    ASSERT_FALSE(want->empty());
    const Block block = readme.blocks()[b];
    if (update) {
      readme.lines.erase(readme.lines.begin() + block.begin, readme.lines.begin() + block.end);
      readme.lines.insert(readme.lines.begin() + block.begin, want->begin(), want->end());
      continue;
    }
    const std::vector<std::string> shown = readme.contents(block);
    ASSERT_EQ(shown.size(), want->size())
        << "block at line " << block.begin << "; PHASOR_UPDATE_README=1 readme_test renews it";
    for (size_t i = 0; i < shown.size(); ++i) {
      if (block.language == "cpp") {
        EXPECT_EQ(shown[i], want->at(i));
      } else {
        expect_same_output(shown[i], want->at(i));
      }
    }
  }
  EXPECT_EQ(compared, 3u);
  if (!update) return;
  std::ofstream file(kReadme);
  for (const std::string& line : readme.lines) file << line << "\n";
}

TEST(ReadmeTest, EveryCommandOfInferSucceeds) {
  const Readme readme;
  size_t commands = 0;
  for (const Block& block : readme.blocks()) {
    if (block.language != "sh") continue;
    for (const std::string& line : readme.contents(block)) {
      if (!line.starts_with("infer ") && !line.starts_with("./dev infer ")) continue;
      const ProgramResult result = run_line(line);
      EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
      EXPECT_NE(result.out, "") << line;
      ++commands;
    }
  }
  EXPECT_GE(commands, 8u);
}

TEST(ReadmeTest, EveryFileItLinksToIsThere) {
  const std::string text = read_text_file(kReadme);
  size_t links = 0;
  for (size_t i = text.find("]("); i != std::string::npos; i = text.find("](", i + 1)) {
    const std::string target = text.substr(i + 2, text.find(')', i) - i - 2);
    if (target.starts_with("http")) continue;
    EXPECT_TRUE(fs::exists(fs::path(PHASOR_SOURCE_DIR) / target)) << target;
    ++links;
  }
  EXPECT_GT(links, 0u);
}

}  // namespace
}  // namespace phasor
