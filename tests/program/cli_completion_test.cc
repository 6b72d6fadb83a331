// infer completion: what shells complete and the manual page shows is what --help says.
#include <regex>

#include "tests/program/program.h"

namespace phasor {
namespace {

using Names = std::set<std::string>;

bool installed(const std::string& program) {
  return run_program({"/bin/sh", "-c", "command -v " + program}).exit_code == 0;
}

Names matches(const std::string& text, const std::string& pattern, int group) {
  const std::regex regex(pattern, std::regex::ECMAScript | std::regex::multiline);
  Names found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), regex);
       at != std::sregex_iterator(); ++at) {
    found.insert((*at)[group]);
  }
  return found;
}

/// "embed", "serve", …, and "" for infer itself: all that --help lists.
Names commands() {
  std::string help = run_infer({"--help"}).out;
  help.resize(help.find("\nExamples:"));
  Names names = matches(help.substr(help.find("\nCommands")), "^  ([a-z]+) ", 1);
  names.insert("");
  return names;
}

/// "-m", "--model", …
Names options_in_help(const std::string& command) {
  const std::string help = run_infer(words_of(command) + Words{"--help"}).out;
  Names names = matches(help, "^  (-[A-Za-z]),--", 1);
  names.merge(matches(help, "^  (-[A-Za-z],)?(--[a-z-]+)", 2));
  return names;
}

class CliCompletionTest : public testing::Test {
 protected:
  /// The script, in a file.
  std::string script(const std::string& kind) {
    return folder_.write(kind, succeed({"completion", kind}).out).string();
  }

  /// What bash offers for the last of the words behind infer.
  Names bash(const Words& words) {
    constexpr const char* kRun =
        R"(source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _infer; printf '%s\n' "${COMPREPLY[@]}")";
    const ProgramResult result =
        run_program(Words{"/bin/bash", "-c", kRun, script("bash"), INFER_BINARY} + words,
                    {.directory = folder_.path()});
    EXPECT_EQ(result.err, "");
    Names offered;
    for (const std::string& line : lines_of(result.out)) offered.insert(line);
    offered.erase("");
    return offered;
  }

  const TempFolder folder_;
};

TEST_F(CliCompletionTest, BashOffersTheOptionsThatHelpShows) {
  Names all;
  for (const std::string& command : commands()) {
    const Names options = options_in_help(command);
    EXPECT_EQ(bash(words_of(command) + Words{"-"}), options) << command;
    all.insert(options.begin(), options.end());
  }
  EXPECT_GT(all.size(), 50u);
}

TEST_F(CliCompletionTest, ZshOffersTheOptionsThatHelpShows) {
  if (!installed("zsh")) GTEST_SKIP() << "zsh is not installed";
  const std::string file = script("zsh");
  EXPECT_EQ(run_program({"/bin/sh", "-c", "zsh -n " + file}).err, "");
  for (const std::string& command : commands()) {
    const std::string run = "compdef() { }; _describe() { print -rl -- \"${(@P)2}\"; }; source " +
                            file + "; words=(" INFER_BINARY " " + command +
                            " -); CURRENT=$#words; _infer";
    const ProgramResult result = run_program({"/usr/bin/env", "zsh", "-fc", run});
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(matches(result.out, "^(-[A-Za-z]|--[a-z-]+):", 1), options_in_help(command))
        << command;
  }
}

TEST_F(CliCompletionTest, FishOffersTheOptionsThatHelpShows) {
  if (!installed("fish")) GTEST_SKIP() << "fish is not installed";
  const std::string file = script("fish");
  const auto fish = [&](const std::string& line) {
    const ProgramResult result =
        run_program({"/usr/bin/env", "HOME=" + folder_.path().string(), "fish", "--no-config", "-c",
                     "source " + file + "; complete -c " INFER_BINARY " -f -a '(__infer_words)'; " +
                         "complete -C '" + line + "'"},
                    {.directory = folder_.path()});
    EXPECT_EQ(result.err, "");
    return matches(result.out, "^([^\t\n]+)(\t.*)?$", 1);
  };
  for (const std::string& command : commands()) {
    const std::string line = INFER_BINARY " " + command + (command.empty() ? "-" : " -");
    EXPECT_EQ(fish(line), options_in_help(command)) << command;
  }
  EXPECT_EQ(fish(INFER_BINARY " -m none emb"), Names{"embed"});
  EXPECT_EQ(fish(INFER_BINARY " --precision b"), Names{"bf16"});
}

TEST_F(CliCompletionTest, BashOffersCommandsAndValues) {
  folder_.write("my file.txt", "");
  Names first = commands();
  first.erase("");
  EXPECT_EQ(bash({""}), first);
  EXPECT_EQ(bash({"-q", "-m", "none", "emb"}), Names{"embed"});
  EXPECT_EQ(bash({"--model", "=", "none", "emb"}), Names{"embed"});
  EXPECT_EQ(bash({"Tom", "emb"}), Names{});  // a text
  EXPECT_EQ(bash({"completion", ""}), (Names{"bash", "zsh", "fish", "man"}));

  EXPECT_EQ(bash({"-m", "r"}), (Names{"rotary", "relative"}));
  EXPECT_EQ(bash({"-m", "m"}), Names{"my file.txt"});
  EXPECT_EQ(bash({"embed", "--lang", ""}), Names{});
  EXPECT_EQ(bash({"embed", "--precision", "=", "b"}), Names{"bf16"});
  EXPECT_EQ(bash({"embed", "--precision=b"}), Names{"--precision=bf16"});
  EXPECT_EQ(bash({"embed", "-qm", "rot"}), Names{"rotary"});
  EXPECT_EQ(bash({"embed", "--precision", "="}), (Names{"f32", "bf16", "int8", "auto"}));
  EXPECT_EQ(bash({"observe", "--only", "effect,mov"}), Names{"effect,moved"});
  EXPECT_EQ(bash({"embed", "-i", "m"}), Names{"my file.txt"});
  EXPECT_EQ(bash({"embed", "m"}), Names{});  // a text
  EXPECT_EQ(bash({"serve", "m"}), Names{});
}

TEST_F(CliCompletionTest, TheManualPageHasTheOptionsThatHelpShows) {
  std::string page = run_infer({"completion", "man"}).out;
  const std::string whole = page;
  for (size_t at; (at = page.find("\\-")) != page.npos;) page.erase(at, 1);
  for (const std::string& command : commands()) {
    const std::string title = command.empty() ? ".SH OPTIONS" : ".SS infer " + command + " ";
    const size_t begin = page.find("\n" + title);
    ASSERT_NE(begin, page.npos) << title;
    const std::string section = page.substr(begin, page.find("\n.S", begin + 1) - begin);
    EXPECT_EQ(matches(section, R"(\\fB(-[A-Za-z]|--[a-z-]+)\\fR)", 1), options_in_help(command))
        << section;
  }
  for (const char* name : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS",
                           "ENVIRONMENT", "FILES", "EXAMPLES"}) {
    EXPECT_TRUE(contains(page, fmt::format("\n.SH {}\n", name))) << name;
  }
  expect_contains(page, {"\n.SH EXIT STATUS\n0 success, 2 usage",
                         "\n  infer \"Tom bit a dog.\" \"A dog bit Tom.\"\n"});

  if (!installed("groff")) GTEST_SKIP() << "groff is not installed; it would check the page";
  const ProgramResult groff =
      run_program({"/usr/bin/env", "groff", "-man", "-ww", "-z", folder_.write("infer.1", whole)});
  EXPECT_EQ(groff.err, "");
}

}  // namespace
}  // namespace phasor
