// infer shard merge: the vectors of all shards in one file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "files/corpus/fingerprint.h"
#include "files/corpus/temporary_file.h"
#include "files/files.h"
#include "infer/cli/command_line.h"
#include "infer/cli/interrupts.h"
#include "infer/cli/progress.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/shard/shard.h"
#include "infer/commands/shard/shard_files.h"
#include "infer/files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kMergeFooter = R"(
FILE is what infer embed makes of the files of the corpus, one after another: to the last bit
with AVX-512 or int8. Every shard is read and compared with its record. FILE gets its name when
it is complete: after an interruption, merge again.

The shards are files of their own that NumPy can map: where FILE would be very large, use them
as they are.

Example:
  infer shard merge shards -o vectors.npy)";

/// What merging tells the user of the shards together.
struct Merged {
  std::map<std::string, std::set<std::string>> hosts;  // by their arithmetic
  int64_t lines_cut = 0, lines_invalid = 0;
  int64_t bytes = 0;
  Fingerprint fingerprint;  // of the bytes

  void write(std::span<const std::byte> part, TemporaryFile& file) {
    file.write(part);
    fingerprint.add(part);
    bytes += std::ssize(part);
  }
};

using Kind = VectorFormat::Kind;

/// Appends a shard's rows to `file` and tells of it in `merged`. Returns what is wrong with the
/// shard, or nothing.
std::string append(const Plan& plan, int64_t shard, TemporaryFile& file, Merged& merged,
                   std::vector<char>& buffer) {
  std::optional<ShardRecord> record;
  try {
    record = ShardRecord::read(plan, shard);
  } catch (const phasor::InvalidArgument& error) {
    return error.what();
  }
  if (!record) return fmt::format("{} was removed", plan.record_of(shard).string());
  const std::string damaged = fmt::format("{} is damaged", plan.file_of(shard).string());
  const phasor::internal::PlainFile opened(plan.file_of(shard));
  const std::string header = plan.header_of(shard);
  if (opened.read(std::ssize(header)) != header) return damaged;
  Fingerprint fingerprint;
  fingerprint.add(std::as_bytes(std::span(header)));
  int64_t lines = 0;  // of .jsonl
  while (const size_t count = opened.read(buffer)) {
    lines += std::ranges::count(std::span(buffer).first(count), '\n');
    const auto bytes = std::as_bytes(std::span(buffer).first(count));
    fingerprint.add(bytes);
    merged.write(bytes, file);
  }
  const bool text = plan.format.kind == Kind::kJsonLines;
  if (fingerprint.text() != record->xxh64 || (text && lines != plan.lines_of(shard))) {
    return damaged;
  }
  merged.hosts[record->arithmetic].insert(record->host);
  merged.lines_cut += record->lines_cut;
  merged.lines_invalid += record->lines_invalid;
  return "";
}

void check_complete(const Plan& plan) {
  const ShardFiles files(plan);
  if (files.num_done == plan.size()) return;
  throw phasor::InvalidArgument(fmt::format(
      "{}: {} of {} shards are not done: {}; run them: infer shard run {}", plan.folder.string(),
      plan.size() - files.num_done, plan.size(), files.left_text(), plan.folder.string()));
}

/// Throws where `output` would replace a file that the shards need.
void refuse_own_files(const Plan& plan, const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::vector<std::string> inputs = plan.files();
  const bool is_input = std::ranges::any_of(
      inputs, [&](const std::string& input) { return fs::equivalent(input, output, ignored); });
  bool inside = false;
  for (fs::path path = fs::weakly_canonical(output, ignored); path.has_relative_path();) {
    path = path.parent_path();
    inside = inside || fs::equivalent(path, plan.folder, ignored);
  }
  if (is_input || inside) {
    throw UsageError(fmt::format("-o: {} is {}; choose another name", output,
                                 is_input ? "part of the corpus" : "in the folder of the shards"));
  }
}

