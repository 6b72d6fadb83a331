// infer shard plan: reads the corpus once, and writes down where each shard begins.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "files/corpus/fingerprint.h"
#include "files/utf8.h"
#include "infer/cli/progress.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/shard/plan.h"
#include "infer/commands/shard/shard.h"
#include "phasor/errors.h"

namespace infer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlanDescription =
    "Cuts a corpus into shards of so many lines, which infer shard run embeds.";

constexpr const char* kPlanFooter = R"(
The corpus is one file or several, one text a line, plain or compressed by gzip or zstd. The
plan holds where each shard begins and a fingerprint of its lines. A shard of a compressed file
is found by decompressing what is before it: many small compressed files are better than one
large one.

The folder must be new. The same plan made again changes nothing.

Examples:
  infer shard plan -i sentences.txt -o shards
  infer shard plan -i part-*.txt.gz -o shards --lines 100000 -m all-MiniLM-L6-v2)";

struct PlanArguments : VectorOptions {
  std::vector<std::string> inputs;
  std::string folder;
  std::string format = "npy";
  std::optional<int64_t> shards, lines;
};

constexpr int64_t kDefaultLines = 10000;
constexpr double kMostShards = 1e7;

std::optional<int> parse_arguments(int argc, char** argv, PlanArguments& arguments) {
  CommandLine line("infer shard plan", kPlanDescription, kPlanFooter);
  line.list("-i,--input", "CORPUS", "the files whose lines are embedded, in this order",
            arguments.inputs, Values::kWords);
  line.option("-o,--output", "FOLDER", "the folder of the plan and the shards", arguments.folder);
  line.option("--lines", "N", "lines of a shard (default: 10000)", arguments.lines, Range{1, 1e12});
  line.option("--shards", "N", "at most so many shards of equal length instead", arguments.shards,
              Range{1, kMostShards});
  line.option("--format", "FORMAT", "of the shards: npy (default), safetensors or jsonl",
              arguments.format);
  add_model(line, arguments.common);
  add_vector_options(line, arguments);
  add_run(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return done;
  if (arguments.inputs.empty()) throw UsageError("shard plan: name the corpus with -i FILE...");
  if (arguments.folder.empty()) throw UsageError("shard plan: name the folder with -o FOLDER");
  if (arguments.shards && arguments.lines) {
    throw UsageError("--shards and --lines exclude each other; give one of them");
  }
  return std::nullopt;
}

/// For plan.json.
std::string absolute_name(const fs::path& path) {
  std::string name = fs::absolute(path).string();
  if (phasor::internal::to_valid_utf8(name).invalid_bytes == 0) return name;
  throw phasor::InvalidArgument(
      fmt::format("{}: its name is not valid UTF-8; rename it", printable(name)));
}

/// The files' absolute names and sizes, which must be there to be read again.
std::vector<Plan::Input> inputs_of(const std::vector<std::string>& files) {
  std::vector<Plan::Input> inputs;
  for (const std::string& file : files) {
    if (file == "-") {
      throw UsageError(
          "-i: standard input cannot be read again by those who run the shards; "
          "write it to a file");
    }
    std::error_code problem;
    const fs::path path = absolute_name(file);
    const auto status = fs::status(path, problem);
    if (!problem && exists(status) && !is_regular_file(status)) {
      throw phasor::InvalidArgument(fmt::format(
          "{}: it is {}", file, is_directory(status) ? "a folder" : "not a regular file"));
    }
    const auto bytes = fs::file_size(path, problem);
    if (problem) throw phasor::InvalidArgument(fmt::format("{}: {}", file, problem.message()));
    inputs.push_back({path.string(), static_cast<int64_t>(bytes)});
  }
  return inputs;
}

/// One pass over the lines, with the shards' beginnings for lines_per_shard > 0. False where a
/// signal came.
bool read_corpus(Plan& plan, bool quiet) {
  LineReader reader(plan.files(), quiet);
  ProgressLine progress(quiet);
  Fingerprint fingerprint, all;
  const auto finish = [&] {
    if (!plan.shards.empty()) plan.shards.back().fingerprint = fingerprint.value();
    fingerprint = Fingerprint();
  };
  plan.lines = 0;
  for (Place begin = reader.place();; begin = reader.place()) {
    const std::optional<Line> line = reader.next();
    if (!line) break;
    if (plan.lines_per_shard > 0) {
      if (plan.lines % plan.lines_per_shard == 0) {
        finish();
        // Not the end of the file before.
        if (line->file != begin.file) begin = {.file = line->file};
        plan.shards.push_back({.begin = begin});
        if (static_cast<double>(plan.size()) > kMostShards) {
          throw phasor::InvalidArgument(
              fmt::format("--lines {} makes more than {:.0f} shards; a shard must have more lines",
                          plan.lines_per_shard, kMostShards));
        }
      }
      fingerprint.add_piece(line->text);
      all.add_piece(line->text);
    }
    plan.inputs[line->file].lines = line->number;
    if (++plan.lines % 65536 == 0) {
      if (reader.interrupted()) break;
      progress.show(fmt::format("reading: {} lines, {:.0f} %", plan.lines,
                                100 * static_cast<double>(reader.bytes_read()) /
                                    static_cast<double>(std::max<int64_t>(1, reader.size()))));
    }
  }
  finish();
  plan.input = all.text();
  return !reader.interrupted();
}

/// That the files still have the sizes that they had before they were read.
void expect_unchanged(const Plan& plan) {
  const std::vector<Plan::Input> now = inputs_of(plan.files());
  for (size_t i = 0; i < now.size(); ++i) {
    const auto& [file, bytes, lines] = plan.inputs[i];
    if (now[i].bytes != bytes) {
      throw phasor::InvalidArgument(
          fmt::format("{}: it changed while it was read; plan when it is complete", file));
    }
    if (bytes == 0 && lines > 0) {
      throw phasor::InvalidArgument(
          fmt::format("{}: it has lines but no size, as files of the system have; copy it", file));
    }
  }
}

/// Files without a line belong to no shard. Returns how many there were.
int64_t leave_out_empty(Plan& plan) {
  std::vector<int64_t> numbers;  // without them
  int64_t kept = 0;
  for (const Plan::Input& input : plan.inputs) numbers.push_back(input.lines > 0 ? kept++ : -1);
  for (ShardLines& shard : plan.shards) shard.begin.file = numbers[shard.begin.file];
  return std::erase_if(plan.inputs, [](const Plan::Input& input) { return input.lines == 0; });
}

void note_compressed(const Plan& plan) {
  constexpr int64_t kMany = 100;
  std::vector<int64_t> shards(plan.inputs.size());
  for (const ShardLines& shard : plan.shards) ++shards[shard.begin.file];
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const Plan::Input& input = plan.inputs[i];
    if (shards[i] < kMany || !LineReader(input.file, true).compressed()) continue;
    report_note(
        fmt::format("{} is compressed: each of its {} shards decompresses what is before "
                    "it; decompress it first, or make larger shards with --lines",
                    input.file, shards[i]));
  }
}

}  // namespace

