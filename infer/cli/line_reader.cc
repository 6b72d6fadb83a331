#include "infer/cli/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "files/files.h"
#include "files/utf8.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// zstd's frame, or a skippable one, with which pzstd begins: its first byte is 50 to 5F.
bool is_zstd(std::string_view bytes) {
  return bytes.starts_with("\x28\xB5\x2F\xFD") ||
         (bytes.size() > 3 && (bytes[0] & 0xF0) == 0x50 && bytes.substr(1, 3) == "\x2A\x4D\x18");
}

/// The digit between says how large its blocks are.
bool is_bzip2(std::string_view bytes) {
  return bytes.size() > 9 && bytes.starts_with("BZh") && bytes.substr(4, 6) == "1AY&SY";
}

bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 8 && bytes[7] == '\0' && bytes[8] == '{';
}

/// What is no text by its first bytes, and the command that makes text of it, if there is one.
struct Format {
  std::string_view name, command = {}, magic = {};
  bool (*begins)(std::string_view) = nullptr;  // where the magic does not tell
};
constexpr Format kFormats[] = {{"gzip", "zcat corpus.gz", "\x1F\x8B"},
                               {"zstd", "zstdcat corpus.zst", {}, is_zstd},
                               {"xz", "xzcat corpus.xz", "\xFD\x37zXZ"},
                               {"bzip2", "bzcat corpus.bz2", {}, is_bzip2},
                               {"lz4", "lz4cat corpus.lz4", "\x04\x22\x4D\x18"},
                               {"zip", "unzip -p corpus.zip", "PK\x03\x04"},
                               {"NumPy", {}, "\x93NUMPY"},
                               {"PNG", {}, "\x89PNG"},
                               {"safetensors", {}, {}, is_safetensors}};

/// The bytes of a character at the end of `text` whose other bytes are missing.
size_t cut_character(std::string_view text) {
  size_t size = 1;
  while (size < 4 && size < text.size() &&
         phasor::internal::is_inside_character(text[text.size() - size]))
    ++size;
  const auto first = static_cast<unsigned char>(text[text.size() - size]);
  const size_t whole = first < 0xC0 || first > 0xF7 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  return size < whole ? size : 0;
}

/// What is said of bytes that files of other systems have in their lines; null where there are
/// none.
const char* oddity_of(std::string_view line) {
  if (line.find('\0') != line.npos)
    return "it has NUL bytes, as UTF-16 and UTF-32 have; iconv converts these to UTF-8";
  const size_t last = line.find_last_not_of('\r');
  if (last != line.npos && line.find('\r') < last)
    return "it has carriage returns inside, which end lines of old Macs; tr '\\r' '\\n' converts "
           "them";
  return nullptr;
}

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

}  // namespace

// Opening a pipe does not wait for who writes into it: fill() does, and looks at the signals.
LineReader::LineReader(std::string file, bool quiet) : file_(std::move(file)), buffer_(1 << 16) {
  const bool standard = file_ == "-";
  descriptor_ = standard ? STDIN_FILENO : open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0) fail(phasor::internal::why_not_opened(errno));
  struct stat status {};
  if (fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) size_ = status.st_size;
  if (standard && !quiet && isatty(STDIN_FILENO) != 0) {
    report_note("reading lines from the terminal; Ctrl-D ends them");
  }
}

LineReader::~LineReader() {
  if (descriptor_ > STDIN_FILENO) close(descriptor_);
}

void LineReader::fail(const std::string& what) const {
  throw phasor::InvalidArgument(fmt::format("{}: {}", name(), what));
}

std::string LineReader::name() const {
  return file_.empty() ? "the texts" : file_ == "-" ? "standard input" : file_;
}

bool LineReader::ready() const {
  if (descriptor_ < 0) return true;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return !unread_.empty() || poll(&input, 1, 0) != 0;
}

// Waits for something to read; false at the end of the file and where a signal came.
bool LineReader::fill() {
  constexpr int kMilliseconds = 100;  // between two looks at the signals
  if (ended_ || interrupts_.pending()) return false;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  ssize_t count = -1;
  do {
    while (poll(&input, 1, kMilliseconds) <= 0) {
      if (interrupts_.pending()) return false;
    }
    count = read(descriptor_, buffer_.data(), buffer_.size());
  } while (count < 0 && (errno == EINTR || errno == EAGAIN));
  if (count < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  unread_ = {buffer_.data(), static_cast<size_t>(count)};
  ended_ = count == 0;
  return !ended_;
}

void LineReader::refuse_other_formats(std::string_view beginning) const {
  using namespace std::string_view_literals;
  for (const auto& [name, command, magic, begins] : kFormats) {
    if (begins != nullptr ? !begins(beginning) : !beginning.starts_with(magic)) continue;
    if (command.empty()) fail(fmt::format("it is no text file, but in the format {}", name));
    fail(
        fmt::format("it is compressed by {}; make a text file of it first, as in: {} > corpus.txt "
                    "&& infer embed -i corpus.txt -o v.npy",
                    name, command));
  }
  if (beginning.starts_with("\xFF\xFE") || beginning.starts_with("\xFE\xFF") ||
      beginning.starts_with("\0\0\xFE\xFF"sv)) {
    fail("it is not in UTF-8 but in UTF-16 or UTF-32; iconv converts it");
  }
}

std::optional<Line> LineReader::next() {
  Line line;
  if (file_.empty()) {
    if (texts_.empty()) return std::nullopt;
    line.text = std::move(texts_.back());
    texts_.pop_back();
    line.number = ++lines_;
    return line;
  }
  if (unread_.empty() && !fill()) return std::nullopt;
  const bool first = lines_ == 0;
  if (first) refuse_other_formats(unread_);
  bool ended = false;
  char last = '\0';
  while (!ended && (!unread_.empty() || fill())) {
    const size_t length = std::min(unread_.find('\n'), unread_.size());
    const size_t taken = std::min(length, kMaxLineBytes - line.text.size());
    ended = length < unread_.size();
    line.text += unread_.substr(0, taken);
    line.left_out += static_cast<int64_t>(length - taken);
    if (length > 0) last = unread_[length - 1];
    bytes_ += static_cast<int64_t>(length) + (ended ? 1 : 0);
    unread_.remove_prefix(length + (ended ? 1 : 0));
  }
  if (!ended && interrupts_.pending()) return std::nullopt;
  if (first) refuse_other_formats(line.text);  // which may have come byte by byte
  if (last == '\r') {                          // of "\r\n"
    if (line.left_out > 0)
      --line.left_out;
    else
      line.text.pop_back();
  }
  if (line.left_out > 0) {  // not in the middle of a character
    const size_t cut = cut_character(line.text);
    line.text.resize(line.text.size() - cut);
    line.left_out += static_cast<int64_t>(cut);
  }
  if (first && line.text.starts_with("\uFEFF")) line.text.erase(0, 3);
  line.number = ++lines_;
  line.oddity = oddity_of(line.text);
  // Then all of the file is. Of other scripts UTF-16 has its first NUL after the end of a line.
  if (line.number <= 2 && line.oddity != nullptr)
    fail(fmt::format("line {}: {}", line.number, line.oddity));
  return line;
}

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
