// Runs a program as a user would, and gives back what it wrote and how it ended.
#pragma once

#include <sys/types.h>

#include "tests/support/test.h"

namespace phasor {

struct ProgramOptions {
  std::string input = {};                         // what it finds on stdin
  std::filesystem::path directory = ".";          // where it runs
  std::optional<std::filesystem::path> out = {};  // stdout goes there instead
  std::optional<uint64_t> file_size_limit = {};   // a disk that is full after so many bytes
  int signal = 0;                                 // is sent once,
  std::function<bool()> when = {};                // as soon as this holds
};

struct ProgramResult {
  int exit_code = -1;
  std::string out;
  std::string err;
  int64_t peak_bytes = 0;  // of memory that was resident at once
};

/// Starts a program with these as its stdin, stdout and stderr; `before` runs in its process.
pid_t start_program(const std::vector<std::string>& arguments, const std::array<int, 3>& ends,
                    const std::function<void()>& before = {});
/// The exit code that a status of waitpid() has, or 128 + n where signal n ended the program.
int exit_code_of(int status);

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramOptions& options = {});

/// What `work` returns in a process of its own, of 0 to 127, which is killed after a minute.
int in_child(const std::function<int()>& work);
/// Calls work(0), work(1), … at the same time, each on a thread of its own.
inline void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
}

/// Waits until `condition` holds; throws where it does not within 15 minutes.
void wait_until(const std::function<bool()>& condition);

std::string read_text_file(const std::filesystem::path& file);
std::vector<std::string> lines_of(const std::string& text);
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace phasor