int shard_plan(int argc, char** argv) {
  PlanArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const bool quiet = arguments.common.quiet;
  Plan plan;
  plan.folder = arguments.folder;
  plan.options = arguments;
  plan.format.kind = static_cast<VectorFormat::Kind>(
      parse_name("--format", arguments.format, {"format", VectorFormat::kExtensions}));
  plan.inputs = inputs_of(arguments.inputs);
  const Interrupts interrupts;
  {
    Embedder embedder(arguments);
    // The same on every machine: a folder by its whole name, a precision that is none of "auto".
    if (std::error_code ignored; fs::exists(arguments.common.model, ignored)) {
      plan.options.common.model = absolute_name(embedder.model->folder());
    }
    plan.options.common.precision = embedder.encoder.precision();
    plan.options.common.kernels = embedder.encoder.kernels();
    plan.format.width = embedder.width();
    plan.format.made_with = embedder.made_with();
  }
  plan.lines_per_shard = arguments.shards ? 0 : arguments.lines.value_or(kDefaultLines);
  bool complete = read_corpus(plan, quiet);
  if (complete && arguments.shards) {
    plan.lines_per_shard =
        std::max<int64_t>(1, (plan.lines + *arguments.shards - 1) / *arguments.shards);
    complete = read_corpus(plan, quiet);
  }
  if (!complete) return report_error("interrupted; nothing was written", kBadInput);
  expect_unchanged(plan);
  const int64_t empty = leave_out_empty(plan);
  const bool is_new = plan.write();
  if (!quiet) {
    note_compressed(plan);
    if (empty > 0) report_note(fmt::format("left out, without a line: {} of the files", empty));
    report_note(fmt::format("{}: {} lines in {} shard{} of {}{}", arguments.folder, plan.lines,
                            plan.size(), plan.size() == 1 ? "" : "s", plan.lines_per_shard,
                            is_new ? "" : "; the same plan was already there"));
  }
  if (arguments.common.json) {
    Output().write(fmt::format("{{\"shards\":{},\"lines\":{},\"lines_per_shard\":{}}}\n",
                               plan.size(), plan.lines, plan.lines_per_shard));
  }
  return 0;
}

}  // namespace infer
