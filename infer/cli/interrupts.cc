#include "infer/cli/interrupts.h"

#include <algorithm>
#include <array>

namespace infer {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

Interrupts::Interrupts() {
  if (alive_++ > 0) return;
  sigset_t held;
  sigemptyset(&held);
  for (const int number : kSignals) {
    struct sigaction action {};
    // Held back, even an ignored signal would become pending.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&held, number);
    }
  }
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

Interrupts::~Interrupts() {
  if (--alive_ == 0) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool Interrupts::pending() const {
  sigset_t waiting;
  sigpending(&waiting);
  return std::ranges::any_of(kSignals, [&](int number) {
    return sigismember(&waiting, number) == 1 && sigismember(&before_, number) == 0;
  });
}

}  // namespace infer
