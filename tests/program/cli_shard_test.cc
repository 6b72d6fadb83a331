// infer shard: whatever happens to those who make the shards, the merged file is what infer embed
// makes of the whole corpus.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <future>

#include "files/corpus/fingerprint.h"
#include "tests/program/program.h"
#include "tests/support/compressed.h"

namespace phasor {
namespace {

std::string sentences(int count, int seed) {
  const Words words = {"Tom", "bit", "a", "dog", "and", "the", "cat", "ran", "é", "[MASK]"};
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w <= (i * 7 + seed) % 13; ++w)
      text += words[(i + w * w + seed) % words.size()] + " ";
    text += std::to_string(i) + "\n";
  }
  return text;
}

/// A corpus of three files, two of them compressed, 250 lines, in a folder of its own.
class CliShardTest : public testing::Test {
 protected:
  static constexpr int64_t kLines = 250;

  CliShardTest() {
    const std::string a = sentences(130, 1), b = sentences(100, 2), c = sentences(20, 3);
    inputs_ = {folder_.write("a.txt", a), folder_.write("b.txt.gz", gzip_of(b)),
               folder_.write("c.txt.zst", zstd_of(c))};
    folder_.write("all.txt", a + b + c);
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string shards() const { return file("shards"); }

  Words plan_words(const Words& more = {"--lines", "60"}) const {
    return Words{"shard", "plan", "-q", "-o", shards(), "-i"} + inputs_ + more;
  }
  void plan(const Words& more = {"--lines", "60"}) const { succeed(plan_words(more)); }
  ProgramResult run(const Words& more = {}) const {
    return run_infer(Words{"shard", "run", "-q", "-t", "1", shards()} + more);
  }
  ProgramResult merge(const std::string& out = "merged.npy") const {
    return run_infer({"shard", "merge", "-q", shards(), "-o", file(out)});
  }
  json status(const Words& more = {}) const {
    return json::parse(run_infer(Words{"shard", "status", "-q", "--json", shards()} + more).out);
  }
  fs::path shard_file(int number, const std::string& extension = "npy") const {
    return fs::path(shards()) / "000" / ("shard-00000" + std::to_string(number) + "." + extension);
  }
  /// Expects that the shards are done, and that merging them gives what embed gives.
  void expect_whole(const std::string& name = "merged.npy") const {
    const ProgramResult merged = merge(name);
    ASSERT_EQ(merged.exit_code, 0) << merged.err;
    const std::string whole = file("whole" + fs::path(name).extension().string());
    if (!fs::exists(whole)) {
      succeed({"embed", "-q", "-i", file("all.txt"), "-o", whole});
    }
    EXPECT_TRUE(read_text_file(file(name)) == read_text_file(whole)) << name;
  }
  /// Makes the shards that are left, which completes the file.
  void run_to_the_end() const {
    EXPECT_EQ(run().exit_code, 0);
    expect_whole();
  }
  Words names_in_shards() const {
    Words names;
    for (const auto& entry : fs::recursive_directory_iterator(shards())) {
      if (entry.is_regular_file()) names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  const TempFolder folder_;
  Words inputs_;
};

TEST_F(CliShardTest, MergedShardsAreWhatEmbedMakesInEveryFormat) {
  for (const std::string format : {"npy", "safetensors", "jsonl"}) {
    fs::remove_all(shards());
    plan({"--lines", "60", "--format", format});
    const ProgramResult result = run({"3", "0-2", "4"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out,
              "shard 3: written, 60 lines\nshard 0: written, 60 lines\nshard 1: written, 60 lines\n"
              "shard 2: written, 60 lines\nshard 4: written, 10 lines\n");
    expect_whole("merged." + format);
  }
  fs::remove_all(shards());
  plan();
  run();
  expect_whole("merged.safetensors");  // the header is all that differs
}

TEST_F(CliShardTest, OptionsOfEmbedAndAnyNumberOfShardsGiveWhatEmbedGives) {
  const Words pooling = {"--pooling", "max",         "--normalize", "--prefix",
                         "query: ",   "--precision", "int8"};
  for (const auto& [number, options] :
       {std::pair<std::string, Words>{"1", {}}, {"7", {}}, {"100", {}}, {"3", pooling}}) {
    fs::remove_all(shards());
    plan(Words{"--shards", number} + options);
    EXPECT_LE(status()["shards"].get<int64_t>(), std::stoi(number));
    EXPECT_EQ(run().exit_code, 0);
    const Words embed = {"embed", "-q", "-i", file("all.txt"), "-o", file("whole.npy")};
    succeed(embed + options);
    expect_whole();
  }
  fs::remove_all(shards());
  fs::remove(file("whole.npy"));
  folder_.write("all.txt", "");
  inputs_ = {file("all.txt")};
  plan();
  EXPECT_EQ(status()["shards"], 0);
  run_to_the_end();
}

TEST_F(CliShardTest, InputsWithoutALineAreLeftOut) {
  folder_.write("empty.txt", "");
  inputs_.insert(inputs_.begin() + 1, file("empty.txt"));
  inputs_.push_back(file("empty.txt"));
  plan();
  json plan = json::parse(read_text_file(fs::path(shards()) / "plan.json"));
  EXPECT_EQ(plan["inputs"].size(), inputs_.size() - 2);
  run_to_the_end();
  plan["inputs"][0]["lines"] = 0;  // each shard would pass by any number of them
  folder_.write("shards/plan.json", plan.dump());
  expect_infer_fails({"shard", "run", shards()}, 3, {"plan.json", "lines"});
}

TEST_F(CliShardTest, TheSamePlanAgainChangesNothingAndAnotherIsRefused) {
  plan();
  EXPECT_EQ(run({"1"}).exit_code, 0);
  plan();
  EXPECT_EQ(status()["done"], 1);
  expect_infer_fails(plan_words({"--lines", "61"}), 3,
                     {"holds another plan", "lines_per_shard is 60, not 61"});
  expect_infer_fails(plan_words({"--lines", "60", "--pooling", "cls"}), 3, {"holds another plan"});
  fs::remove_all(shards());
  folder_.write("shards/precious.txt", "x");
  expect_infer_fails(plan_words(), 3, {"holds other files"});
}

TEST_F(CliShardTest, StatusSaysWhatIsDoneAndLeft) {
  plan();
  EXPECT_EQ(status()["left_shards"], (Words{"0-4"}));
  EXPECT_EQ(run({"1", "4"}).exit_code, 0);
  const json now = status();
  EXPECT_EQ(now["done"], 2);
  EXPECT_EQ(now["lines_done"], 70);
  EXPECT_EQ(now["left_shards"], (Words{"0", "2-3"}));
  const ProgramResult left = run_infer({"shard", "status", "--left", shards()});
  EXPECT_EQ(left.out, "0\n2\n3\n");
  EXPECT_NE(run_infer({"shard", "status", shards()}).out.find("2 of 5 shards done, 70 of 250"),
            std::string::npos);
  // What --left prints is what run - reads.
  const ProgramResult rest =
      succeed({"shard", "run", "-q", "--json", shards(), "-"}, {.input = left.out});
  ASSERT_EQ(lines_of(rest.out).size(), 3u);
  for (const std::string& line : lines_of(rest.out))
    EXPECT_EQ(json::parse(line)["state"], "written");
  expect_whole();
}

TEST_F(CliShardTest, AProcessOfAnOlderPlanWritesNothing) {
  plan();
  // The second number is given when the folder holds another plan.
  const std::string script = std::string("{ echo 0; while [ ! -e '") + file("planned") +
                             "' ]; do sleep 0.05; done; echo 1; } | " + INFER_BINARY +
                             " shard run -q '" + shards() + "' - >'" + file("report") +
                             "'; echo $?";
  std::future<ProgramResult> old =
      std::async(std::launch::async, run_program,
                 Words{"/usr/bin/timeout", "1000", "/bin/sh", "-c", script}, ProgramOptions{});
  const std::string report = "shard 0: written, 60 lines\n";
  wait_until(
      [&] { return fs::exists(file("report")) && read_text_file(file("report")) == report; });
  fs::remove_all(shards());
  plan({"--lines", "60", "--pooling", "cls"});
  folder_.write("planned", "");
  const ProgramResult result = old.get();
  EXPECT_EQ(result.out, "3\n") << result.err;
  EXPECT_EQ(read_text_file(file("report")), report);
  EXPECT_TRUE(contains(result.err, "the plan has been replaced")) << result.err;
  EXPECT_EQ(status()["done"], 0);
}

TEST_F(CliShardTest, ALostIndexIsMadeAgain) {
  plan();
  EXPECT_EQ(run({"0"}).exit_code, 0);
  for (const std::string& name : names_in_shards()) {
    if (name.starts_with("plan.") && name != "plan.json") fs::remove(fs::path(shards()) / name);
  }
  EXPECT_EQ(run().exit_code, 3);
  plan();
  run_to_the_end();
}

TEST_F(CliShardTest, WhatReadsTheReportMayGoAway) {
  plan();
  const std::string command = std::string(INFER_BINARY) + " shard run -q '" + shards() + "'";
  EXPECT_EQ(run_program({"/bin/sh", "-c", command + " | head -1 >/dev/null"}).exit_code, 0);
  wait_until([&] { return status()["left"] == 0; });
  expect_whole();
  // Closed descriptors must not become the files.
  fs::remove_all(shards());
  plan();
  EXPECT_EQ(run_program({"/bin/sh", "-c", command + " 0 2>&-"}).exit_code, 0);
  EXPECT_EQ(run_program({"/bin/sh", "-c", command + " >&- 2>&-"}).exit_code, 3);
  run_to_the_end();
}

TEST_F(CliShardTest, AShardThatBeginsWithAFileNeedsNoOther) {
  inputs_ = {folder_.write("a.txt", sentences(60, 1)), folder_.write("b.txt", sentences(60, 2))};
  plan();
  fs::remove(inputs_[0]);
  EXPECT_EQ(run().exit_code, 3);
  EXPECT_EQ(status()["left_shards"], (Words{"0"}));
}

TEST_F(CliShardTest, ADoneShardIsLeftAlone) {
  plan();
  EXPECT_EQ(run({"2"}).exit_code, 0);
  const auto before = fs::last_write_time(shard_file(2));
  EXPECT_EQ(run({"2", "--verify"}).out, "shard 2: done, 60 lines\n");
  EXPECT_EQ(fs::last_write_time(shard_file(2)), before);
}

TEST_F(CliShardTest, MergeRefusesGapsAndDamage) {
  plan();
  EXPECT_EQ(run({"0-2"}).exit_code, 0);
  const Words merging = {"shard", "merge", shards(), "-o", file("merged.npy")};
  expect_infer_fails(merging, 3, {"2 of 5 shards are not done: 3-4", "infer shard run"});
  EXPECT_EQ(run().exit_code, 0);

  std::string bytes = read_text_file(shard_file(1));
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 1);
  std::ofstream(shard_file(1), std::ios::binary) << bytes;
  expect_infer_fails(merging, 3, {"shard-000001.npy is damaged", "infer shard run --verify"});
  expect_infer_fails({"shard", "merge", shards(), "-o", shard_file(1)}, 2, {"in the folder"});
  std::ofstream(shard_file(3), std::ios::binary) << "short";
  EXPECT_EQ(status({"--verify"})["damaged"].size(), 2u);
  EXPECT_EQ(run_infer({"shard", "status", "--verify", shards()}).exit_code, 1);
  EXPECT_EQ(run({"--verify"}).out,
            "shard 0: done, 60 lines\nshard 1: written, 60 lines\nshard 2: done, 60 lines\n"
            "shard 3: written, 60 lines\nshard 4: done, 10 lines\n");
  expect_whole();

  fs::remove(shard_file(0));
  expect_infer_fails(merging, 3, {"shard-000000.npy"});
  EXPECT_EQ(run({"0"}).exit_code, 0);
  expect_whole();

  // A record from the folder of another plan, whose shard is as long.
  fs::rename(shards(), file("other"));
  plan({"--lines", "60", "--pooling", "cls"});
  EXPECT_EQ(run().exit_code, 0);
  fs::copy_file(fs::path(file("other")) / "000/shard-000002.done", shard_file(2, "done"),
                fs::copy_options::overwrite_existing);
  expect_infer_fails(merging, 3, {"shard-000002.done belongs to another plan"});
  EXPECT_EQ(run({"2"}).out, "shard 2: written, 60 lines\n");

  // A record whose counts are none.
  const json record = json::parse(read_text_file(shard_file(1, "done")));
  for (const char* count : {"bytes", "lines_cut", "lines_invalid"}) {
    for (const json& wrong : {json(-1), json(int64_t{1} << 47), json("1"), json(1.5)}) {
      json damaged = record;
      damaged[count] = wrong;
      std::ofstream(shard_file(1, "done")) << damaged.dump();
      expect_infer_fails(merging, 3, {"shard-000001.done is damaged"});
    }
  }
}

TEST_F(CliShardTest, AShardOfOtherLinesIsNotMerged) {
  for (const std::string extension : {"npy", "jsonl"}) {
    plan({"--lines", "60", "--format", extension});
    EXPECT_EQ(run().exit_code, 0);
    const std::string more = read_text_file(shard_file(1, extension)) + "{}\n";
    std::ofstream(shard_file(1, extension), std::ios::binary) << more;
    json record = json::parse(read_text_file(shard_file(1, "done")));
    infer::Fingerprint fingerprint;
    fingerprint.add(std::as_bytes(std::span(more)));
    record["bytes"] = more.size();
    record["xxh64"] = fingerprint.text();
    std::ofstream(shard_file(1, "done")) << record.dump();
    expect_infer_fails({"shard", "merge", shards(), "-o", file("merged." + extension)}, 3,
                       {"shard-000001." + extension});
    fs::remove_all(shards());
  }
}

TEST_F(CliShardTest, NothingIsReadOrWrittenWhereAPlansFolderLeads) {
  plan();
  const fs::path group = fs::path(shards()) / "000";
  const fs::path foreign = folder_.write("foreign/thesis.tmp.docx", "mine");
  fs::remove_all(group);
  fs::create_directory_symlink(foreign.parent_path(), group);
  for (const char* const command : {"run", "status", "merge"}) {
    const bool merges = command == std::string("merge");
    expect_infer_fails(
        Words{"shard", command, shards()} + (merges ? Words{"-o", file("merged.npy")} : Words{}), 3,
        {"000", "it is a link"});
  }
  fs::create_directory_symlink(foreign.parent_path(), fs::path(shards()) / "slurm");
  expect_infer_fails({"shard", "slurm", shards()}, 3, {"slurm", "it is a link"});
  // Old files whose names are only like those of shards stay.
  fs::remove(group);
  fs::create_directory(group);
  const Words others = {"thesis.tmp.docx", "shard-000001.npy.tmp.old", "x.tmp.h.1.0000abcd"};
  for (const std::string& name : others) {
    fs::last_write_time(folder_.write("shards/000/" + name, "mine"),
                        fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  EXPECT_EQ(status({"--clean"})["abandoned"], 0);
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(group / name)) << name;
}

TEST_F(CliShardTest, LinesAreNotWaitedForInAnInputThatIsNoFile) {
  plan();
  json plan = json::parse(read_text_file(file("shards/plan.json")));
  plan["inputs"][0]["lines"] = 1000;
  const std::string fifo = file("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& input : {fifo, std::string("/dev/zero")}) {
    plan["inputs"][1]["file"] = input;
    folder_.write("shards/plan.json", plan.dump());
    const ProgramResult result = run();
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_TRUE(contains(result.err, "a.txt: the lines of shard 2 are not those")) << result.err;
  }
  plan["inputs"][1]["file"] = "-";
  folder_.write("shards/plan.json", plan.dump());
  expect_infer_fails({"shard", "run", shards()}, 3, {"the input \"-\" is no absolute name"});
}

TEST_F(CliShardTest, ChangedInputsAreRefusedAndTheOtherShardsRun) {
  plan();
  std::string text = read_text_file(inputs_[0]);
  const std::string before = text;
  text[text.size() - 3] = 'x';  // of the last line, which is in shard 2
  std::ofstream(inputs_[0]) << text;
  ProgramResult result = run();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(status()["left_shards"], (Words{"2"})) << result.err;
  EXPECT_TRUE(contains(result.err, "a.txt, " + inputs_[1] + ": the lines of shard 2 are not those"))
      << result.err;
  std::ofstream(inputs_[0]) << before << "more\n";
  result = run();
  EXPECT_TRUE(contains(result.err, "a.txt: it has")) << result.err;
  fs::remove(inputs_[0]);
  fs::remove(shard_file(4, "done"));  // of the other files
  result = run();
  EXPECT_EQ(status()["left_shards"], (Words{"2"}));
  EXPECT_TRUE(contains(result.err, "a.txt: no such file")) << result.err;
  EXPECT_EQ(result.exit_code, 3);
  std::ofstream(inputs_[0]) << before;
  run_to_the_end();
}

TEST_F(CliShardTest, AnotherModelIsRefused) {
  const fs::path model = folder_.path() / "model";
  fs::copy(bundled_model("sinusoidal"), model);
  plan({"--lines", "60", "-m", model.string()});
  EXPECT_EQ(run({"0"}).exit_code, 0);
  fs::rename(model, folder_.path() / "elsewhere");
  EXPECT_EQ(run({"1"}).exit_code, 4);
  EXPECT_EQ(run({"1", "-m", file("elsewhere")}).exit_code, 0);
  fs::rename(folder_.path() / "elsewhere", model);
  std::ofstream(model / "vocab.txt") << "x";
  const ProgramResult result = run({"2"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "planned with tokenizer")) << result.err;
  fs::remove(model / "vocab.txt");
  run_to_the_end();
}

TEST_F(CliShardTest, AFullDiskFailsBeforeTheWorkAndLeavesNothing) {
  plan();
  const Words before = names_in_shards();
  const ProgramResult result =
      run_infer({"shard", "run", "-q", shards(), "0"}, {.file_size_limit = 20000});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "cannot write")) << result.err;
  EXPECT_EQ(names_in_shards(), before);
  run_to_the_end();
}

TEST_F(CliShardTest, ASignalEndsItAndLeavesNoHalfShard) {
  plan({"--lines", "25"});
  const ProgramResult result =
      run_infer({"shard", "run", "-t", "1", shards()},
                {.signal = SIGTERM, .when = [&] { return fs::exists(shard_file(1, "done")); }});
  if (result.exit_code == 0) GTEST_SKIP() << "it was done before the signal came";
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  for (const std::string& name : names_in_shards())
    EXPECT_EQ(name.find(".tmp."), name.npos) << name;
  run_to_the_end();
}

TEST_F(CliShardTest, ManyAttemptsAtTheSameShardsAtOnceGiveTheSame) {
  plan({"--lines", "25"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(run({"0-9"}).exit_code, 0); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(status({"--verify"})["damaged"].size(), 0u);
  EXPECT_EQ(names_in_shards().size(), 2u * 10 + 2);
  expect_whole();
}

TEST_F(CliShardTest, WhatKilledAttemptsLeaveIsRemovedAndWhatIsWrittenIsNot) {
  plan();
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  const auto left_by = [&](const std::string& who) {
    return folder_.write("shards/000/shard-000001.npy.tmp." + who, "half");
  };
  const fs::path killed = left_by(std::string(host.data()) + ".17.0000abcd");
  const fs::path alive = left_by(std::string(host.data()) + ".18.0000abcd");
  const fs::path young = left_by("other.host.19.0000abcd"), old = left_by("other.host.20.0000abcd");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const int descriptor = open(alive.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(flock(descriptor, LOCK_EX), 0);
  json now = status();
  EXPECT_EQ(now["writing"], 2);
  EXPECT_EQ(now["abandoned"], 2);
  EXPECT_EQ(status({"--clean"})["abandoned"], 0);
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(alive));
  EXPECT_TRUE(fs::exists(young));
  close(descriptor);
  EXPECT_EQ(run({"1"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(alive));
}

// Only system calls change files, so a kill before each of them stands for a kill at any
// instruction.
TEST_F(CliShardTest, KilledAtAnyCallNothingIsLostOrHalf) {
  if (!can_kill_at_call()) GTEST_SKIP() << "processes cannot be traced here";
  const auto kill = [](int) { return AtCall{.signal = SIGKILL}; };
  inputs_ = {folder_.write("all.txt", sentences(8, 4))};
  const Words lines = {"--lines", "4"};
  const auto plan_anew = [&] {
    fs::remove_all(shards());
    plan(lines);
  };
  const auto check_run = [&](const TracedResult&) {
    succeed({"shard", "status", "--verify", shards()});
    run_to_the_end();
    EXPECT_EQ(names_in_shards().size(), 6u);
  };
  EXPECT_GT(at_every_call({"shard", "run", "-q", "-t", "1", shards()}, kill, plan_anew, check_run),
            20);

  const std::string merged = file("merged.npy");
  const auto remove_merged = [&] { fs::remove(merged); };
  const auto check_merged = [&](const TracedResult&) {
    if (!fs::exists(merged)) return;
    EXPECT_TRUE(read_text_file(merged) == read_text_file(file("whole.npy")));
  };
  EXPECT_GT(at_every_call({"shard", "merge", "-q", shards(), "-o", merged}, kill, remove_merged,
                          check_merged),
            3);
  EXPECT_EQ(merge().exit_code, 0);
  for (const std::string& name : file_names(folder_.path())) {
    EXPECT_EQ(name.find(".tmp."), name.npos) << name;
  }

  const auto remove_plan = [&] { fs::remove_all(shards()); };
  const auto check_plan = [&](const TracedResult&) {
    plan(lines);
    EXPECT_EQ(status()["shards"], 2);
  };
  EXPECT_GT(at_every_call(plan_words(lines), kill, remove_plan, check_plan), 5);
}

TEST_F(CliShardTest, CleaningTakesNothingFromThoseWhoWrite) {
  if (!can_kill_at_call()) GTEST_SKIP() << "processes cannot be traced here";
  inputs_ = {folder_.write("all.txt", sentences(4, 4))};
  const auto clean = [&](int) {
    return AtCall{.meanwhile = [&] {
      EXPECT_EQ(status({"--clean"})["abandoned"], 0);
      EXPECT_EQ(run({"0"}).exit_code, 0);  // another attempt
    }};
  };
  const auto plan_anew = [&] {
    fs::remove_all(shards());
    plan({"--lines", "4"});
  };
  const auto check = [&](const TracedResult& result) {
    EXPECT_EQ(result.exit_code, 0) << result.err;
    expect_whole();
    EXPECT_EQ(names_in_shards().size(), 4u);
  };
  EXPECT_GT(at_every_call({"shard", "run", "-q", "-t", "1", shards()}, clean, plan_anew, check),
            10);
}

TEST_F(CliShardTest, OfAPlanRefusalsNameTheFileAndTheWayOut) {
  plan();
  expect_refused(
      {
          {3, "shard run shards 5", {"there is no shard 5", "0 to 4"}},
          {2, "shard run shards 3-1", {"'3-1' is not a shard"}},
          {2, "shard run shards x", {"'x' is not a shard"}},
          {2, "shard merge shards", {"-o FILE"}},
          {2, "shard merge shards -o x.jsonl", {".npy files"}},
      },
      folder_.path());
  for (const std::string& name : names_in_shards()) {
    if (name != "plan.json") folder_.write("shards/" + name, "x");
  }
  expect_infer_fails({"shard", "run", shards()}, 3, {".npy is damaged", "plan into a new folder"});
  folder_.write("shards/plan.json", std::string(200000, '['));
  expect_infer_fails({"shard", "status", shards()}, 3, {"plan.json"});
}

TEST_F(CliShardTest, LinesAreToldByTheirFile) {
  inputs_ = {folder_.write("a.txt", "one\ntwo\n"), folder_.write("b.txt",
                                                                 "good\nb\xFF"
                                                                 "ad\n")};
  plan({"--lines", "3", "--strict"});
  const ProgramResult result = run();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(contains(result.err, "b.txt: line 2: 1 byte was not UTF-8")) << result.err;
}

}  // namespace
}  // namespace phasor
