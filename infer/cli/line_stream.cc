#include "infer/cli/line_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

// Lines that are read at once.
constexpr int64_t kWindowLines = 1024;
constexpr size_t kWindowBytes = 1 << 17;
constexpr int64_t kWindowResultBytes = 1 << 24;  // or one line

constexpr int64_t kReportedLines = 5;  // one by one; further ones are only counted

}  // namespace

std::string line_report(const phasor::TextReport& tokens, const Line& line) {
  std::vector<std::string> parts;
  if (line.left_out > 0) {
    parts.push_back(fmt::format("its end, {} byte{}, was left out: lines are read up to {} bytes",
                                line.left_out, line.left_out == 1 ? "" : "s", kMaxLineBytes));
  }
  if (line.oddity != nullptr) parts.emplace_back(line.oddity);
  if (const int64_t dropped = tokens.dropped_tokens; dropped > 0) {  // of a pair, of either text
    parts.push_back(fmt::format("{} token{} cut off", dropped, dropped == 1 ? " was" : "s were"));
  }
  if (tokens.invalid_bytes > 0) parts.push_back(invalid_bytes_note(tokens.invalid_bytes));
  if (tokens.num_tokens == 0) parts.emplace_back("it has no tokens; its vector is zeros");
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add(double key, const Line& line, int64_t most, Ranking& ranking, double score) {
  RankedLine ranked{.key = key, .number = line.number, .text = {}, .score = score};
  if (!ranking.empty() && std::ssize(ranking) == most && !(ranked < *ranking.rbegin())) return;
  ranked.text = line.text;
  ranking.insert(std::move(ranked));
  if (std::ssize(ranking) > most) ranking.erase(std::prev(ranking.end()));
}

bool LineStream::run_windows(const Run<void>& run_texts, const Report& report,
                             const std::function<bool(std::span<const Line>)>& sink) {
  ProgressLine progress(options_.quiet);
  const auto most_lines = static_cast<size_t>(std::clamp<int64_t>(
      kWindowResultBytes / std::max<int64_t>(options_.line_bytes, 1), 1, kWindowLines));
  while (!lines_.interrupted()) {
    std::vector<Line> window;
    for (size_t bytes = 0; window.size() < most_lines && bytes < kWindowBytes;) {
      if (!options_.waits && !window.empty() && !lines_.ready()) break;
      std::optional<Line> line = lines_.next();
      if (!line) break;
      bytes += line->text.size();
      window.push_back(std::move(*line));
    }
    if (window.empty()) break;
    if (!run_window(window, run_texts)) break;
    note(window, report, progress);
    lines_done_ += std::ssize(window);
    if (!sink(window)) break;
    show(progress);
  }
  seconds_ = progress.seconds();
  if (lines_.interrupted()) return false;
  if (lines_done_ == 0) lines_.refuse_empty();
  return true;
}

// False where a signal came.
bool LineStream::run_window(std::span<const Line> window, const Run<void>& run_texts) {
  std::vector<std::string_view> texts;
  for (const Line& line : window) texts.push_back(line.text);
  std::stop_source stop;
  const auto progress = [&](int64_t, int64_t) {
    if (lines_.interrupted()) stop.request_stop();
  };
  try {
    run_texts(texts, progress, stop.get_token());
  } catch (const phasor::Error& error) {
    if (error.code() != phasor::ErrorCode::kCancelled) throw;
    return false;
  }
  return true;
}

void LineStream::note(std::span<const Line> window, const Report& report_on,
                      ProgressLine& progress) {
  for (int64_t i = 0; i < std::ssize(window); ++i) {
    const phasor::TextReport tokens = report_on(i);
    const std::string report = line_report(tokens, window[i]);
    if (report.empty()) continue;
    const std::string where = fmt::format("line {}", window[i].number);
    const int64_t run = tokens.num_tokens, dropped = tokens.dropped_tokens;
    const std::string text = fmt::format("{}: {}", where, report);
    const bool too_long = options_.refuses_long && dropped > 0;
    if (too_long || options_.strict) progress.clear();
    if (too_long) {
      throw phasor::InvalidArgument(
          fmt::format("{}: {} tokens are too many: at most {} are run; shorten it or choose "
                      "another --overflow (truncate, clamp, interpolate, window)",
                      where, run + dropped, run));
    }
    if (options_.strict) {
      throw phasor::InvalidArgument(text + "; without --strict this is no error");
    }
    lines_cut_ += dropped > 0 || window[i].left_out > 0 ? 1 : 0;
    lines_invalid_ += tokens.invalid_bytes > 0 ? 1 : 0;
    lines_odd_ += window[i].oddity != nullptr ? 1 : 0;
    if (options_.quiet || ++lines_reported_ > kReportedLines + 1) continue;
    progress.clear();
    report_note(lines_reported_ <= kReportedLines ? text : "further such lines are only counted");
  }
}

void LineStream::show(ProgressLine& progress) const {
  const std::string text = fmt::format("{} lines, {:.0f}/s", lines_done_,
                                       static_cast<double>(lines_done_) / progress.seconds());
  const auto size = static_cast<double>(lines_.size());
  const auto done = static_cast<double>(lines_.bytes_read());
  if (lines_.size() == 0 || done > size) return progress.show(text);
  progress.show(fmt::format("{}, {:.0f} %, {:.0f} s left", text, 100 * done / size,
                            (size - done) / done * progress.seconds()));
}

std::string LineStream::summary(const std::string& each) const {
  const int64_t lines = lines_done_;
  std::string text =
      fmt::format("{} {}, {}, in {:.1f} s ({:.0f} lines/s)", lines, lines == 1 ? "line" : "lines",
                  each, seconds_, seconds_ > 0 ? static_cast<double>(lines) / seconds_ : 0);
  if (lines_cut_ > 0) text += fmt::format("; too long and cut: {}", lines_cut_);
  if (lines_invalid_ > 0) text += fmt::format("; not all UTF-8: {}", lines_invalid_);
  if (lines_odd_ > 0) text += fmt::format("; with NUL or carriage return: {}", lines_odd_);
  return text;
}

}  // namespace infer
