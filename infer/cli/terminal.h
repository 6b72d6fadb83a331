// What a terminal is shown: stdout, columns that line up, bars, how far work has come, and the one
// line of an error.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "files/json_writer.h"
#include "files/utf8.h"
#include "phasor/progress.h"

namespace infer {

using phasor::internal::json_object;
using phasor::internal::JsonWriter;
using phasor::internal::printable;

/// Standard output. A reader that went away (`infer … | head -1`) is no error; a full disk is.
class Output {
 public:
  Output();
  /// Throws InvalidArgument where stdout cannot be written.
  void write(std::string_view text);
  /// Lines for people: on a terminal none is wider than it.
  void show(std::string_view text);
  bool closed() const { return closed_; }            // nobody reads any more
  int width() const { return width_; }               // in columns; 100 where stdout is no terminal
  std::string heading(std::string_view text) const;  // bold where there are colours
  std::string tinted(std::string_view text) const;   // green, likewise
  /// `label` and what fits of `text` behind it, as a line.
  std::string labelled(const std::string& label, std::string_view text) const;

 private:
  bool colours_ = false;
  bool closed_ = false;
  int width_ = 100;
  bool terminal_ = false;
};

/// Where nobody can read it, nothing is written, and nothing else happens.
void write_stderr(std::string_view text);
/// `infer: message` on stderr, in one line whatever the message holds; returns `code`.
int report_error(std::string_view message, int code);
/// The same for the exception being handled; returns its exit code.
int report_current_exception();
/// Something worth knowing, on stderr.
void report_note(std::string_view message);

/// Columns that printable `text` takes: 2 for a CJK character, 0 for a combining mark.
int display_width(std::string_view text);
std::string pad_left(std::string_view text, int width);
std::string pad_right(std::string_view text, int width);
/// Broken between words into lines of up to `width` columns; the first is `indent` columns short,
/// the others begin with so many spaces.
std::string wrapped(std::string_view text, int indent, int width);

/// Lines wider than `width` columns broken, between words if possible, and continued below the
/// second column of a list, or else two columns further in where the line is indented.
std::string fitted(std::string_view text, int width);

/// `line` without blanks at its end, but with "\n".
std::string trimmed(std::string line);
/// The beginning of `text` before "…" where it takes more than `width` columns.
std::string cut_right(std::string_view text, int width);
/// The end of `text` behind "…" where it takes more than `width` columns.
std::string cut_left(std::string_view text, int width);

/// `share` of `width` columns filled; share is clipped to 0 … 1.
std::string bar(double share, int width);

/// A row of a table whose columns are tokens.
struct TokenRow {
  std::string label;
  std::vector<std::string> cells;
};

/// The rows under each other, broken where `width` is used up; indented by two.
std::string token_table(const std::vector<TokenRow>& rows, int width);

/// Says nothing during the first second, without a terminal, or with -q, and is drawn at most ten
/// times a second. The line is wiped away in the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text) {
    if (!enabled_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(100);
    shown_ = true;
    write_stderr(fmt::format("\r{}\033[K", printable(text)));
  }
  /// For the library: a stage has come to `done` of `total`. Borrows this.
  phasor::StageProgress stages() {
    return [this](std::string_view stage, int64_t done, int64_t total) {
      if (enabled_) show(fmt::format("{}: {} of {}", stage, done, total));
    };
  }
  /// Makes room for another line.
  void clear() {
    if (shown_) write_stderr("\r\033[K");
    shown_ = false;
  }
  double seconds() const {  // since the beginning
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now(), next_ = start_ + std::chrono::seconds(1);
};

}  // namespace infer
