// Every way to misuse the command line: the exit code, and one line that says what to do.
#include <sys/stat.h>

#include "infer/commands.h"
#include "tests/program/program.h"

namespace phasor {
namespace {

TEST(CliErrorsTest, NothingToDoIsAUsageErrorWithAShortHelp) {
  const ProgramResult result = run_infer({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("usage: infer")) << result.err;
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

TEST(CliErrorsTest, EveryOptionMayStandBeforeItsCommand) {
  for (const infer::CommandDescription& command : infer::describe_commands()) {
    if (command.name == "infer") continue;
    const std::string name = command.name.substr(command.name.find(' ') + 1);
    const std::string help = run_infer({name, "--help"}).out;
    for (const infer::OptionDescription& option : command.options) {
      for (const std::string& spelled : option.names) {
        if (spelled == "-h" || spelled == "--help" || spelled == "--version") continue;
        Words words = {spelled};
        if (!option.value.empty()) {
          words.push_back(option.values.empty() ? "3" : option.values.front());
        }
        words.insert(words.end(), {name, "--help"});
        EXPECT_EQ(run_infer(words).out, help) << spelled << " before " << name;
      }
    }
  }
  const std::string help = run_infer({"observe", "--help"}).out;
  EXPECT_EQ(run_infer({"-qm", "learned", "observe", "--help"}).out, help);
  EXPECT_EQ(run_infer({"-mlearned", "--top-k=3", "observe", "--help"}).out, help);
}

TEST(CliErrorsTest, TwoSpellingsOfOneThingAreTheSame) {
  const std::pair<Words, Words> alike[] = {
      {{"observe", "--only", "pattern", "--head", "2.1", "Tom bit a dog."},
       {"observe", "--only", "pattern", "--head", "L1H0", "Tom bit a dog."}},
      {{"--positions", "marian", "--json", "Tom"},
       {"--positions", "sinusoidal:marian", "--json", "Tom"}},
      {{"positions", "marian", "--csv"}, {"positions", "sinusoidal:marian", "--csv"}},
      {{"embed", "-q", "Tom"}, {"embed", "-q", "-o", "-", "Tom"}},
  };
  for (const auto& [a, b] : alike) {
    const ProgramResult first = succeed(a), second = run_infer(b);
    EXPECT_EQ(first.out, second.out) << b[0];
    EXPECT_NE(first.out, "") << a[0];
  }
}

TEST(CliErrorsTest, APipeWithoutWordsIsRead) {
  const std::string text = "Tom bit a dog.\n";
  const auto tokenize = [&](const Words& words) {
    return run_program(Words{INFER_BINARY, "tokenize", "--json", "-q"} + words, {.input = text})
        .out;
  };
  EXPECT_NE(tokenize({}), "");
  EXPECT_EQ(tokenize({}), tokenize({"-"}));
  EXPECT_EQ(tokenize({}), tokenize({"Tom bit a dog."}));
}

TEST(CliErrorsTest, WordsThatMayBeMisplacedAreNoted) {
  const ProgramResult near = succeed({"observ", "Tom"});
  EXPECT_TRUE(contains(near.err, "note: did you mean the command infer observe?"));
  EXPECT_EQ(run_infer({"-q", "observ", "Tom"}).err, "");

  const TempFolder folder;
  folder.write("lines.txt", "a\nb\n");
  const std::string file = (folder.path() / "lines.txt").string();
  for (const char* const command : {"embed", "observe"}) {
    const ProgramResult result = succeed({command, file});
    EXPECT_TRUE(contains(result.err, "-i " + file + " reads its lines")) << result.err;
  }
  EXPECT_NE(run_infer({file}).err.find("infer - < " + file), std::string::npos);
}

TEST(CliErrorsTest, NamesThatNoFileCanHaveExitWith3) {
  const TempFolder folder;
  const std::string name(300, 'x'), loop = folder.path() / "loop";
  fs::create_symlink("loop", loop);
  for (const auto& file : {std::pair(name, "name too long"),
                           std::pair(loop + "/a", "Too many levels of symbolic links")}) {
    const std::string& prefix = file.first;
    const char* const why = file.second;
    const auto fails = [&](const Words& arguments) {
      expect_infer_fails(arguments, 3, {prefix, why});
    };
    for (const char* const end : {".npy", ".safetensors"}) {
      fails({"positions", "-q", "paper", "--save", prefix + end});
    }
    fails({"positions", "-q", prefix + ".npy"});
    fails({"positions", "-q", prefix + ".safetensors"});
    fails({"-q", "--save", prefix + ".safetensors", "Tom"});
    fails({"embed", "-q", "-i", prefix});
    fails({"embed", "-q", "-o", prefix + ".npy", "Tom"});
    fails({"embed", "-q", "-o", prefix + "/a.npy", "Tom"});
    fails({"observe", "-q", "--html", prefix, "Tom"});
    fails({"positions", "-q", "--html", prefix});
  }
}

TEST(CliErrorsTest, OddFilesInAModelsFolderAreLeftAlone) {
  const TempFolder folder;
  const fs::path model = copy_of_bundled(folder, "none");
  fs::create_symlink("loop.json", model / "loop.json");
  fs::create_symlink("loop.safetensors", model / "loop.safetensors");
  fs::create_directory(model / "folder.safetensors");
  mkfifo((model / "pipe.json").c_str(), 0600);
  mkfifo((model / "pipe.safetensors").c_str(), 0600);
  const std::string out = (folder.path() / "a.npy").string();
  succeed({"embed", "-q", "-m", model.string(), "-o", out, "Tom"});
  succeed({"info", model.string()});
}

TEST(CliErrorsTest, BadModelsExitWith4) {
  const TempFolder folder;
  expect_infer_fails({"-m", folder.path().string(), "x"}, 4, {"config.json"});
  folder.write("config.json", small_config_json().dump());
  expect_infer_fails({"-m", folder.path().string(), "--ids", "1"}, 4, {"model.safetensors"});
  folder.write("model.safetensors", safetensors_bytes(small_tensors()));
  expect_infer_fails({"-m", folder.path().string(), "x"}, 4, {"token ids"});
  EXPECT_EQ(infer_json({"-m", folder.path().string(), "--ids", "1 2"}).at(0)["pieces"],
            json::array());
  folder.write("config.json", R"({"model_type": "llama", "hidden_size": 4096})");
  expect_infer_fails({"-m", folder.path().string(), "x"}, 4, {"\"llama\"", "decoder", "llama.cpp"});
  folder.write("config.json", "{\n\n oops");
  expect_infer_fails({"info", folder.path().string()}, 4, {"config.json"});
}

TEST(CliErrorsTest, LinksThatLeadNowhereAreNoBackendErrors) {
  const TempFolder folder;
  const auto loop = folder.path() / "l.safetensors";
  fs::create_symlink("l.safetensors", loop);
  expect_infer_fails({"-m", loop.string(), "x"}, 4, {"l.safetensors"});
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
