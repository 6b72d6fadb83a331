// Runs a program as a user would, and gives back what it wrote and how it ended.
#pragma once

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
  int exit_code = -1;  // 128 + n where signal n ended it
  std::string out;
  std::string err;
  int64_t peak_bytes = 0;  // of memory that was resident at once
};

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramOptions& options = {});

/// Waits until `condition` holds; throws where it does not within a minute.
void wait_until(const std::function<bool()>& condition);

std::string read_text_file(const std::filesystem::path& file);
std::vector<std::string> lines_of(const std::string& text);
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace phasor