/// Between the two steps there is no record, rather than one of another file.
void commit(const Plan& plan, TemporaryFile& file, const Merged& merged,
            const std::filesystem::path& output) {
  const std::filesystem::path record = record_beside(output);
  std::error_code problem;
  std::filesystem::remove(record, problem);
  if (problem) {
    throw phasor::InvalidArgument(
        fmt::format("-o: cannot replace {}: {}", record.string(), problem.message()));
  }
  file.commit();
  if (VectorFormat::kind_of(output) == Kind::kSafetensors) return;
  VectorRecord{.made_with = plan.format.made_with,
               .lines = plan.lines,
               .bytes = merged.bytes,
               .input = plan.input,
               .xxh64 = merged.fingerprint.text()}
      .write("-o", record);
}

void note(const Plan& plan, const Merged& merged, const std::string& output) {
  if (merged.hosts.size() > 1) {
    std::vector<std::string> groups;
    for (const auto& [arithmetic, hosts] : merged.hosts) {
      groups.push_back(fmt::format("{}", fmt::join(hosts, ", ")));
    }
    report_note(
        fmt::format("these machines differ in the last digits that they compute: {}; "
                    "ONEDNN_MAX_CPU_ISA makes them alike (docs/cluster.md)",
                    fmt::join(groups, " | ")));
  }
  std::string text = fmt::format("{}: {} lines of {} shards, {} numbers each", output, plan.lines,
                                 plan.size(), plan.format.width);
  if (merged.lines_cut > 0) text += fmt::format("; too long and cut: {}", merged.lines_cut);
  if (merged.lines_invalid > 0) text += fmt::format("; not all UTF-8: {}", merged.lines_invalid);
  report_note(text);
}

}  // namespace

int shard_merge(int argc, char** argv) {
  bool quiet = false;
  std::vector<std::string> folders;
  std::string output;
  CommandLine line("infer shard merge", "Writes the vectors of all shards into one file.",
                   kMergeFooter);
  line.words("FOLDER", "whose shards are all done", folders);
  line.option("-o,--output", "FILE", "the file: .npy, .safetensors or .jsonl", output);
  line.flag("-q,--quiet", "print nothing but errors", quiet);
  if (const auto done = line.parse(argc, argv)) return *done;
  if (folders.size() != 1) throw UsageError("shard merge: name one folder");
  if (output.empty()) throw UsageError("shard merge: name the file with -o FILE");

  const Interrupts interrupts;
  const Plan plan = Plan::read(folders[0]);
  VectorFormat format = plan.format;
  format.kind = VectorFormat::kind_of(output);
  if ((format.kind == Kind::kJsonLines) != (plan.format.kind == Kind::kJsonLines)) {
    const auto name = VectorFormat::kExtensions[static_cast<size_t>(plan.format.kind)];
    throw UsageError(
        fmt::format("-o: {}: the shards are .{} files; choose such a name", output, name));
  }
  refuse_own_files(plan, output);
  check_complete(plan);
  const bool text = format.kind == Kind::kJsonLines;
  const std::string header = format.header(plan.lines, plan.input);
  refuse_to_replace_record(output);
  TemporaryFile file(
      "-o", output,
      {.reserve = text ? 0 : std::ssize(header) + 4 * plan.format.width * plan.lines});
  ProgressLine progress(quiet);
  Merged merged;
  merged.write(std::as_bytes(std::span(header)), file);
  std::vector<char> buffer(1 << 20);
  for (int64_t shard = 0; shard < plan.size(); ++shard) {
    if (interrupts.pending()) {
      return report_error("interrupted; nothing was written", kBadInput);
    }
    progress.show("merging", shard, plan.size());
    const std::string problem =
        as_input("", [&] { return append(plan, shard, file, merged, buffer); });
    if (!problem.empty()) {
      throw phasor::InvalidArgument(fmt::format(
          "{}; make the shard again: infer shard run --verify {} {}", problem, folders[0], shard));
    }
  }
  commit(plan, file, merged, output);
  if (!quiet) note(plan, merged, output);
  return 0;
}

}  // namespace infer
