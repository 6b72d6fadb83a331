// The subcommands of infer; each parses its own arguments and returns the exit code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/command_line.h"

namespace infer {

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  int (*function)(int, char**);
};

/// Finds the command in argv, runs it, and returns its exit code.
int run_command(int argc, char** argv);

/// The commands with a line on each, for `infer --help`.
std::string list_of_commands();
/// What `infer` by itself prints.
std::string short_help();

/// argv[0] is the program's or the subcommand's name. Throws phasor's errors and UsageError.
int run(int argc, char** argv);
int tokenize(int argc, char** argv);
int embed(int argc, char** argv);
int rank(int argc, char** argv);
int classify(int argc, char** argv);
int label(int argc, char** argv);
int info(int argc, char** argv);
int compare(int argc, char** argv);
int observe(int argc, char** argv);
int positions(int argc, char** argv);

}  // namespace infer
