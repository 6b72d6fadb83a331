// Runs a program as a user would, and gives back what it wrote and how it ended.
#include "tests/support/run_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace phasor {
namespace {

void redirect(const std::filesystem::path& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags, 0600);
  if (opened < 0 || dup2(opened, descriptor) < 0) _exit(126);
  close(opened);
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramOptions& options) {
  const TempFolder folder;
  const std::filesystem::path in = folder.write("in", options.input);
  const std::filesystem::path out = options.out.value_or(folder.path() / "out");
  const std::filesystem::path err = folder.path() / "err";
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    if (chdir(options.directory.c_str()) != 0) _exit(126);
    if (options.file_size_limit) {
      const rlimit limit{*options.file_size_limit, *options.file_size_limit};
      if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage used{};
  bool ended = false;
  while (options.signal != 0 && !ended && !options.when()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended = wait4(child, &status, WNOHANG, &used) == child;
  }
  if (options.signal != 0 && !ended) kill(child, options.signal);
  if (!ended) wait4(child, &status, 0, &used);
  return {.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .out = options.out ? "" : read_text_file(out),
          .err = read_text_file(err),
          .peak_bytes = 1024 * used.ru_maxrss};
}

void wait_until(const std::function<bool()>& condition) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::minutes(15);
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("waited for 15 minutes in vain");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::string read_text_file(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace phasor
