#include "infer/cli/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "infer/cli/terminal.h"
#include "infer/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Why a file with these first bytes is refused; null: it may be text. Known are .npy, .safetensors
/// (a size in eight bytes before its JSON) and PNG.
const char* why_no_text(std::string_view bytes) {
  const bool has_size = bytes.size() > 8 && bytes[7] == '\0' && bytes[8] == '{';
  if (has_size || bytes.starts_with("\x93NUMPY"))
    return "it is no text file; infer embed --in searches vectors";
  return bytes.starts_with("\x89PNG") ? "it is no text file" : nullptr;
}

}  // namespace

// Opening a pipe does not wait for who writes into it: read_into() does, and looks at the signals.
LineReader::LineReader(std::string file, bool quiet) : file_(std::move(file)), buffer_(1 << 16) {
  const bool standard = file_ == "-";
  descriptor_ = standard ? STDIN_FILENO : open(file_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor_ < 0) fail(why_not_opened(errno));
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
  return !unread_.empty() || !compressed_.empty() || poll(&input, 1, 0) != 0;
}

// Reads into the buffer from `begin` on, and waits for something to read; 0 at the end of the file
// and where a signal came.
size_t LineReader::read_into(size_t begin) {
  constexpr int kMilliseconds = 100;  // between two looks at the signals
  if (ended_) return 0;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  ssize_t count = -1;
  do {
    while (poll(&input, 1, kMilliseconds) <= 0) {
      if (interrupts_.pending()) return 0;
    }
    count = read(descriptor_, buffer_.data() + begin, buffer_.size() - begin);
  } while (count < 0 && (errno == EINTR || errno == EAGAIN));
  if (count < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
  file_bytes_ += count;
  ended_ = count == 0;
  return static_cast<size_t>(count);
}

// Finds out whether the file is compressed; false where a signal came.
bool LineReader::begin_file() {
  if (begun_) return true;
  size_t size = 0;
  do {
    const size_t count = read_into(size);
    if (count == 0) break;
    size += count;
  } while (Decompressor::undecided({buffer_.data(), size}));
  if (size == 0 && interrupts_.pending()) return false;
  begun_ = true;
  compressed_ = {buffer_.data(), size};
  decompressor_ = Decompressor::for_data(compressed_);
  if (decompressor_) {
    text_buffer_.resize(1 << 17);
  } else {
    unread_ = std::exchange(compressed_, {});
  }
  return true;
}

// Finds more of the file where nothing is unread; false at its end.
bool LineReader::fill() try {
  if (interrupts_.pending() || !begin_file()) return false;
  while (decompressor_ && unread_.empty()) {
    unread_ = {text_buffer_.data(), decompressor_->run(compressed_, text_buffer_)};
    if (!unread_.empty() || !compressed_.empty()) continue;
    compressed_ = {buffer_.data(), read_into(0)};
    if (!compressed_.empty()) continue;
    if (!decompressor_->complete() && !interrupts_.pending()) {
      throw DecompressionError("is damaged: it ends in the middle of compressed data");
    }
    return false;
  }
  if (unread_.empty()) unread_ = {buffer_.data(), read_into(0)};
  return !unread_.empty();
} catch (const DecompressionError& error) {
  throw phasor::InvalidArgument(fmt::format("{} {}", name(), error.what()));
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
  const bool first = text_bytes_ == 0;
  if (const char* const why = first ? why_no_text(unread_) : nullptr) fail(why);
  bool ended = false;
  while (!ended && (!unread_.empty() || fill())) {
    const size_t length = std::min(unread_.find('\n'), unread_.size());
    const size_t taken = std::min(length, kMaxLineBytes - line.text.size());
    ended = length < unread_.size();
    line.text += unread_.substr(0, taken);
    line.left_out += static_cast<int64_t>(length - taken);
    text_bytes_ += static_cast<int64_t>(length) + (ended ? 1 : 0);
    unread_.remove_prefix(length + (ended ? 1 : 0));
  }
  if (!ended && interrupts_.pending()) return std::nullopt;
  if (line.left_out > 0) {  // not in the middle of a character
    while (!line.text.empty() && (line.text.back() & 0xC0) == 0x80) line.text.pop_back();
    if (!line.text.empty() && (line.text.back() & 0x80) != 0) line.text.pop_back();
  } else if (line.text.ends_with('\r')) {
    line.text.pop_back();
  }
  if (first && line.text.starts_with("\uFEFF")) line.text.erase(0, 3);
  using namespace std::string_view_literals;
  const bool is_wide = line.text.starts_with("\xFF\xFE") || line.text.starts_with("\xFE\xFF") ||
                       line.text.starts_with("\0\0\xFE\xFF"sv);
  if (first && is_wide) {
    fail("it is not in UTF-8 but in UTF-16 or UTF-32; iconv converts it");
  }
  line.number = ++lines_;
  return line;
}

}  // namespace infer
