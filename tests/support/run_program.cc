// Runs a program as a user would, and gives back what it wrote and how it ended.
#include "tests/support/run_program.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace phasor {

pid_t start_program(const std::vector<std::string>& arguments, const std::array<int, 3>& ends,
                    const std::function<void()>& before) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    for (int i = 0; i < 3; ++i) dup2(ends[i], i);
    std::signal(SIGINT, SIG_DFL);  // a shell's background job ignores it
    if (before) before();
    execv(argv[0], argv.data());
    _exit(127);
  }
  return child;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // rather killed than waiting for a thread that is not there
    _exit(work());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) throw std::runtime_error("no child");
  return exit_code_of(status);
}

ProgramResult run_program(const std::vector<std::string>& command, const ProgramOptions& options) {
  const TempFolder folder;
  const std::filesystem::path in = folder.write("in", options.input), err = folder / "err";
  const std::filesystem::path out = options.out.value_or(folder / "out");
  const auto opened = [](const std::filesystem::path& file, int flags) {
    const int descriptor = open(file.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0600);
    if (descriptor < 0) throw std::runtime_error("cannot open " + file.string());
    return descriptor;
  };
  const std::array ends = {opened(in, O_RDONLY), opened(out, O_WRONLY | O_CREAT),
                           opened(err, O_WRONLY | O_CREAT)};
  const pid_t child = start_program(command, ends, [&] {
    if (chdir(options.directory.c_str()) != 0) _exit(126);
    if (!options.file_size_limit) return;
    const rlimit limit{*options.file_size_limit, *options.file_size_limit};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(126);
  });
  for (const int end : ends) close(end);
  int status = 0;
  rusage used{};
  bool ended = false;
  while (options.signal != 0 && !ended && !options.when()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ended = wait4(child, &status, WNOHANG, &used) == child;
  }
  if (options.signal != 0 && !ended) kill(child, options.signal);
  if (!ended) wait4(child, &status, 0, &used);
  return {.exit_code = exit_code_of(status),
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
