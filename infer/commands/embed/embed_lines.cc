#include "infer/commands/embed/embed_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "infer/cli/input.h"
#include "phasor/errors.h"

namespace infer {

Interrupts::Interrupts() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    // Held back, even an ignored signal would become pending.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&held, number);
    }
  }
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

Interrupts::~Interrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool Interrupts::pending() const {
  sigset_t waiting;
  sigpending(&waiting);
  return std::ranges::any_of(std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP}, [&](int number) {
    return sigismember(&waiting, number) == 1 && sigismember(&before_, number) == 0;
  });
}

std::string LineReport::text() const {
  std::vector<std::string> parts;
  if (bytes_left_out > 0) {
    parts.push_back(fmt::format("its last {} bytes were left out: lines are read up to {}",
                                bytes_left_out, kMaxLineBytes));
  }
  if (const int64_t dropped = tokens.dropped_tokens; dropped > 0) {
    parts.push_back(dropped == 1 ? "its last token was cut off"
                                 : fmt::format("its last {} tokens were cut off", dropped));
  }
  if (tokens.invalid_bytes > 0) parts.push_back(invalid_bytes_note(tokens.invalid_bytes));
  if (has_no_tokens()) parts.emplace_back("it has no tokens; its vector is zeros");
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Opening a pipe does not wait for who writes into it: fill() does, and looks at the signals.
LineReader::LineReader(const std::string& path, const Interrupts& interrupts)
    : name_(path == "-" ? "standard input" : path),
      interrupts_(interrupts),
      descriptor_(path == "-" ? STDIN_FILENO
                              : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)),
      buffer_(1 << 16) {
  struct stat status {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    throw phasor::InvalidArgument(fmt::format("{}: {}", name_, std::strerror(errno)));
  }
  if (S_ISREG(status.st_mode)) size_ = status.st_size;
}

LineReader::LineReader(std::vector<std::string> texts, const Interrupts& interrupts)
    : name_("the texts"), interrupts_(interrupts), texts_(texts.rbegin(), texts.rend()) {}

LineReader::~LineReader() {
  if (descriptor_ > STDIN_FILENO) close(descriptor_);
}

bool LineReader::ready() const {
  if (descriptor_ < 0) return true;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return begin_ < end_ || poll(&input, 1, 0) != 0;
}

// Waits for more in the buffer, which must be empty; false at the end.
bool LineReader::fill() {
  constexpr int kMilliseconds = 100;  // between two looks at the signals
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  ssize_t count = -1;
  do {
    while (poll(&input, 1, kMilliseconds) <= 0) {
      if (interrupts_.pending()) return false;
    }
    count = read(descriptor_, buffer_.data(), buffer_.size());
  } while (count < 0 && (errno == EINTR || errno == EAGAIN));
  if (count < 0) {
    throw phasor::InvalidArgument(
        fmt::format("{}: cannot be read: {}", name_, std::strerror(errno)));
  }
  begin_ = 0;
  end_ = static_cast<size_t>(count);
  return count > 0;
}

std::optional<Line> LineReader::next() {
  Line line;
  if (descriptor_ < 0) {
    if (texts_.empty()) return std::nullopt;
    line.text = std::move(texts_.back());
    texts_.pop_back();
    return line;
  }
  for (bool any = false;; any = true) {
    if (begin_ == end_ && !fill()) {
      if (!any || interrupts_.pending()) return std::nullopt;
      break;
    }
    const auto unread = buffer_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const auto stop = buffer_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto newline = std::find(unread, stop, '\n');
    const auto room = static_cast<std::ptrdiff_t>(kMaxLineBytes - line.text.size());
    const std::ptrdiff_t taken = std::min(newline - unread, room);
    line.text.append(unread, unread + taken);
    line.left_out += newline - unread - taken;
    const std::ptrdiff_t used = newline - unread + (newline != stop ? 1 : 0);
    begin_ += static_cast<size_t>(used);
    bytes_read_ += used;
    if (newline != stop) break;
  }
  if (line.left_out > 0) {  // not in the middle of a character
    while (!line.text.empty() && (line.text.back() & 0xC0) == 0x80) line.text.pop_back();
    if (!line.text.empty() && (line.text.back() & 0x80) != 0) line.text.pop_back();
  } else if (line.text.ends_with('\r')) {
    line.text.pop_back();
  }
  return line;
}

}  // namespace infer
