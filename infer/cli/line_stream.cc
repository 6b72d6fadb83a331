#include "infer/cli/line_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <stop_token>
#include <utility>

#include "files/utf8.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

using phasor::Field;
using phasor::FieldType;
using phasor::Overflow;

/// Names of options that are older than the fields' own.
constexpr std::pair<std::string_view, std::string_view> kOlder[] = {{"prompt", "--prefix"},
                                                                    {"parse_special", "--special"}};

/// Those that few people use: help names them alone.
constexpr std::string_view kRare[] = {"prompt_name", "parse_special", "truncation_side",
                                      "offset_unit", "batch_tokens"};

std::string own_option(const Field& field) {
  std::string name = fmt::format("--{}", field.name);
  std::ranges::replace(name, '_', '-');
  return name;
}

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

std::string option_of(const Field& field) {
  const auto older =
      std::ranges::find(kOlder, field.name, [](const auto& each) { return each.first; });
  const std::string own = own_option(field);
  return older == std::end(kOlder) ? own : fmt::format("{},{}", own, older->second);
}

std::string help_of(const Field& field) {
  if (field.values == nullptr) return std::string(field.help);
  return fmt::format("{}: {}{}", field.help, fmt::join(field.values(), ", "),
                     field.type == FieldType::kNames ? " (with commas)" : "");
}

std::vector<std::string> commands_of(const Field& field) {
  std::vector<std::string> commands, kinds;
  const auto names = phasor::names<phasor::VectorKind>().all;
  for (size_t kind = 0; kind < names.size(); ++kind)
    if ((field.uses & (1U << kind)) != 0) kinds.emplace_back(names[kind]);
  if (!kinds.empty())
    commands.push_back(kinds.size() == names.size()
                           ? "embed"
                           : fmt::format("embed --kinds {}", fmt::join(kinds, ",")));
  for (const auto& [use, name] : {std::pair(phasor::kUseClassify, "classify"),
                                  {phasor::kUseLabel, "label"},
                                  {phasor::kUseRank, "rank"}})
    if ((field.uses & use) != 0) commands.emplace_back(name);
  return commands;
}

void add_fields(CommandLine& line, uint32_t uses, phasor::TextOptions& options) {
  for (const Field& field : phasor::fields()) {
    if ((field.uses & uses) == 0 || field.type == FieldType::kOther) continue;
    const bool is_rare = std::ranges::count(kRare, field.name) > 0;
    const std::string names = option_of(field), help = is_rare ? "" : help_of(field);
    const CommandLine::Take take = [&field, &options, names](const std::string& text) {
      of_option(names, [&] {
        if (phasor::internal::to_valid_utf8(text).invalid_bytes > 0)
          throw phasor::InvalidArgument("it is not valid UTF-8");
        field.read(options, text);
        if (field.check != nullptr) field.check(field, options);
      });
    };
    if (field.type == FieldType::kFlag) {
      line.flag(names, help, [take] { take("true"); });
    } else if (field.type == FieldType::kSwitch) {
      const std::string negated = "--no-" + names.substr(2);
      line.flag(names, help, [take] { take("true"); });
      line.flag(negated, "", [take, &field, &options, names, negated] {
        if (field.is_set(options))
          throw UsageError(fmt::format("{} and {} exclude each other; give one", names, negated));
        take("false");
      });
    } else {
      line.option(names,
                  field.type == FieldType::kCount   ? "N"
                  : field.type == FieldType::kName  ? "NAME"
                  : field.type == FieldType::kNames ? "NAMES"
                                                    : "TEXT",
                  help, take);
    }
  }
}

void check_options(const phasor::TextOptions& options, uint32_t uses, std::string_view command) {
  for (const Field& field : phasor::fields()) {
    if ((field.uses & uses) == 0 && field.is_set(options))
      throw UsageError(fmt::format("{} does not use {}, an option of infer {}", command,
                                   own_option(field), fmt::join(commands_of(field), ", infer ")));
  }
  try {
    check_fields(options, uses, command);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

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
