// The commands of infer; each returns the exit code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/command_line.h"

namespace infer {

/// Finds the command in argv, runs it, and returns its exit code.
int run_command(int argc, char** argv);

/// "embed", "serve", …
std::vector<std::string_view> command_names();

/// What infer does without a command; `hint` is told, and cleared, before it runs anything.
int run(CommandLine& line, std::string& hint);

/// Each adds its options to `line`, and parses it. Throws phasor's errors and UsageError.
int tokenize(CommandLine& line);
int embed(CommandLine& line);
int rank(CommandLine& line);
int classify(CommandLine& line);
int label(CommandLine& line);
int info(CommandLine& line);
int compare(CommandLine& line);
int observe(CommandLine& line);
int positions(CommandLine& line);

}  // namespace infer
