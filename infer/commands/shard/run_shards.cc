// infer shard run: embeds shards. A shard's file gets its name when it is complete and on the disk;
// then its record is written, in the same way, and the shard is done.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "files/corpus/fingerprint.h"
#include "files/corpus/temporary_file.h"
#include "infer/cli/line_stream.h"
#include "infer/cli/progress.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/shard/shard.h"
#include "infer/commands/shard/shard_files.h"
#include "infer/files.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunDescription = "Embeds shards of a folder that infer shard plan has made.";

constexpr const char* kRunFooter = R"(
SHARD is a number, a range like 0-99, or -: then numbers and ranges are read from standard
input, one a line, and the model stays loaded until it ends. Without SHARD, all that are left
are run. Processes that run the same shards at the same time all compute them: give each shards
of its own.

A shard that is done is left alone. --verify reads its file, too, and runs the shard again if
the file is damaged; without SHARD, it does so for all shards. After a shard that fails, the
next ones are run; the exit code is that of the first failure.

Examples:
  infer shard run shards
  infer shard run shards 7 20-29
  infer shard status --left shards | infer shard run --json shards -)";

struct RunArguments {
  CommonOptions common;
  std::string folder;
  std::vector<std::string> shards;
  bool verify = false;
};

std::optional<int> parse_arguments(int argc, char** argv, RunArguments& arguments) {
  CommandLine line("infer shard run", kRunDescription, kRunFooter);
  arguments.common.model.clear();  // the plan's
  line.option("FOLDER", "", "that infer shard plan has made", arguments.folder);
  line.words("SHARD", "which shards, see below", arguments.shards);
  line.option("-m,--model", "DIR", "the model's folder, where it is another on this machine",
              arguments.common.model);
  add_links(line, arguments.common);
  line.flag("--verify", "read the files of shards that are done, too", arguments.verify);
  add_threads(line, arguments.common);
  add_json_and_quiet(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return done;
  if (arguments.folder.empty())
    throw UsageError("shard run: name the folder that infer shard plan has made");
  return std::nullopt;
}

/// "7" or "0-99" as the first and the last. Throws UsageError (no range) or InvalidArgument.
std::pair<int64_t, int64_t> parse_shards(const Plan& plan, const std::string& word) {
  const size_t dash = word.find('-');
  const auto first = parse_number<int64_t>(std::string_view(word).substr(0, dash));
  const auto last =
      dash == word.npos ? first : parse_number<int64_t>(std::string_view(word).substr(dash + 1));
  if (!first || !last || *first > *last) {
    throw UsageError(fmt::format("'{}' is not a shard; write a number or a range like 0-99", word));
  }
  if (*first < 0 || *last >= plan.size()) {
    throw phasor::InvalidArgument(
        fmt::format("there is no shard {}; {} has {}", word, plan.folder.string(),
                    plan.size() == 0 ? "none" : fmt::format("0 to {}", plan.size() - 1)));
  }
  return {*first, *last};
}

/// Of the bits of a few vectors: machines that compute the same agree in it.
std::string arithmetic_of(Embedder& embedder) {
  std::vector<std::string> texts(1, "Tom bit a dog.");
  for (int i = 0; i < 4; ++i)
    texts.push_back(texts.back() + " " + texts.back() + " A dog bit Tom.");
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const phasor::Embeddings vectors = embedder.run(views, {}, {});
  Fingerprint fingerprint;
  fingerprint.add(std::as_bytes(vectors.values()));
  return fingerprint.text();
}

/// Runs one shard after another with the same model, which is loaded for the first shard that is
/// not done.
class Runner {
 public:
  Runner(Plan plan, const RunArguments& arguments)
      : plan_(std::move(plan)), arguments_(arguments), progress_(arguments.common.quiet) {}

  /// Runs these; false where a signal came.
  bool run(int64_t first, int64_t last) {
    for (int64_t shard = first; shard <= last; ++shard) {
      if (interrupts_.pending() || !run(shard)) return false;
    }
    return true;
  }

  bool interrupted() const { return interrupts_.pending(); }
  const Plan& plan() const { return plan_; }
  int exit_code() const { return exit_code_; }

  std::string summary() const {
    std::string text = fmt::format("{} shard{} with {} lines written in {:.1f} s ({:.0f} lines/s)",
                                   written_, written_ == 1 ? "" : "s", lines_, progress_.seconds(),
                                   static_cast<double>(lines_) / progress_.seconds());
    if (done_ > 0) text += fmt::format("; done already: {}", done_);
    if (failed_ > 0) {
      text += fmt::format("; failed: {}; when that is put right, run the same again", failed_);
    }
    return text;
  }

 private:
  /// Loads the model. Throws what concerns all shards.
  void start() {
    embedder_.emplace(plan_.options);
    const MadeWith& planned = plan_.format.made_with;
    const MadeWith now = embedder_->made_with();
    for (const Difference& difference : differences(planned, now)) {
      throw phasor::InvalidArgument(fmt::format(
          "{}: it was planned with {}; run it with what it was planned with, or plan into a new "
          "folder",
          plan_.folder.string(), text_of(difference, planned, now)));
    }
    arithmetic_ = arithmetic_of(*embedder_);
    embedder_->stream.shows_progress = false;
  }

  bool run(int64_t shard) {
    check_plan();
    if (const auto record = existing(shard)) {
      ++done_;
      tell(shard, "done", 0, "");
      return true;
    }
    if (!embedder_) start();
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    try {
      if (!write(shard, seconds)) return false;
    } catch (const std::exception& error) {
      if (reader_) reader_->close_file();  // it may be in the middle of anything
      ++failed_;
      tell(shard, "failed", seconds(), error.what());
      const int code = report_current_exception();
      if (exit_code_ == 0) exit_code_ = code;
      return true;
    }
    lines_ += plan_.lines_of(shard);
    ++written_;
    tell(shard, "written", seconds(), "");
    return true;
  }

  /// Of a shard that is done and need not be run again.
  std::optional<ShardRecord> existing(int64_t shard) {
    try {
      const auto record = ShardRecord::read(plan_, shard);
      if (record && arguments_.verify) record->verify(plan_, shard);
      return record;
    } catch (const phasor::Error& error) {
      progress_.clear();
      if (!arguments_.common.quiet) report_note(fmt::format("{}; it is made again", error.what()));
      return std::nullopt;
    }
  }

  /// Makes the file and the record; false where a signal came.
  template <typename Seconds>
  bool write(int64_t shard, const Seconds& seconds) {
    const int64_t lines = plan_.lines_of(shard);
    make_group(shard);
    const auto [inputs, last_file] = check_inputs(shard);
    if (!reader_) {
      reader_.emplace(plan_.files(), true);
      reader_->refuse_pipes();
    }
    reader_->go_to(plan_.shards[shard].begin);
    reader_->stop_after(lines, last_file);

    const std::string header = plan_.header_of(shard);
    TemporaryFile file(fmt::format("shard {}", shard), plan_.file_of(shard),
                       {.reserve = plan_.bytes_of(shard).value_or(0)});
    Fingerprint fingerprint;
    ShardRecord record;
    const auto append = [&](std::string_view bytes) {
      file.write(std::as_bytes(std::span(bytes)));
      fingerprint.add(std::as_bytes(std::span(bytes)));
      record.bytes += std::ssize(bytes);
    };
    append(header);
    LineStream stream(*reader_, embedder_->stream);
    const auto embed = [&](auto texts, const auto& progress, const auto& stop) {
      return embedder_->run(texts, progress, stop);
    };
    const auto sink = [&](auto window, const phasor::Embeddings& vectors, const LinesDone& done) {
      append(plan_.format.rows(vectors.values(),
                               plan_.first_line(shard) + done.lines - std::ssize(window) + 1));
      progress_.show(
          fmt::format("shard {} of {}: {} of {} lines; {} shards written, {:.0f} lines/s", shard,
                      plan_.size(), done.lines, lines, written_,
                      static_cast<double>(lines_ + done.lines) / progress_.seconds()));
      return true;
    };
    if (!stream.run<phasor::Embeddings>(embed, sink)) return false;
    if (stream.done().lines != lines || stream.fingerprint() != plan_.shards[shard].fingerprint) {
      refuse_input(inputs,
                   fmt::format("the lines of shard {} are not those that were planned", shard));
    }
    check_plan();
    file.commit();
    record.made_with = plan_.format.made_with;
    record.lines = lines;
    record.input = plan_.input_of(shard);
    record.xxh64 = fingerprint.text();
    record.plan = plan_.id;
    record.arithmetic = arithmetic_;
    record.host = host_name();
    record.seconds = seconds();
    record.lines_cut = stream.lines_cut();
    record.lines_invalid = stream.lines_invalid();
    record.write(plan_, shard);
    if (!file.is_current() && fingerprint_of(plan_.file_of(shard)) != record.xxh64) {
      unlink(plan_.record_of(shard).c_str());
      throw phasor::InvalidArgument(
          fmt::format("shard {}: another machine, which computes other last digits, has replaced "
                      "it at the same time; run it again",
                      shard));
    }
    return true;
  }

  /// Throws if the folder holds another plan by now.
  void check_plan() const {
    if (as_input("", [&] { return fingerprint_of(plan_.folder / "plan.json"); }) == plan_.id)
      return;
    throw phasor::InvalidArgument(
        fmt::format("{}: the plan has been replaced; run its shards anew", plan_.folder.string()));
  }

  [[noreturn]] void refuse_input(const std::string& file, const std::string& why) const {
    throw phasor::InvalidArgument(
        fmt::format("{}: {}; put back the file as it was, or plan into a new folder", file, why));
  }

  /// The names of the files that hold the shard's lines, which must be as long as they were, and
  /// the number of the last.
  std::pair<std::string, int64_t> check_inputs(int64_t shard) const {
    std::string names;
    int64_t left = plan_.lines_of(shard);
    const Place& begin = plan_.shards[shard].begin;
    int64_t i = begin.file;
    for (; i < std::ssize(plan_.inputs) && left > 0; ++i) {
      const Plan::Input& input = plan_.inputs[i];
      left -= input.lines - (i == begin.file ? begin.line : 0);
      struct stat status {};
      if (stat(input.file.c_str(), &status) != 0) refuse_input(input.file, why_not_opened(errno));
      if (!S_ISREG(status.st_mode)) refuse_input(input.file, "it is not a regular file");
      if (status.st_size != input.bytes) {
        refuse_input(input.file, fmt::format("it has {} bytes, and had {} when it was planned",
                                             status.st_size, input.bytes));
      }
      names += (names.empty() ? "" : ", ") + input.file;
    }
    return {names, i - 1};
  }

  void make_group(int64_t shard) const {
    const fs::path group = plan_.group_of(shard);
    ShardFiles::refuse_link(group);
    if (mkdir(group.c_str(), 0777) == 0) {
      sync_name(plan_.group_of(shard));
    } else if (errno != EEXIST) {
      throw phasor::InvalidArgument(
          fmt::format("cannot make the folder {}: {}", group.string(), std::strerror(errno)));
    }
  }

  void tell(int64_t shard, const char* state, double seconds, const std::string& error) {
    const int64_t lines = plan_.lines_of(shard);
    progress_.clear();
    if (!arguments_.common.json) {
      if (error.empty()) {
        output_.write(fmt::format("shard {}: {}, {} lines\n", shard, state, lines));
      }
      return;
    }
    nlohmann::ordered_json json = {{"shard", shard}, {"state", state}, {"lines", lines}};
    json["seconds"] = seconds;
    if (!error.empty()) json["error"] = error;
    output_.write(one_line(json) + "\n");
  }

  Plan plan_;
  const RunArguments& arguments_;
  Interrupts interrupts_;  // before the threads
  std::optional<Embedder> embedder_;
  std::optional<LineReader> reader_;
  Output output_;
  ProgressLine progress_;
  std::string arithmetic_;
  int64_t written_ = 0, done_ = 0, failed_ = 0, lines_ = 0;
  int exit_code_ = 0;
};

}  // namespace

