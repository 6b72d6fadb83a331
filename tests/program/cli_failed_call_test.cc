// infer while each of its system calls that change files fails, or is interrupted there.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "tests/support/bert_folder.h"
#include "tests/support/infer_program.h"
#include "tests/support/kill_at_call.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string numbered_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "a b " + std::string(1 + i % 3, 'c') + "\n";
  return text;
}

class CliFailedCallTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_fail_at_call()) GTEST_SKIP() << "processes cannot be traced here";
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string model() const { return bert_.path(); }
  static Words with_program(Words words) {
    words.insert(words.begin(), INFER_BINARY);
    return words;
  }
  void remove_all_but(const Words& kept) const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (std::ranges::find(kept, entry.path().filename().string()) == kept.end())
        fs::remove_all(entry);
    }
  }
  Words names() const {
    Words all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      all.push_back(entry.path().filename());
    }
    std::ranges::sort(all);
    return all;
  }

  /// By their names below `folder`.
  static std::map<std::string, std::string> contents(const fs::path& folder) {
    std::map<std::string, std::string> all;
    if (!fs::exists(folder)) return all;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      all[fs::relative(entry, folder).string()] = read_text_file(entry.path());
    }
    return all;
  }

  /// Runs `words`, which write `name`, while each call fails: the file then is the old one or
  /// whole, and `again` makes it and leaves nothing else.
  void expect_whole_or_old(const std::string& name, const Words& words, const Words& again) const {
    SCOPED_TRACE(name);
    const Words kept = names();
    ASSERT_EQ(run_infer(words).exit_code, 0);
    const std::string whole = read_text_file(file(name));
    const Words done = names();
    int calls = 0;
    for (bool reached = true; reached; ++calls) {
      for (const int error : {ENOSPC, EIO}) {
        SCOPED_TRACE(std::to_string(calls) + ": " + std::strerror(error));
        remove_all_but(kept);
        const bool has_old = words == again;
        if (has_old) folder_.write(name, "old");
        const TracedResult result =
            run_to_call(with_program(words), {.number = calls, .error = error});
        reached = result.reached;
        const std::string now = fs::exists(file(name)) ? read_text_file(file(name)) : "old";
        EXPECT_TRUE(now == whole || now == "old") << "torn: " << now.size() << " bytes";
        if (result.exit_code == 0) {
          EXPECT_TRUE(now == whole) << "nothing was said";
        } else {
          EXPECT_EQ(result.exit_code, 3) << result.err;
          EXPECT_TRUE(result.err.starts_with("infer: ")) << result.err;
          EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
        }
        const ProgramResult second = run_infer(again);
        EXPECT_EQ(second.exit_code, 0) << second.err;
        EXPECT_TRUE(read_text_file(file(name)) == whole);
        fs::remove(file(name + ".partial.json"));  // left where it could not be removed
        EXPECT_EQ(names(), done);
      }
    }
    EXPECT_GT(calls, 3);
    remove_all_but(kept);
  }

  const TempFolder folder_;
  const BertFolder bert_{{}};
};

TEST_F(CliFailedCallTest, EmbedSaysWhatFailedAndGoesOnFromThere) {
  const std::string in = folder_.write("in.txt", numbered_lines(1030));  // two windows
  for (const std::string format : {"npy", "safetensors", "jsonl"}) {
    const Words words = {"embed", "-q", "-t", "1",  "-m",
                         model(), "-i", in,   "-o", file("out." + format)};
    Words again = words;
    again.emplace_back("--resume");
    expect_whole_or_old("out." + format, words, again);
  }
}

TEST_F(CliFailedCallTest, EmbedInterruptedAnywhereGoesOnFromThere) {
  const std::string in = folder_.write("in.txt", numbered_lines(1030));
  const Words words = {"embed", "-q", "-t", "1", "-m", model(), "-i", in, "-o", file("out.npy")};
  Words again = words;
  again.emplace_back("--resume");
  ASSERT_EQ(run_infer(words).exit_code, 0);
  const std::string whole = read_text_file(file("out.npy"));
  const std::string record = read_text_file(file("out.npy.json"));
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    int calls = 0;
    for (bool reached = true; reached; ++calls) {
      SCOPED_TRACE(std::to_string(calls) + ": signal " + std::to_string(signal));
      remove_all_but({"in.txt"});
      const TracedResult result =
          run_to_call(with_program(words), {.number = calls, .signal = signal});
      reached = result.reached;
      // Where the signal came too late to change anything, the run was complete.
      EXPECT_TRUE(result.exit_code == 128 + signal || result.exit_code == 0) << result.exit_code;
      const std::string now = fs::exists(file("out.npy")) ? read_text_file(file("out.npy")) : "";
      EXPECT_TRUE(now == whole || (now.empty() && result.exit_code != 0));
      const ProgramResult second = run_infer(again);
      EXPECT_EQ(second.exit_code, 0) << second.err;
      EXPECT_TRUE(read_text_file(file("out.npy")) == whole);
      EXPECT_EQ(read_text_file(file("out.npy.json")), record);
      EXPECT_FALSE(fs::exists(file("out.npy.partial.json")));
    }
    EXPECT_GT(calls, 20);
  }
}

