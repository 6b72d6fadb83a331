// On a terminal of any width from 60 columns on, no line is wider than it.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <future>
#include <regex>

#include "infer/cli/terminal.h"
#include "tests/program/program.h"

namespace phasor {
namespace {

/// What the program writes to a terminal of `width` columns.
std::string on_terminal(const Words& arguments, int width) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) return "";
  const std::string name = ptsname(master);
  const int slave = open(name.c_str(), O_RDWR | O_NOCTTY);  // the size is lost with the last one
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(width);
  ioctl(slave, TIOCSWINSZ, &size);
  auto written = std::async(std::launch::async, [&] {
    std::string text, part(4096, '\0');
    for (ssize_t n = 0; (n = read(master, part.data(), part.size())) > 0;)
      text.append(part, 0, static_cast<size_t>(n));
    return text;
  });
  run_program(Words{INFER_BINARY} + arguments, {.input = {}, .directory = ".", .out = name});
  close(slave);  // now the reader's read() fails
  const std::string text = written.get();
  close(master);
  return std::regex_replace(text, std::regex("\r|\033\\[[0-9]*m"), "");
}

TEST(CliTerminalTest, AColourWithoutAnEndTakesTheRestOfItsLine) {
  for (const char* const line : {"\033[", "Tom \033[1", "Tom \033[31 bit"})
    EXPECT_EQ(infer::fitted(line, 4), line);
  EXPECT_EQ(infer::fitted("Tom \033[1mbit\033[0m a dog", 7), "Tom \033[1mbit\033[0m\na dog");
}

TEST(CliTerminalTest, NoLineIsWiderThanTheTerminal) {
  const std::string text = " 'Tom bit a dog, and the dog ran after the cat.'";
  std::vector<std::string> lines = {
      text,
      "observe" + text,
      "observe --only all --edit reverse" + text,
      "observe --only heads,relative,scores,pattern --baseline random:1" + text,
      "compare sinusoidal learned" + text,
      "compare sinusoidal learned --only split,direct,heads,scores" + text,
      "positions learned",
      "positions paper learned",
      "info",
      "tokenize" + text,
      "embed --similarity 'It rains.'" + text};
  for (const std::string& command : Words{""} + commands()) lines.push_back(command + " --help");
  for (const int width : {60, 77, 140}) {
    for (const std::string& line : lines) {
      const std::string shown = on_terminal(words_of(line), width);
      ASSERT_NE(shown, "") << line;
      for (const std::string& each : lines_of(shown))
        EXPECT_LE(infer::display_width(each), width) << line << ": " << each;
    }
  }
}

}  // namespace
}  // namespace phasor
