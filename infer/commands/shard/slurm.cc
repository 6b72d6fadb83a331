// infer shard slurm: a script for sbatch, each element of whose job array runs a range of the
// shards.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "infer/cli/command_line.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/shard/plan.h"
#include "infer/commands/shard/shard.h"
#include "infer/commands/shard/shard_files.h"
#include "phasor/errors.h"

namespace infer {
namespace {

// Slurm's MaxArraySize is 1001 unless configured.
constexpr int64_t kElements = 1000;

constexpr const char* kSlurmFooter = R"(
Each element of the array runs a range of shards with the model loaded once, on as many threads
as sbatch gives it cores. The nodes must see the folder, the corpus, the model and this program
under the same paths. The logs are in FOLDER/slurm, which this command makes.

Options of sbatch, on its own command line, replace those in the script. --array must name all
elements of the script there, too; %N after them limits how many run at once. A cluster that
allows larger arrays takes --array here. Submit the same script again while shards are left:
those that are done are left alone.

Example:
  infer shard slurm shards >job.sh
  sbatch -c 4 --time=08:00:00 job.sh)";

constexpr const char* kScript = R"(#!/usr/bin/env bash
# Embeds the {shards} shards of a folder as a job array of Slurm. To submit it: sbatch THIS_FILE
# To see what is left:
#   {infer} shard status {folder}
# Shards that are done are left alone, so the same script can be submitted again.
#
# An element that loses its node is queued again, and its log is continued.
#SBATCH --job-name=infer-shard
#SBATCH --array=0-{last_element}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH {output}
set -u

infer={infer}
folder={folder}

# An element runs the shards from first to last.
shards={shards}
elements={elements}
: "${{SLURM_ARRAY_TASK_ID:?is not set: submit this with sbatch}}"
((SLURM_ARRAY_TASK_ID < elements)) || exit 0
first=$((shards * SLURM_ARRAY_TASK_ID / elements))
last=$((shards * (SLURM_ARRAY_TASK_ID + 1) / elements - 1))

# Slurm does not queue an element again because it failed.
for attempt in 1 2 3; do
  "$infer" shard run -t "${{SLURM_CPUS_PER_TASK:-1}}" "$folder" "$first-$last" && exit
  status=$?
  echo "attempt $attempt: exit code $status" >&2
  case $status in 2 | 4 | 143) break ;; esac # usage, the model, or Slurm's SIGTERM
  [[ $attempt == 3 ]] || sleep 5
done
exit "$status"

# When all elements have ended:
#   {infer} shard merge {folder} -o vectors.npy
)";

// What a backslash escapes between double quotes. sbatch splits its lines by rules of its own.
constexpr std::string_view kBash = "\"\\$`";
constexpr std::string_view kSbatch = "\"\\'#";

std::string quoted(std::string_view text, std::string_view special) {
  constexpr std::string_view kPlain =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-+=./:,@%";
  if (text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string result = "\"";
  for (const char c : text) {
    if (special.find(c) != special.npos) result += '\\';
    result += c;
  }
  return result + '"';
}

/// In the name of a log, where % stands for something.
std::string without_patterns(const std::string& path) {
  std::string result;
  for (const char c : path) result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

std::filesystem::path make_log_folder(const std::filesystem::path& folder) {
  std::error_code error;
  ShardFiles::refuse_link(folder / "slurm");
  std::filesystem::create_directory(folder / "slurm", error);
  if (!error) return folder / "slurm";
  throw phasor::InvalidArgument(
      fmt::format("{}: cannot make it: {}", (folder / "slurm").string(), error.message()));
}

}  // namespace

int shard_slurm(int argc, char** argv) {
  std::vector<std::string> folders;
  int64_t elements = kElements;
  CommandLine line("infer shard slurm", "Prints a script for sbatch, Slurm's command.",
                   kSlurmFooter);
  line.words("FOLDER", "that infer shard plan has made", folders);
  constexpr double kMostElements = 4e6;  // that Slurm can be configured for
  line.option("--array", "N", "elements of the job array (default: 1000, or one for each shard)",
              elements, Range{1, kMostElements});
  if (const auto done = line.parse(argc, argv)) return *done;
  if (folders.size() != 1) throw UsageError("shard slurm: name one folder");

  const Plan plan = Plan::read(folders[0]);
  if (plan.size() == 0) throw UsageError(fmt::format("{}: there are no shards", folders[0]));
  elements = std::min(elements, plan.size());
  const std::string infer = std::filesystem::canonical("/proc/self/exe");
  const std::string folder = std::filesystem::absolute(plan.folder);
  if (folder.find('\n') != folder.npos) {
    throw UsageError(fmt::format("'{}' has a line break, which sbatch cannot read", folder));
  }
  const std::string logs = without_patterns(make_log_folder(folder)) + "/%A_%a.log";
  Output().write(fmt::format(kScript, fmt::arg("infer", quoted(infer, kBash)),
                             fmt::arg("folder", quoted(folder, kBash)),
                             fmt::arg("shards", plan.size()), fmt::arg("elements", elements),
                             fmt::arg("last_element", elements - 1),
                             fmt::arg("output", quoted("--output=" + logs, kSbatch))));
  return 0;
}

}  // namespace infer