TEST_F(CliFailedCallTest, ShardsAreWholeOrAbsent) {
  const std::string in = folder_.write("in.txt", numbered_lines(20)), shards = file("shards");
  const Words plan = {"shard", "plan", "-q", "-m", model(), "--lines",
                      "10",    "-i",   in,   "-o", shards};
  const Words run = {"shard", "run", "-q", "-t", "1", shards};
  const Words merge = {"shard", "merge", "-q", shards, "-o", file("out.npy")};
  ASSERT_EQ(run_infer({"embed", "-q", "-m", model(), "-i", in, "-o", file("whole.npy")}).exit_code,
            0);
  const std::string whole = read_text_file(file("whole.npy"));
  ASSERT_EQ(run_infer(plan).exit_code, 0);
  ASSERT_EQ(run_infer(run).exit_code, 0);
  const std::map<std::string, std::string> done = contents(shards);
  for (const Words& failing : {plan, run, merge}) {
    int calls = 0;
    for (bool reached = true; reached; ++calls) {
      for (const int error : {ENOSPC, EIO}) {
        SCOPED_TRACE(failing[1] + " " + std::to_string(calls) + ": " + std::strerror(error));
        remove_all_but({"in.txt", "whole.npy"});
        for (const Words& words : {plan, run, merge}) {
          if (words == failing) {
            const TracedResult result =
                run_to_call(with_program(words), {.number = calls, .error = error});
            reached = result.reached;
            EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 3)
                << result.exit_code << result.err;
            EXPECT_EQ(result.err.empty(), result.exit_code == 0) << result.err;
            for (const auto& [name, bytes] : contents(shards)) {
              // A record says how long it took; a temporary file stays where it cannot be removed.
              const bool other = name.ends_with(".done") || name.find(".tmp.") != name.npos;
              EXPECT_TRUE(other || (done.contains(name) && done.at(name) == bytes)) << name;
            }
            EXPECT_TRUE(!fs::exists(file("out.npy")) || read_text_file(file("out.npy")) == whole);
          }
          const ProgramResult result = run_infer(words);
          EXPECT_EQ(result.exit_code, 0) << words[1] << ": " << result.err;
        }
        EXPECT_TRUE(read_text_file(file("out.npy")) == whole);
      }
    }
    EXPECT_GT(calls, 3);
  }
}

TEST_F(CliFailedCallTest, SavedFilesAreOldOrWhole) {
  const std::string saved = "saved.safetensors";
  const Words words = {"-q", "-t", "1", "-m", model(), "--save", file(saved), "a b c"};
  expect_whole_or_old(saved, words, words);
  for (const std::string format : {"npy", "safetensors"}) {
    const std::string name = "table." + format;
    const Words words = {"positions", "-q", "paper",  "--width", "8",
                         "--length",  "9",  "--save", file(name)};
    expect_whole_or_old(name, words, words);
  }
}

TEST_F(CliFailedCallTest, AKilledSaveLeavesNothingAfterTheNext) {
  const Words words = {"positions", "-q", "paper",  "--width",        "8",
                       "--length",  "9",  "--save", file("table.npy")};
  int calls = 0;
  for (bool reached = true; reached; ++calls) {
    SCOPED_TRACE(calls);
    remove_all_but({});
    reached = run_to_call(with_program(words), {.number = calls, .signal = SIGKILL}).reached;
    EXPECT_EQ(run_infer(words).exit_code, 0);
    EXPECT_EQ(names(), Words{"table.npy"});
  }
  EXPECT_GT(calls, 3);
}

TEST_F(CliFailedCallTest, PagesAreOldOrWhole) {
  const std::string name = "page.html";
  const Words words = {"positions", "-q", "paper",  "--width", "8",
                       "--length",  "9",  "--html", file(name)};
  expect_whole_or_old(name, words, words);
}

/// A file system of its own, in a namespace that ends with the child.
TEST_F(CliFailedCallTest, AFullFileSystemLeavesWhatCanBeResumed) {
  const std::string in = folder_.write("in.txt", numbered_lines(20'000)), small = file("small");
  fs::create_directory(small);
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", small.c_str(), "tmpfs", 0, "size=512k") != 0) {
      _exit(77);
    }
    const Words words = {"embed", "-q", "-m", model(), "-i", in, "-o", small + "/out.npy"};
    Words again = words;
    again.emplace_back("--resume");
    const ProgramResult full = run_infer(words);
    const bool said = full.exit_code == 3 && contains(full.err, "No space left on device") &&
                      contains(full.err, "--resume") && !fs::exists(small + "/out.npy");
    if (!said) _exit(1);
    if (mount("none", small.c_str(), nullptr, MS_REMOUNT, "size=4m") != 0) _exit(77);
    if (run_infer(again).exit_code != 0) _exit(2);
    fs::copy(small + "/out.npy", file("resumed.npy"));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "nothing can be mounted here";
  ASSERT_EQ(status, 0);
  ASSERT_EQ(run_infer({"embed", "-q", "-m", model(), "-i", in, "-o", file("whole.npy")}).exit_code,
            0);
  EXPECT_TRUE(read_text_file(file("resumed.npy")) == read_text_file(file("whole.npy")));
}

}  // namespace
}  // namespace phasor
