#include "tests/support/kill_at_call.h"

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace phasor {
namespace {

constexpr std::array kCalls = {
#ifdef SYS_rename
    SYS_rename,    SYS_unlink, SYS_mkdir,
#endif
    SYS_openat,    SYS_write,  SYS_fallocate, SYS_fsync,    SYS_fdatasync,
    SYS_ftruncate, SYS_flock,  SYS_unlinkat,  SYS_renameat, SYS_mkdirat};

}  // namespace

bool kill_at_call(const std::vector<std::string>& arguments, int calls) {
  return stop_at_call(arguments, calls, {});
}

bool stop_at_call(const std::vector<std::string>& arguments, int calls,
                  const std::function<void()>& meanwhile) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; ++descriptor) dup2(nowhere, descriptor);
    setenv("LSAN_OPTIONS", "detect_leaks=0", 1);  // LeakSanitizer cannot run while traced
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);  // at execv()
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
  bool reached = false;
  for (int signal = 0;;) {
    ptrace(PTRACE_SYSCALL, child, nullptr, signal);
    if (waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return reached;
      throw std::runtime_error("the traced program failed");
    }
    constexpr int kSystemCall = SIGTRAP | 0x80;
    signal = WSTOPSIG(status) == kSystemCall || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    if (WSTOPSIG(status) != kSystemCall) continue;
    __ptrace_syscall_info info{};
    ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
    const bool counts = info.op == PTRACE_SYSCALL_INFO_ENTRY &&
                        std::ranges::find(kCalls, info.entry.nr) != kCalls.end() &&
                        // opening to read changes nothing
                        (info.entry.nr != SYS_openat || (info.entry.args[2] & O_CREAT) != 0);
    if (!counts || calls-- != 0) continue;
    reached = true;
    if (meanwhile) {
      meanwhile();
      continue;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return true;
  }
}

bool can_kill_at_call() {
  const pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace phasor
