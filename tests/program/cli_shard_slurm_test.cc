// infer shard slurm: what its script runs, with another program in the place of infer.
#include "tests/program/program.h"

namespace phasor {
namespace {

class CliShardSlurmTest : public testing::Test {
 protected:
  /// A plan of so many shards.
  std::string plan(int shards, const std::string& name) {
    const std::string lines = repeat("Tom bit a dog.\n", shards);
    const std::string corpus = folder_.write("corpus.txt", lines).string();
    std::string planned = (folder_.path() / name).string();
    succeed({"shard", "plan", "-q", "-i", corpus, "-o", planned, "--lines", "1"});
    return planned;
  }

  std::string script(const Words& arguments) {
    return succeed(Words{"shard", "slurm"} + arguments).out;
  }

  /// Element number `element` of the script, with `program` for infer, which does not wait.
  ProgramResult run_element(std::string script, int element, const std::string& program) {
    const size_t line = script.find("\ninfer=") + 1;
    script.replace(line, script.find('\n', line) - line, "sleep() { :; }\ninfer=" + program);
    const std::string file = folder_.write("job.sh", script).string();
    return run_program({"/usr/bin/env", "SLURM_ARRAY_TASK_ID=" + std::to_string(element),
                        "SLURM_CPUS_PER_TASK=3", "bash", file});
  }

  TempFolder folder_;
};

TEST_F(CliShardSlurmTest, ElementsRunEveryShardOnce) {
  for (const auto& [shards, elements] : {std::pair(1, 1), {7, 3}, {10, 10}, {10, 4}, {5, 9}}) {
    const std::string folder = plan(shards, "plan" + std::to_string(shards));
    const std::string text = script({folder, "--array", std::to_string(elements)});
    const int made = std::min(shards, elements);
    EXPECT_TRUE(contains(text, "\n#SBATCH --array=0-" + std::to_string(made - 1) + "\n")) << text;
    int next = 0;
    for (int element = 0; element < made; ++element) {
      const std::string ran = run_element(text, element, "echo").out;
      const std::string before = "shard run -t 3 " + folder + " ";
      ASSERT_TRUE(ran.starts_with(before)) << ran;
      const std::string range = ran.substr(before.size());
      EXPECT_EQ(std::stoi(range), next);
      next = std::stoi(range.substr(range.find('-') + 1)) + 1;
    }
    EXPECT_EQ(next, shards);
  }
}

TEST_F(CliShardSlurmTest, OddNamesReachSbatchAndBash) {
  const std::string folder = plan(3, "a \"b\" $(c) 100%'s #d");
  const std::string text = script({folder});
  for (const char* const line : {"--array=0-2", "--requeue", "--open-mode=append"}) {
    EXPECT_TRUE(contains(text, std::string("\n#SBATCH ") + line + "\n")) << line << "\n" << text;
  }
  const std::string logs = R"(/a \"b\" $(c) 100%%\'s \#d/slurm/%A_%a.log")";
  EXPECT_TRUE(contains(text, logs)) << text;
  EXPECT_TRUE(fs::is_directory(folder + "/slurm"));
  EXPECT_EQ(run_element(text, 1, "echo").out, "shard run -t 3 " + folder + " 1-1\n");
  const ProgramResult checked =
      run_program({"/usr/bin/env", "shellcheck", folder_.write("job.sh", text).string()});
  if (checked.exit_code != 127) {
    EXPECT_EQ(checked.out, "");
  }
}

TEST_F(CliShardSlurmTest, AnElementIsTriedThreeTimes) {
  const ProgramResult result = run_element(script({plan(2, "plan")}), 0, "false");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(lines_of(result.err).size(), 3u) << result.err;
}

TEST_F(CliShardSlurmTest, RefusesWhatNoJobCanRun) {
  const std::string folder = plan(2, "plan");
  expect_infer_fails({"shard", "slurm", folder, "--array", "0"}, 2, {"--array", "'0'"});
  expect_infer_fails({"shard", "slurm", plan(1, "a\nb")}, 2, {"line break"});
}

}  // namespace
}  // namespace phasor
