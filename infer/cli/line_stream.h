// Lines in, however many and however long, and the signals that end it.
#pragma once

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/progress.h"
#include "phasor/encoder.h"

namespace infer {

/// Holds back SIGINT, SIGTERM and SIGHUP for as long as it lives, so that work ends at a good
/// place. Its end lets them through: one that has come then ends the program as it always does.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  bool pending() const;

 private:
  sigset_t before_;
};

constexpr size_t kMaxLineBytes = 1 << 20;  // what follows is left out

struct Line {
  std::string text;      // without "\n" or "\r\n"
  int64_t left_out = 0;  // bytes beyond kMaxLineBytes
};

/// What is told about a line that could not be taken as it is; empty for others.
std::string line_report(const phasor::TextReport& tokens, int64_t bytes_left_out);

/// Reads a file, or standard input for "-", line by line in bounded memory and without a byte-order
/// mark; or gives the texts it was made with. To be made before any thread begins: threads inherit
/// what signals it holds back.
class LineReader {
 public:
  /// Throws InvalidArgument where the file cannot be read. Says that a terminal is read, unless
  /// `quiet`.
  LineReader(const std::string& path, bool quiet);
  /// Gives these texts, which may hold any character.
  explicit LineReader(const std::vector<std::string>& texts)
      : name_("the texts"), texts_(texts.rbegin(), texts.rend()) {}
  ~LineReader() {
    if (descriptor_ > STDIN_FILENO) close(descriptor_);
  }

  /// Nothing at the end, and where a signal came while there was nothing to read.
  std::optional<Line> next();
  /// Whether next() has something at once.
  bool ready() const;
  int64_t bytes_read() const { return bytes_read_; }  // of the lines that next() gave
  int64_t size() const { return size_; }              // in bytes; 0 where that is not known
  const std::string& name() const { return name_; }   // for messages
  bool interrupted() const { return interrupts_.pending(); }

 private:
  bool fill();

  std::string name_;
  Interrupts interrupts_;
  std::vector<std::string> texts_;  // the last one first
  int descriptor_ = -1;
  int64_t size_ = 0;
  int64_t bytes_read_ = 0;
  std::vector<char> buffer_;
  std::string_view unread_;  // of buffer_
};

/// A line and the number by which it is chosen: the largest first, and of equal ones the first
/// line.
struct RankedLine {
  double key = 0;
  int64_t number = 0;  // from 1
  std::string text;
  double score = 0;  // what is shown where it is not the key

  bool operator<(const RankedLine& other) const { return key > other.key; }
};
using Ranking = std::multiset<RankedLine>;
/// Keeps the best `most` lines.
void add(RankedLine line, int64_t most, Ranking& ranking);

/// A hash that grows with what it is given. Tells inputs apart; no protection against malice.
class Fingerprint {
 public:
  /// Adds a piece: "ab" and "c" are not "a" and "bc".
  void add(std::string_view piece);
  std::string text() const;  // 16 hexadecimal digits

 private:
  uint64_t hash_ = 0x9E3779B97F4A7C15u;
};

/// How far a run over lines has come.
struct LinesDone {
  int64_t lines = 0;
  std::string input;  // fingerprint of the lines
};

struct StreamOptions {
  bool quiet = false;
  bool strict = false;        // a line that is cut or not all UTF-8 is an error
  bool waits = true;          // for a whole window where lines come slowly
  bool refuses_long = false;  // a line that is cut is an error that names --overflow
};

/// One run over lines, window by window, so that memory stays bounded. Borrows the lines.
class LineStream {
 public:
  /// Runs a window's texts; its result has a report(i) on each. `stop` ends it with kCancelled.
  template <typename Result>
  using Run = std::function<Result(std::span<const std::string_view> texts,
                                   const phasor::Progress& progress, const std::stop_token& stop)>;
  /// Takes a window's lines and result; `state` is what is done with them. False: no more.
  template <typename Result>
  using Sink = std::function<bool(std::span<const Line> lines, const Result& result,
                                  const LinesDone& state)>;

  LineStream(LineReader& lines, StreamOptions options) : lines_(lines), options_(options) {}

  /// Reads the lines that an earlier run has done, which made `file`. Throws InvalidArgument where
  /// it was made from others; false where a signal came.
  bool skip(const LinesDone& done, const std::string& file);
  /// To the end; false where a signal came before.
  template <typename Result>
  bool run(const Run<Result>& run_texts, const Sink<Result>& sink) {
    std::optional<Result> result;
    return run_windows(
        [&](auto texts, const auto& progress, const auto& stop) {
          result = run_texts(texts, progress, stop);
        },
        [&](int64_t i) -> const phasor::TextReport& { return result->report(i); },
        [&](auto window, const auto& state) { return sink(window, *result, state); });
  }

  int64_t lines_done() const { return done_.lines; }
  /// What was done, for people; `each` says what became of a line ("128 numbers each").
  std::string summary(const std::string& each) const;

 private:
  using Report = std::function<const phasor::TextReport&(int64_t i)>;
  bool run_windows(const Run<void>& run_texts, const Report& report,
                   const std::function<bool(std::span<const Line>, const LinesDone&)>& sink);
  bool run_window(std::span<const Line> window, const Run<void>& run_texts);
  void note(std::span<const Line> window, const Report& report, Progress& progress);
  void show(Progress& progress, int64_t bytes_before) const;

  LineReader& lines_;
  StreamOptions options_;
  Fingerprint input_;
  LinesDone done_;
  int64_t lines_cut_ = 0, lines_invalid_ = 0;
  int64_t lines_reported_ = 0;
  int64_t lines_before_ = 0;  // done by an earlier run
  double seconds_ = 0;
};

}  // namespace infer
