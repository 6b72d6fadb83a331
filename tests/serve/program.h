// infer serve as a program of its own.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/serve/client.h"
#include "tests/support/run_program.h"

namespace infer {

using phasor::contains;

/// A running infer serve, on a free port.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {INFER_BINARY, "serve", "--port", "0"});
    int out[2], err[2];
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
      throw std::runtime_error("no pipes");
    process_ = phasor::start_program(arguments, {STDIN_FILENO, out[1], err[1]});
    close(out[1]);
    close(err[1]);
    out_ = out[0];
    err_ = err[0];
    for (std::string line = "\n"; !line.empty() && !contains(line, "serving "); notes_ += line)
      line = read_to(err_, "\n");
    const size_t at = notes_.find(':', notes_.rfind("http://") + 7);
    if (!contains(notes_, "http://") || at == notes_.npos)
      throw std::runtime_error("infer serve says: " + notes_);
    port_ = static_cast<uint16_t>(std::stoi(notes_.substr(at + 1)));
  }
  ~Program() {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      end();
    }
    close(out_);
    close(err_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  uint16_t port() const { return port_; }
  /// What it has said when it serves.
  const std::string& notes() const { return notes_; }
  void signal(int number) const { kill(process_, number); }
  /// Waits for its end: its exit code, or 128 + n where signal n ended it.
  int end() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = 0;
    return phasor::exit_code_of(status);
  }
  /// Bytes that it has resident.
  int64_t memory() const { return status("VmRSS:"); }
  /// The most bytes that it has had resident.
  int64_t most_memory() const { return status("VmHWM:"); }
  /// Lets it have so many bytes of addresses more than it has.
  void limit_memory(int64_t more) const {
    const auto bytes = static_cast<rlim_t>(status("VmSize:") + more);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
    if (prlimit(process_, RLIMIT_AS, &limit, nullptr) != 0) throw std::runtime_error("no limit");
  }
  void limit_descriptors(int64_t more) const {
    const auto most = static_cast<rlim_t>(num_descriptors() + more);
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (prlimit(process_, RLIMIT_NOFILE, &limit, nullptr) != 0)
      throw std::runtime_error("no limit");
  }
  int64_t num_descriptors() const {
    const std::filesystem::directory_iterator open(fmt::format("/proc/{}/fd", process_));
    return std::distance(std::filesystem::begin(open), std::filesystem::end(open));
  }
  void ignore_log() { close(std::exchange(out_, -1)); }
  std::string log() const { return read_to(out_, {}); }
  /// What it has said since, to its end.
  std::string last_notes() const { return read_to(err_, {}); }

 private:
  int64_t status(std::string_view what) const {
    const std::string text = phasor::read_text_file(fmt::format("/proc/{}/status", process_));
    return 1024 * std::stoll(text.substr(text.find(what) + what.size()));
  }
  /// Up to the first `mark`, or to the end.
  static std::string read_to(int end, std::string_view mark) {
    std::string text;
    char byte;
    while ((mark.empty() || text.find(mark) == text.npos) && read(end, &byte, 1) == 1) text += byte;
    return text;
  }

  pid_t process_ = 0;
  int out_ = -1, err_ = -1;
  uint16_t port_ = 0;
  std::string notes_;
};

}  // namespace infer
