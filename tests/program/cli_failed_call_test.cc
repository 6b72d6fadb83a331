// infer while each of its system calls that change files fails, or is interrupted there.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/program/program.h"
#include "tests/support/bert_folder.h"

namespace phasor {
namespace {

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
  Words names() const { return file_names(folder_.path()); }
  void remove_all_but(const Words& kept) const {
    for (const std::string& name : names()) {
      if (std::ranges::find(kept, name) == kept.end()) fs::remove_all(file(name));
    }
  }
  /// What a file holds; nothing where it is not there.
  std::string now(const std::string& name) const {
    return fs::exists(file(name)) ? read_text_file(file(name)) : "";
  }

  /// Runs `words`, which write `name`, while each call fails: the file then is the old one or
  /// whole, and `again` makes it and leaves nothing else.
  void expect_whole_or_old(const std::string& name, const Words& words, const Words& again) const {
    SCOPED_TRACE(name);
    const Words kept = names();
    succeed(words);
    const std::string whole = now(name), old = words == again ? "old" : "";
    const Words done = names();
    const auto before = [&] {
      remove_all_but(kept);
      if (!old.empty()) folder_.write(name, old);
    };
    const int calls = at_every_call(words, failing, before, [&](const TracedResult& result) {
      const bool is_whole = now(name) == whole;
      EXPECT_TRUE(is_whole || now(name) == old) << "torn: " << now(name).size() << " bytes";
      if (result.exit_code == 0) {
        EXPECT_TRUE(is_whole) << "nothing was said";
      } else {
        EXPECT_EQ(result.exit_code, 3) << result.err;
        EXPECT_TRUE(result.err.starts_with("infer: ")) << result.err;
        EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
      }
      succeed(again);
      EXPECT_TRUE(now(name) == whole);
      EXPECT_EQ(names(), done);
    });
    EXPECT_GT(calls, 3);
    remove_all_but(kept);
  }

  const TempFolder folder_;
  const BertFolder bert_{{}};
};

TEST_F(CliFailedCallTest, EmbedSaysWhatFailed) {
  const std::string in = folder_.write("in.txt", numbered_lines(1030));  // two windows
  for (const std::string format : {"npy", "safetensors", "jsonl"}) {
    const Words words = {"embed", "-q", "-t", "1",  "-m",
                         model(), "-i", in,   "-o", file("out." + format)};
    expect_whole_or_old("out." + format, words, words);
  }
}

TEST_F(CliFailedCallTest, SavedFilesAndPagesAreOldOrWhole) {
  const Words table = {"positions", "-q", "paper", "--width", "8", "--length", "9"};
  const Words states = {"-q", "-t", "1", "-m", model(), "a b c"};
  for (const auto& [words, option, name] :
       {std::tuple(states, "--save", "a.safetensors"), std::tuple(table, "--save", "table.npy"),
        std::tuple(table, "--save", "b.safetensors"), std::tuple(table, "--html", "page.html")}) {
    const Words saving = words + Words{option, file(name)};
    expect_whole_or_old(name, saving, saving);
  }
}

TEST_F(CliFailedCallTest, AKilledSaveLeavesNothingAfterTheNext) {
  const Words words = {"positions", "-q", "paper",  "--width",        "8",
                       "--length",  "9",  "--save", file("table.npy")};
  const auto kill = [](int) { return AtCall{.signal = SIGKILL}; };
  const auto before = [&] { remove_all_but({}); };
  const int calls = at_every_call(words, kill, before, [&](const TracedResult&) {
    succeed(words);
    EXPECT_EQ(names(), Words{"table.npy"});
  });
  EXPECT_GT(calls, 3);
}

/// A file system of its own, in a namespace that ends with the child.
TEST_F(CliFailedCallTest, AFullFileSystemLeavesNothing) {
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
    const ProgramResult full = run_infer(words);
    const bool said =
        full.exit_code == 3 && contains(full.err, "No space left on device") && fs::is_empty(small);
    if (!said) _exit(1);
    if (mount("none", small.c_str(), nullptr, MS_REMOUNT, "size=4m") != 0) _exit(77);
    if (run_infer(words).exit_code != 0) _exit(2);
    fs::copy(small + "/out.npy", file("again.npy"));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "nothing can be mounted here";
  ASSERT_EQ(status, 0);
  succeed({"embed", "-q", "-m", model(), "-i", in, "-o", file("whole.npy")});
  EXPECT_TRUE(now("again.npy") == now("whole.npy"));
}

}  // namespace
}  // namespace phasor