int shard_run(int argc, char** argv) {
  RunArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const bool quiet = arguments.common.quiet;
  Plan plan = Plan::read(arguments.folder);
  std::vector<std::string> words = arguments.shards;
  const bool reads = words == std::vector<std::string>{"-"};
  if (words.empty() && arguments.verify) {
    if (plan.size() > 0) words = {fmt::format("0-{}", plan.size() - 1)};
  } else if (words.empty()) {
    const ShardFiles files(plan);
    words = files.left();
    if (!quiet && files.num_done > 0) {
      report_note(fmt::format("{} of {} shards are done", files.num_done, plan.size()));
    }
  }
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (!reads) {
    for (const std::string& word : words) ranges.push_back(parse_shards(plan, word));
    if (ranges.empty()) return 0;
  }
  if (!arguments.common.model.empty()) plan.options.common.model = arguments.common.model;
  plan.options.common.follow_links = arguments.common.follow_links;  // no plan may ask for it
  plan.options.common.threads = arguments.common.threads;
  plan.options.common.quiet = quiet;

  std::optional<LineReader> numbers;  // before the threads
  if (reads) numbers.emplace("-", true);
  Runner runner(std::move(plan), arguments);
  bool goes_on = true;
  for (size_t i = 0; goes_on && i < ranges.size(); ++i) {
    goes_on = runner.run(ranges[i].first, ranges[i].second);
  }
  while (goes_on && numbers) {
    const std::optional<Line> line = numbers->next();
    if (!line) break;
    const std::string word = line->text.substr(0, line->text.find_last_not_of(" \t") + 1);
    if (word.empty()) continue;
    const auto [first, last] = parse_shards(runner.plan(), word);
    goes_on = runner.run(first, last);
  }
  if (!goes_on || runner.interrupted()) {
    return report_error("interrupted; shards that are done stay done", kBadInput);
  }
  if (!quiet) report_note(runner.summary());
  return runner.exit_code();
}

}  // namespace infer
