// Every way to misuse the command line: the exit code, and one line that says what to do.
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(CliErrorsTest, NothingToDoIsAUsageErrorThatNamesTheCommands) {
  expect_infer_fails({}, 2, {"give a text", "infer --help"});
  expect_infer_fails({"-q"}, 2, commands());
}

TEST(CliErrorsTest, WhereNobodyReadsMessagesNothingElseHappens) {
  for (const char* const command : {"\"$0\" Tom", "\"$0\" -m nope Tom; test $? = 4"}) {
    for (const char* const where : {"2>/dev/full", "2>&-"}) {
      const std::string script = fmt::format("({}) >/dev/null {}", command, where);
      const ProgramResult result = run_program({"/bin/sh", "-c", script, INFER_BINARY});
      EXPECT_EQ(result.exit_code, 0) << script;
    }
  }
}

// oneDNN 2.6 itself crashes where it gets no memory to compile into.
TEST(CliErrorsTest, UnderALimitOfTheAddressSpaceItRunsOrSaysInALineThatMemoryIsOut) {
  if (HAS_ADDRESS_SANITIZER || HAS_THREAD_SANITIZER) GTEST_SKIP() << "they reserve terabytes";
  const TempFolder folder;
  for (const char* const command :
       {"Tom", "embed -i $1 -o v.npy", "Tom --kernels onednn --precision int8",
        "embed -i $1 -o v.npy --kernels onednn -t 4"}) {
    std::set<int> codes;
    for (int limit = 60000; limit <= 400000; limit += limit < 200000 ? 7000 : 100000) {
      const ProgramResult result =
          run_program({"/bin/sh", "-c", fmt::format("ulimit -v {}; exec $0 {} -q", limit, command),
                       INFER_BINARY, PHASOR_SOURCE_DIR "/examples/sentences.txt"},
                      {.directory = folder.path()});
      codes.insert(result.exit_code);
      EXPECT_EQ(lines_of(result.err).size(), result.exit_code == 0 ? 0u : 1u) << result.err;
      EXPECT_TRUE(result.exit_code != 5 || contains(result.err, "out of memory")) << result.err;
    }
    codes.erase(4);    // the model's file cannot be mapped
    codes.erase(127);  // nor the program itself
    EXPECT_EQ(codes, (std::set{0, 5})) << command;
  }
}

TEST(CliErrorsTest, NamesThatNoFileCanHaveExitWith3) {
  const TempFolder folder;
  const std::string name(300, 'x'), loop = folder / "loop";
  fs::create_symlink("loop", loop);
  for (const auto& [file, why] : {std::pair(name, "name too long"),
                                  std::pair(loop + "/a", "Too many levels of symbolic links")}) {
    for (const char* const line :
         {"positions -q paper --save {}.npy", "positions -q paper --save {}.safetensors",
          "positions -q {}.npy", "positions -q {}.safetensors", "-q --save {}.safetensors Tom",
          "embed -q -i {}", "embed -q -o {}.npy Tom", "embed -q -o {}/a.npy Tom",
          "observe -q --html {} Tom", "positions -q --html {}"})
      expect_refused({{3, fmt::format(fmt::runtime(line), file), {file, why}}});
  }
}

TEST(CliErrorsTest, BadModelsExitWith4) {
  const TempFolder folder;
  const std::string run = "x -m " + folder.path().string();
  const std::string run_ids = "--ids '1 2' -m " + folder.path().string();
  fs::create_symlink("l.safetensors", folder / "l.safetensors");
  expect_refused({{4, run, {"config.json"}}, {4, run + "/l.safetensors", {"l.safetensors"}}});
  fs::remove(folder / "l.safetensors");
  folder.write("config.json", small_config_json().dump());
  expect_refused({{4, run_ids, {"no model.safetensors", "hf download OWNER/MODEL --local-dir"}}});
  folder.write("model.safetensors", safetensors_bytes(small_tensors()));
  expect_refused({{4, run, {"token ids"}}});
  expect_json({{run_ids, R"({"pieces": []})"}});
  folder.write("config.json", R"({"model_type": "llama", "hidden_size": 4096})");
  expect_refused({{4, run, {"\"llama\"", "decoder", "llama.cpp"}}});
  folder.write("config.json", "{\n\n oops");
  expect_refused({{4, "info " + folder.path().string(), {"config.json"}}});
}

TEST(CliErrorsTest, AClosedPipeIsQuiet) {
  const ProgramResult result = run_program(
      {"/bin/sh", "-c",
       std::string("yes Tom | head -2000 | '") + INFER_BINARY + "' -q --json - | head -1"});
  EXPECT_EQ(lines_of(result.out).size(), 1u);
  EXPECT_EQ(result.err, "");
}

TEST(CliErrorsTest, AFullStandardOutputIsAnError) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "There is no /dev/full here.";
  const ProgramResult result = run_infer({"-q", "Tom"}, {.out = "/dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(result.err.starts_with("infer: cannot write to standard output")) << result.err;
}

}  // namespace
}  // namespace phasor
