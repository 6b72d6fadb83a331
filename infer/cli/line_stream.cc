#include "infer/cli/line_stream.h"

#include <fmt/ranges.h>

#include <utility>

namespace infer {
namespace {

using phasor::Overflow;

// Lines that are read at once.
constexpr int64_t kWindowLines = 1024;
constexpr size_t kWindowBytes = 1 << 17;
constexpr int64_t kWindowResultBytes = 1 << 24;  // or one line

constexpr int64_t kReportedLines = 5;  // one by one; further ones are only counted
constexpr double kLongRun = 10;        // seconds, after which a choice of precision pays

/// What is told of a run, line by line and in the end.
class LineNotes {
 public:
  LineNotes(const TextArguments& given, const LineReader& lines)
      : progress(given.common.quiet), given_(given), lines_(lines) {}

  /// Throws InvalidArgument for a line that is to be an error.
  void add(const Line& line, const phasor::TextReport& tokens) {
    const std::string report = line_report(tokens, line);
    ++num_lines;
    if (report.empty()) return;
    const std::string text = fmt::format("line {}: {}", line.number, report);
    const int64_t run = tokens.num_tokens, dropped = tokens.dropped_tokens;
    const bool too_long = given_.how.overflow == Overflow::kError && dropped > 0;
    if (too_long || given_.strict) progress.clear();
    if (too_long) {
      throw phasor::InvalidArgument(
          fmt::format("line {}: {} tokens are too many: at most {} are run; shorten it or choose "
                      "another --overflow (truncate, clamp, interpolate, window)",
                      line.number, run + dropped, run));
    }
    if (given_.strict) throw phasor::InvalidArgument(text + "; without --strict this is no error");
    num_cut_ += dropped > 0 || line.left_out > 0 ? 1 : 0;
    num_invalid_ += tokens.invalid_bytes > 0 ? 1 : 0;
    num_odd_ += line.oddity != nullptr ? 1 : 0;
    if (given_.common.quiet || ++num_reported_ > kReportedLines + 1) return;
    progress.clear();
    report_note(num_reported_ <= kReportedLines ? text : "further such lines are only counted");
  }

  void show_progress() {
    const double seconds = progress.seconds();
    const std::string text =
        fmt::format("{} lines, {:.0f}/s", num_lines, static_cast<double>(num_lines) / seconds);
    const auto size = static_cast<double>(lines_.size());
    const auto done = static_cast<double>(lines_.bytes_read());
    if (lines_.size() == 0 || done > size) return progress.show(text);
    progress.show(fmt::format("{}, {:.0f} %, {:.0f} s left", text, 100 * done / size,
                              (size - done) / done * seconds));
  }

  /// `each` says what became of a line ("128 numbers each"), after so many seconds.
  void finish(const std::string& each, double seconds) const {
    if (given_.common.quiet) return;
    std::string text = fmt::format("{} {}, {}, in {:.1f} s ({:.0f} lines/s)", num_lines,
                                   num_lines == 1 ? "line" : "lines", each, seconds,
                                   seconds > 0 ? static_cast<double>(num_lines) / seconds : 0);
    if (num_cut_ > 0) text += fmt::format("; too long and cut: {}", num_cut_);
    if (num_invalid_ > 0) text += fmt::format("; not all UTF-8: {}", num_invalid_);
    if (num_odd_ > 0) text += fmt::format("; with NUL or carriage return: {}", num_odd_);
    report_note(text);
    const bool is_long = seconds > kLongRun && isatty(STDERR_FILENO) != 0;
    const std::string faster = is_long ? faster_note(given_.common) : "";
    if (!faster.empty()) report_note(faster);
  }

  ProgressLine progress;
  int64_t num_lines = 0;

