// Help: it fits on a screen, names every option, and its examples run.
#include <regex>

#include "infer/commands.h"
#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

/// "--model", …: those that a command's help names.
std::set<std::string> options_of(const std::string& command) {
  const std::string help = printed(command + " --help");
  const size_t begin = help.find("\nOptions:\n");
  const std::string options = help.substr(begin, help.find("\n\n", begin) - begin);
  const std::regex name("[ ,](--[a-z-]+)");
  std::set<std::string> names;
  for (std::sregex_iterator found(options.begin(), options.end(), name), end; found != end; ++found)
    names.insert(found->str(1));
  return names;
}

TEST(HelpTest, FitsOnAScreen) {
  for (const std::string& command : Words{""} + commands()) {
    const std::string help = printed(command + " --help");
    EXPECT_LE(lines_of(help).size(), 40u) << help;
    for (const std::string& line : lines_of(help)) EXPECT_LE(line.size(), 100u) << line;
    expect_contains(help, {"\nUsage: infer", "\nOptions:\n  -", "\nExamples:\n  infer"});
  }
}

TEST(HelpTest, NamesEveryOptionOfItsCommandAndAPageDoesToo) {
  std::map<std::string, std::set<std::string>> named;
  std::set<std::string> all;
  for (const std::string& command : Words{""} + commands()) {
    named[command] = options_of(command);
    all.insert(named[command].begin(), named[command].end());
  }
  EXPECT_GT(all.size(), 50u);
  const fs::path docs = PHASOR_SOURCE_DIR "/docs";
  const auto pages = read_text_file(docs / "command-line.md") + read_text_file(docs / "serving.md");
  for (const std::string& option : all) {
    EXPECT_TRUE(contains(pages, "`" + option) || contains(pages, " " + option)) << option;
    if (option == "--help" || option == "--version") continue;
    for (const auto& [command, options] : named) {
      std::string said;
      Words words = words_of("infer " + command + " " + option + "=1 --no-option");
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      try {
        infer::run_command(static_cast<int>(arguments.size()), arguments.data());
      } catch (const infer::UsageError& error) {
        said = error.what();
      }
      EXPECT_EQ(options.contains(option), !contains(said, "there is no option " + option))
          << command << " " << option << ": " << said;
    }
  }
}

TEST(HelpTest, EndsWithExamplesThatRun) {
  const BertFolder reranker({"relevant"}), classifier({"good", "bad"});
  const BertFolder labels({"O", "B-PER", "I-PER"}, 1, true);
  const TempFolder folder;
  const std::pair<const char*, fs::path> models[] = {
      {"ms-marco-MiniLM-L6-v2", reranker.path()},
      {"bge-reranker-base", reranker.path()},
      {"distilbert-base-uncased-finetuned-sst-2-english", classifier.path()},
      {"nli-model", classifier.path()},
      {"bert-base-uncased", classifier.path()},
      {"toxic-bert", classifier.path()},
      {"bert-base-NER", labels.path()}};
  for (const auto& [name, path] : models) fs::create_symlink(path, folder / name);
  for (const char* const file : {"sentences.txt", "passages.txt", "comments.txt", "letters.txt"})
    folder.write(file, "Tom bit a dog, and the dog bit Tom.\nIt rains, and it rains again.\n");
  for (const std::string& command : Words{""} + commands()) {
    const std::string help = printed(command + " --help");
    for (const std::string& line : lines_of(help.substr(help.find("\nExamples:") + 11))) {
      if (!line.starts_with("  ") || contains(line, "infer serve") || contains(line, "curl"))
        continue;  // ReadmeTest.EveryServerAnswersTheRequestsBelowIt
      const ProgramResult result = run_program(
          {"/bin/sh", "-c",
           "PATH='" + fs::path(INFER_BINARY).parent_path().string() + "':$PATH;" + line},
          {.directory = folder.path()});
      EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    }
  }
}

}  // namespace
}  // namespace phasor
