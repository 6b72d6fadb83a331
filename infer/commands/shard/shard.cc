// infer shard: a corpus in shards that any number of processes and machines embed.
#include "infer/commands/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "engine/spelling.h"
#include "infer/cli/command_line.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"

namespace infer {
namespace {

constexpr Command kVerbs[] = {
    Command{"plan", "-i CORPUS... -o FOLDER", "cut a corpus into shards", shard_plan},
    Command{"run", "FOLDER [SHARD...]", "embed shards; those that are done are left alone",
            shard_run},
    Command{"status", "FOLDER", "what is done, and what is left", shard_status},
    Command{"merge", "FOLDER -o FILE", "all vectors in one file", shard_merge},
    Command{"slurm", "FOLDER", "a script that runs them as a job array of Slurm", shard_slurm},
};

constexpr const char* kFooter = R"(
A folder holds the plan and the shards' files. Any process on any machine that sees the
folder, the model and the corpus can run any shard, and none of them needs to know of the
others: a scheduler (Dask, Slurm, GNU parallel; see docs/cluster.md) hands out the numbers. A
shard's file gets its name when it is complete and on the disk. So processes may be killed,
and shards be run again or twice at the same time.

Example, on one machine:
  infer shard plan -i sentences.txt -o shards
  infer shard run shards
  infer shard merge shards -o vectors.npy

infer shard VERB --help says more.
)";

constexpr const char* kDescription =
    "Embeds a corpus in shards, with any number of processes and machines.";

std::string footer() {
  std::string text;
  for (const Command& verb : kVerbs) {
    text += fmt::format("  infer shard {:<30}{}\n", fmt::format("{} {}", verb.name, verb.arguments),
                        verb.summary);
  }
  return text + kFooter;
}

}  // namespace

std::span<const Command> shard_verbs() { return kVerbs; }

int shard(int argc, char** argv) {
  if (argv == nullptr) {
    throw CommandDescription{
        .name = "infer shard", .description = kDescription, .footer = footer()};
  }
  const std::string_view word = argc > 1 ? argv[1] : "";
  if (word == "-h" || word == "--help") {
    Output().show(fmt::format("{}\n\n{}", kDescription, footer()));
    return 0;
  }
  const auto verb = std::ranges::find(kVerbs, word, &Command::name);
  if (verb != std::end(kVerbs)) return verb->function(argc - 1, argv + 1);
  std::vector<std::string_view> names;
  for (const Command& known : kVerbs) names.push_back(known.name);
  throw UsageError(word.empty() ? "shard: say what to do: plan, run, status, merge or slurm"
                                : fmt::format("shard: there is no '{}'{}; infer shard --help lists "
                                              "what there is",
                                              word, phasor::internal::did_you_mean(word, names)));
}

}  // namespace infer
