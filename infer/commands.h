// The subcommands of infer; each parses its own arguments and returns the exit code.
#pragma once

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/command_line.h"

namespace infer {

/// Exit codes. 0: good.
inline constexpr int kCheckFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kBadInput = 3;
inline constexpr int kBadModel = 4;
inline constexpr int kBackend = 5;

/// The command line itself is wrong.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws UsageError with save_path_fault(), where there is one.
void check_save_path(const std::filesystem::path& path, bool one_tensor = false);

/// A command, or a verb of infer shard.
struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  int (*function)(int, char**);
  std::span<const Command> (*verbs)() = nullptr;
};

/// Runs what the command line asks for.
int run_command(int argc, char** argv);

/// The commands with a line on each, for `infer --help`.
std::string list_of_commands();
/// What `infer` by itself prints.
std::string short_help();

/// infer itself, then each command, followed by its verbs.
std::vector<CommandDescription> describe_commands();

/// argv[0] is the program's or the subcommand's name. Throws phasor's errors and UsageError; where
/// argv is null, a CommandDescription.
int run(int argc, char** argv);
int tokenize(int argc, char** argv);
int embed(int argc, char** argv);
int check_vectors(int argc, char** argv);
int shard(int argc, char** argv);
int serve(int argc, char** argv);  // absent without PHASOR_BUILD_SERVE
int rank(int argc, char** argv);
int classify(int argc, char** argv);
int bench(int argc, char** argv);
int info(int argc, char** argv);
int compare(int argc, char** argv);
int observe(int argc, char** argv);
int positions(int argc, char** argv);
int verify(int argc, char** argv);
int completion(int argc, char** argv);

std::span<const Command> shard_verbs();

}  // namespace infer
