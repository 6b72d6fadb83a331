// infer shard status: what is done, being written and left, from the names of the files.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "infer/cli/options.h"
#include "infer/cli/progress.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/shard/shard.h"
#include "infer/commands/shard/shard_files.h"
#include "infer/render/json_text.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kStatusFooter = R"(
--verify reads the files of all shards that are done; with a damaged one, the exit code is 1.
--clean removes what attempts that were killed have left: files that no process of this
machine writes, and those of other machines that nobody has written for an hour.

Examples:
  infer shard status shards
  infer shard status --left shards | parallel -N 20 infer shard run -t 1 shards)";

struct StatusArguments {
  CommonOptions common;
  std::vector<std::string> folders;
  bool left = false;
  bool verify = false;
  bool clean = false;
};

std::optional<int> parse_arguments(int argc, char** argv, StatusArguments& arguments) {
  CommandLine line("infer shard status", "Says which shards of a folder are done.", kStatusFooter);
  line.words("FOLDER", "that infer shard plan has made", arguments.folders);
  line.flag("--left", "print the numbers of the shards that are left, one a line", arguments.left);
  line.flag("--verify", "read the files of the shards that are done", arguments.verify);
  line.flag("--clean", "remove temporary files that nobody writes any more", arguments.clean);
  add_json_and_quiet(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return done;
  if (arguments.folders.size() != 1) throw UsageError("shard status: name one folder");
  return std::nullopt;
}

/// What is wrong with the files of shards that are done. Takes the damaged ones out of `files`.
std::vector<std::string> verify(const Plan& plan, ShardFiles& files, bool quiet) {
  ProgressLine progress(quiet);
  std::vector<std::string> problems;
  for (int64_t shard = 0; shard < plan.size(); ++shard) {
    if (!files.done[shard]) continue;
    progress.show("verifying", shard, plan.size());
    try {
      if (const auto record = ShardRecord::read(plan, shard)) {
        record->verify(plan, shard);
        continue;
      }
    } catch (const phasor::Error& error) {
      problems.emplace_back(error.what());
    }
    files.done[shard] = false;
    --files.num_done;
  }
  return problems;
}

void print_left(const ShardFiles& files) {
  Output output;
  for (size_t shard = 0; shard < files.done.size() && !output.closed(); ++shard) {
    if (!files.done[shard]) output.write(fmt::format("{}\n", shard));
  }
}

int64_t lines_done(const Plan& plan, const ShardFiles& files) {
  int64_t lines = 0;
  for (int64_t shard = 0; shard < plan.size(); ++shard) {
    if (files.done[shard]) lines += plan.lines_of(shard);
  }
  return lines;
}

/// What the temporary files tell.
struct Writing {
  std::map<std::string, int64_t> hosts;  // files that are being written
  int64_t total = 0;
  int64_t abandoned = 0, removed = 0;

  Writing(const ShardFiles& files, bool clean) {
    for (const LeftFile& left : files.temporary) {
      if (clean && left.abandoned && remove_abandoned(left)) {
        ++removed;
      } else if (left.abandoned) {
        ++abandoned;
      } else {
        ++hosts[left.host];
        ++total;
      }
    }
  }
};

std::string text_of(const Plan& plan, const ShardFiles& files, const Writing& writing) {
  std::string text = fmt::format("{} of {} shards done, {} of {} lines\n", files.num_done,
                                 plan.size(), lines_done(plan, files), plan.lines);
  if (files.num_done < plan.size()) text += fmt::format("left: {}\n", files.left_text());
  for (const auto& [host, count] : writing.hosts) {
    text += fmt::format("being written on {}: {}\n", printable(host), count);
  }
  if (writing.abandoned > 0) {
    text += fmt::format("temporary files that nobody writes any more: {}; --clean removes them\n",
                        writing.abandoned);
  }
  if (writing.removed > 0) text += fmt::format("temporary files removed: {}\n", writing.removed);
  return text;
}

}  // namespace

int shard_status(int argc, char** argv) {
  StatusArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  const bool quiet = arguments.common.quiet;
  const Plan plan = Plan::read(arguments.folders[0]);
  ShardFiles files(plan);
  std::vector<std::string> problems;
  if (arguments.verify) problems = verify(plan, files, quiet);
  const Writing writing(files, arguments.clean);
  if (arguments.left) {
    print_left(files);
  } else if (arguments.common.json) {
    const nlohmann::ordered_json json = {{"folder", plan.folder.string()},
                                         {"plan", plan.id},
                                         {"shards", plan.size()},
                                         {"done", files.num_done},
                                         {"left", plan.size() - files.num_done},
                                         {"left_shards", files.left()},
                                         {"lines", plan.lines},
                                         {"lines_done", lines_done(plan, files)},
                                         {"writing", writing.total},
                                         {"abandoned", writing.abandoned},
                                         {"damaged", problems}};
    Output().write(one_line(json) + "\n");
  } else {
    Output().show(text_of(plan, files, writing));
  }
  for (const std::string& problem : problems) report_error(problem, kCheckFailed);
  if (!problems.empty() && !quiet) {
    report_note(fmt::format("infer shard run --verify {} makes them again", plan.folder.string()));
  }
  return problems.empty() ? 0 : kCheckFailed;
}

}  // namespace infer
