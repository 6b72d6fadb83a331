// Runs a program with three folders as further arguments: a tiny reranker, a classifier with the
// labels "bad" and "good", and links to the reranker's files.
#include <cstdio>

#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

int main(int argc, char** argv) {
  const phasor::BertFolder reranker({"relevant"}), classifier({"bad", "good"});
  std::vector<std::string> command(argv + 1, argv + argc);
  command.push_back(reranker.path());
  command.push_back(classifier.path());
  const phasor::TempFolder links;
  for (const auto& file : phasor::fs::directory_iterator(reranker.path()))
    phasor::fs::create_symlink(file.path(), links.path() / file.path().filename());
  command.push_back(links.path());
  const phasor::ProgramResult result = phasor::run_program(command);
  std::fputs(result.out.c_str(), stdout);
  std::fputs(result.err.c_str(), stderr);
  return result.exit_code;
}
