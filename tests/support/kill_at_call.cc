#include "tests/support/kill_at_call.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>

#include "tests/support/run_program.h"

namespace phasor {
namespace {

constexpr std::array kCalls = {
#ifdef SYS_rename
    SYS_rename,   SYS_unlink,   SYS_mkdir,     SYS_link,
#endif
#ifdef SYS_open
    SYS_open,
#endif
    SYS_openat,   SYS_write,    SYS_fallocate, SYS_fsync,  SYS_fdatasync, SYS_ftruncate, SYS_flock,
    SYS_unlinkat, SYS_renameat, SYS_mkdirat,   SYS_linkat, SYS_pwrite64,  SYS_writev};

bool changes_files(const __ptrace_syscall_info& info) {
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return false;
  const auto call = info.entry.nr;
  const auto& arguments = info.entry.args;
  if (std::ranges::find(kCalls, call) == kCalls.end()) return false;
  constexpr auto kChanging = O_CREAT | O_WRONLY | O_RDWR;
#ifdef SYS_open
  if (call == SYS_open) return (arguments[1] & kChanging) != 0;
#endif
  if (call == SYS_openat) return (arguments[2] & kChanging) != 0;
  const bool writes = call == SYS_write || call == SYS_writev;
  return !writes || arguments[0] > STDERR_FILENO;
}

#if defined(__x86_64__)
void set_register(pid_t child, size_t offset, int64_t value) {
  if (ptrace(PTRACE_POKEUSER, child, offset, value) != 0) throw std::runtime_error("POKEUSER");
}
void skip_call(pid_t child) { set_register(child, offsetof(user_regs_struct, orig_rax), -1); }
void set_result(pid_t child, int64_t value) {
  set_register(child, offsetof(user_regs_struct, rax), value);
}
#else
void skip_call(pid_t) { throw std::runtime_error("calls cannot fail on this machine"); }
void set_result(pid_t, int64_t) {}
#endif

/// A program that is traced from its start, with its standard error in a pipe.
class Traced {
 public:
  explicit Traced(const std::vector<std::string>& arguments) {
    std::array<int, 2> pipe_ends{};
    if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    err_ = pipe_ends[0];
    fcntl(pipe_ends[1], F_SETFL, O_NONBLOCK);  // what is too much for it is lost
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    child_ = start_program(arguments, {nowhere, nowhere, pipe_ends[1]}, [] {
      setenv("LSAN_OPTIONS", "detect_leaks=0", 1);  // LeakSanitizer cannot run while traced
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    });
    close(nowhere);
    close(pipe_ends[1]);
    waitpid(child_, &status_, 0);  // at execv()
    ptrace(PTRACE_SETOPTIONS, child_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  }
  ~Traced() {
    close(err_);
    if (ended()) return;
    kill(child_, SIGKILL);
    waitpid(child_, &status_, 0);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;

  /// Goes on to where a call begins or has been done; false where the program ended instead.
  bool next_call() {
    do {
      ptrace(PTRACE_SYSCALL, child_, nullptr, signal_);
      if (waitpid(child_, &status_, 0) != child_) throw std::runtime_error("waitpid failed");
      if (ended()) return false;
      signal_ = is_call() || WSTOPSIG(status_) == SIGTRAP ? 0 : WSTOPSIG(status_);
    } while (!is_call());
    return true;
  }
  __ptrace_syscall_info call() const {
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, child_, sizeof info, &info);
    return info;
  }
  /// The call that begins fails.
  void fail(int error) {
    skip_call(child_);
    if (next_call()) set_result(child_, -error);
  }
  void send(int signal) const { kill(child_, signal); }

  /// Of a program that has ended.
  int exit_code() const { return exit_code_of(status_); }
  std::string err() const {
    std::string text(1 << 16, '\0');
    text.resize(std::max<ssize_t>(::read(err_, text.data(), text.size()), 0));
    return text;
  }

 private:
  bool ended() const { return WIFEXITED(status_) || WIFSIGNALED(status_); }
  bool is_call() const { return WSTOPSIG(status_) == (SIGTRAP | 0x80); }

  pid_t child_ = -1;
  int err_ = -1;
  int status_ = 0;
  int signal_ = 0;  // to be delivered
};

}  // namespace

TracedResult run_to_call(const std::vector<std::string>& arguments, const AtCall& at) {
  Traced program(arguments);
  bool reached = false;
  for (int left = at.number; program.next_call();) {
    if (!changes_files(program.call()) || left-- != 0) continue;
    reached = true;
    if (at.meanwhile) at.meanwhile();
    if (at.signal != 0) program.send(at.signal);
    if (at.error != 0) program.fail(at.error);
  }
  return {reached, program.exit_code(), program.err()};
}

bool can_kill_at_call() {
  const pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool can_fail_at_call() {
#if defined(__x86_64__)
  return can_kill_at_call();
#else
  return false;
#endif
}

}  // namespace phasor