 private:
  const TextArguments& given_;
  const LineReader& lines_;
  int64_t num_cut_ = 0, num_invalid_ = 0, num_odd_ = 0, num_reported_ = 0;
};

}  // namespace

LineReader lines_of(const TextArguments& given) {
  const bool reads = given.words.empty() || given.words == std::vector<std::string>{"-"};
  if (!reads) return LineReader(read_texts(given.words));
  return LineReader(given.input.value_or("-"), given.common.quiet);
}

void tell(const TextArguments& given, const phasor::Model& model, bool has_prompt) {
  if (given.common.quiet) return;
  note_slow(precision_of(given.common));
  const std::string prompt = has_prompt ? prompt_of(given.how, model.text()) : "";
  if (!prompt.empty() && !given.how.prompt) {
    report_note(
        fmt::format("before every text: \"{}\" (config_sentence_transformers.json)", prompt));
  }
  for (const std::string& note : model.notes()) report_note(note);
}

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

void add(double key, const Line& line, int64_t most, Ranking& ranking,
         std::optional<double> score) {
  RankedLine ranked{.key = key, .number = line.number, .text = {}, .score = score.value_or(key)};
  if (!ranking.empty() && std::ssize(ranking) == most && !(ranked < *ranking.rbegin())) return;
  ranked.text = line.text;
  ranking.insert(std::move(ranked));
  if (std::ssize(ranking) > most) ranking.erase(std::prev(ranking.end()));
}

void print(Output& output, const std::string& query, const Ranking& ranking, int decimals,
           const char* json_name,
           const std::function<void(const RankedLine&, JsonWriter&)>& write_numbers) {
  if (json_name != nullptr) {
    JsonWriter json;
    json.object([&] {
      json.member("query", query);
      json.key(json_name).array(ranking, [&](const RankedLine& line) {
        json.object([&] {
          json.member("line", line.number);
          write_numbers(line, json);
          json.member("text", line.text);
        });
      });
    });
    return output.write(json.take() + "\n");
  }
  std::string text = output.heading(printable(query)) + "\n";
  for (const auto& [key, number, line, score] : ranking) {
    text += output.labelled(
        fmt::format("  {:{}.{}f}  line {:<7} ", score, 2 * decimals, decimals, number), line);
  }
  output.show(text);
}

int LineRun::operator()(const TextArguments& given, LineReader& lines) const {
  LineNotes notes(given, lines);
  std::stop_source stop;
  phasor::TextOptions how = given.how;
  // The library does not know the line's number: the text is cut, and the line refused.
  if (how.overflow == Overflow::kError) how.overflow = Overflow::kTruncate;
  how.stop = stop.get_token();
  how.progress = [&](int64_t, int64_t) {
    if (lines.interrupted()) stop.request_stop();
  };
  const auto most_lines = static_cast<size_t>(
      std::clamp<int64_t>(kWindowResultBytes / std::max<int64_t>(line_bytes, 1), 1, kWindowLines));
  while (!lines.interrupted()) {
    std::vector<Line> window;
    for (size_t bytes = 0; window.size() < most_lines && bytes < kWindowBytes;) {
      if (!waits && !window.empty() && !lines.ready()) break;
      std::optional<Line> line = lines.next();
      if (!line) break;
      bytes += line->text.size();
      window.push_back(std::move(*line));
    }
    if (window.empty()) break;
    std::vector<std::string_view> texts;
    for (const Line& line : window) texts.push_back(line.text);
    const phasor::TextReports* reports = nullptr;
    try {
      reports = run(texts, how);
    } catch (const phasor::Error& error) {
      if (error.code() != phasor::ErrorCode::kCancelled) throw;
      break;
    }
    for (size_t i = 0; i < window.size(); ++i) notes.add(window[i], (*reports)[i]);
    if (!write(window)) break;
    notes.show_progress();
  }
  const double seconds = notes.progress.seconds();
  notes.progress.clear();
  if (lines.interrupted())
    return report_error("interrupted", kBadInput);  // the signal ends the program
  if (notes.num_lines == 0) lines.refuse_empty();
  notes.finish(finish(), seconds);
  return 0;
}

}  // namespace infer
