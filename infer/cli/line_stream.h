// A run over lines, window by window.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "infer/cli/line_reader.h"
#include "infer/cli/terminal.h"
#include "phasor/encoder.h"

namespace infer {

/// What is told about a line that could not be taken as it is; empty for others.
std::string line_report(const phasor::TextReport& tokens, const Line& line = {});

/// A line and the number by which it is chosen: the largest first, and of equal ones the first
/// line.
struct RankedLine {
  double key = 0;
  int64_t number = 0;  // from 1
  std::string text;
  double score = 0;  // what is shown where it is not the key

  bool operator<(const RankedLine& other) const {
    return key != other.key ? key > other.key : number < other.number;
  }
};
using Ranking = std::multiset<RankedLine>;
/// Keeps the best `most` lines; the text of another is not copied.
void add(double key, const Line& line, int64_t most, Ranking& ranking, double score = 0);

struct StreamOptions {
  bool quiet = false;
  bool strict = false;        // a line that is cut or not all UTF-8 is an error
  bool waits = true;          // for a whole window where lines come slowly
  bool refuses_long = false;  // a line that is cut is an error that names --overflow
  int64_t line_bytes = 0;     // of a line's result; wide ones make windows of fewer lines
};

/// One run over lines, window by window, so that memory stays bounded. Borrows the lines.
class LineStream {
 public:
  /// Runs a window's texts; its result has reports on each. `stop` ends it with kCancelled.
  template <typename Result>
  using Run = std::function<Result(std::span<const std::string_view> texts,
                                   const phasor::Progress& progress, const std::stop_token& stop)>;
  /// Takes a window's lines and result. False: no more.
  template <typename Result>
  using Sink = std::function<bool(std::span<const Line> lines, const Result& result)>;

  LineStream(LineReader& lines, StreamOptions options) : lines_(lines), options_(options) {}

  /// To the end; false where a signal came before. Throws InvalidArgument for a file without lines.
  template <typename Result>
  bool run(const Run<Result>& run_texts, const Sink<Result>& sink) {
    std::optional<Result> result;
    return run_windows(
        [&](auto texts, const auto& progress, const auto& stop) {
          result.reset();  // two windows' results are never held at once
          result = run_texts(texts, progress, stop);
        },
        [&](int64_t i) { return result->reports[i]; },
        [&](auto window) { return sink(window, *result); });
  }

  /// What was done, for people; `each` says what became of a line ("128 numbers each").
  std::string summary(const std::string& each) const;
  double seconds() const { return seconds_; }  // that it took

 private:
  using Report = std::function<phasor::TextReport(int64_t i)>;
  bool run_windows(const Run<void>& run_texts, const Report& report,
                   const std::function<bool(std::span<const Line>)>& sink);
  bool run_window(std::span<const Line> window, const Run<void>& run_texts);
  void note(std::span<const Line> window, const Report& report, ProgressLine& progress);
  void show(ProgressLine& progress) const;

  LineReader& lines_;
  StreamOptions options_;
  int64_t lines_done_ = 0;
  int64_t lines_cut_ = 0, lines_invalid_ = 0, lines_odd_ = 0;
  int64_t lines_reported_ = 0;
  double seconds_ = 0;
};

}  // namespace infer
