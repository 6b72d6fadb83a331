// Every way to misuse the command line: the exit code, and one line that says what to do.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "infer/commands.h"
#include "tests/support/infer_program.h"
#include "tests/support/test_files.h"

namespace phasor {
namespace {

using nlohmann::json;

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

TEST(CliErrorsTest, UsageErrorsExitWith2) {
  expect_infer_fails({"--bogus"}, 2, {"--bogus"});
  expect_infer_fails({"-t", "-1", "x"}, 2, {"threads", "-1"});
  expect_infer_fails({"-t", "many", "x"}, 2, {"many"});
  expect_infer_fails({"--positions", "roatry", "x"}, 2, {"roatry", "rotary"});
  expect_infer_fails({"--positions", "rotary:1", "x"}, 2, {"rotary:1", "above 1"});
  expect_infer_fails({"--positions", "sinusoidal:paris", "x"}, 2, {"paris", "marian"});
  expect_infer_fails({"--overflow", "wrap", "x"}, 2, {"wrap", "interpolate"});
  expect_infer_fails({"--save", "x.txt", "x"}, 2, {"x.txt", ".safetensors"});
  expect_infer_fails({"--ids", "5 dog", "-q"}, 2, {"dog"});
  expect_infer_fails({"--ids", "5", "text"}, 2, {"--ids", "text"});
  expect_infer_fails({"-m"}, 2, {"--model"});
  expect_infer_fails({"verify"}, 2, {"folder"});
}

TEST(CliErrorsTest, MisspelledNamesGetTheNearest) {
  expect_infer_fails({"observe", "--onyl", "split", "x"}, 2,
                     {"--onyl", "did you mean --only?", "infer observe --help lists the options"});
  expect_infer_fails({"info", "a", "b"}, 2, {"'b'", "infer info --help"});
  expect_infer_fails({"observe", "--only", "slpit", "x"}, 2, {"slpit", "did you mean split?"});
  expect_infer_fails({"--positions", "lerned", "x"}, 2, {"did you mean learned?"});
  expect_infer_fails({"--positions", "maria", "x"}, 2, {"did you mean marian?"});
  expect_infer_fails({"--positions", "sinusoidal:fairsec", "x"}, 2, {"did you mean fairseq?"});
  expect_infer_fails({"-m", "sinusodal", "x"}, 4, {"did you mean sinusoidal?"});
  expect_infer_fails({"compare", "sinusoidal", "lerned"}, 4, {"did you mean learned?"});
  expect_infer_fails({"positions", "sinusoidal:maria"}, 2, {"did you mean marian?"});
  expect_infer_fails({"observe", "--head", "L9H0", "x"}, 3, {"L9H0", "L0H0 to L5H3"});
  expect_infer_fails({"observe", "--head", "L1.0", "x"}, 2, {"2.1", "L1H0"});
  expect_infer_fails({"--save", "-", "x"}, 2, {"--save", "streamed"});
  expect_infer_fails({"embed", "-o", "-", "--resume"}, 2, {"--resume", "-o FILE"});
  expect_infer_fails({"--precision", "int9", "x"}, 2, {"int9", "did you mean int8?"});
  expect_infer_fails({"observ", "--html", "a.html", "x"}, 2,
                     {"--html", "did you mean the command infer observe?"});
  expect_infer_fails({"help", "obsreve"}, 2, {"obsreve", "did you mean observe?"});
  expect_infer_fails({"bench", "--seconds", "soon"}, 2, {"--seconds", "'soon'", "0 to 3600"});
}

TEST(CliErrorsTest, EveryOptionMayStandBeforeItsCommand) {
  for (const infer::CommandDescription& command : infer::describe_commands()) {
    if (std::ranges::count(command.name, ' ') != 1) continue;  // infer itself, and verbs of shard
    const std::string name = command.name.substr(command.name.find(' ') + 1);
    const std::string help = run_infer({name, "--help"}).out;
    for (const infer::OptionDescription& option : command.options) {
      for (const std::string& spelled : option.names) {
        if (spelled == "-h" || spelled == "--help" || spelled == "--version") continue;
        std::vector<std::string> words = {spelled};
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
  const std::pair<std::vector<std::string>, std::vector<std::string>> alike[] = {
      {{"observe", "--only", "pattern", "--head", "2.1", "Tom bit a dog."},
       {"observe", "--only", "pattern", "--head", "L1H0", "Tom bit a dog."}},
      {{"--positions", "marian", "--json", "Tom"},
       {"--positions", "sinusoidal:marian", "--json", "Tom"}},
      {{"positions", "marian", "--csv"}, {"positions", "sinusoidal:marian", "--csv"}},
      {{"embed", "-q", "Tom"}, {"embed", "-q", "-o", "-", "Tom"}},
  };
  for (const auto& [a, b] : alike) {
    const ProgramResult first = run_infer(a), second = run_infer(b);
    EXPECT_EQ(first.exit_code, 0) << first.err;
    EXPECT_EQ(first.out, second.out) << b[0];
    EXPECT_NE(first.out, "") << a[0];
  }
}

TEST(CliErrorsTest, APipeWithoutWordsIsRead) {
  const std::string text = "Tom bit a dog.\n";
  const auto tokenize = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {INFER_BINARY, "tokenize", "--json", "-q"});
    return run_program(words, {.input = text}).out;
  };
  EXPECT_NE(tokenize({}), "");
  EXPECT_EQ(tokenize({}), tokenize({"-"}));
  EXPECT_EQ(tokenize({}), tokenize({"Tom bit a dog."}));
}

TEST(CliErrorsTest, WordsThatMayBeMisplacedAreNoted) {
  const ProgramResult near = run_infer({"observ", "Tom"});
  EXPECT_EQ(near.exit_code, 0);
  EXPECT_NE(near.err.find("note: did you mean the command infer observe?"), std::string::npos);
  EXPECT_EQ(run_infer({"-q", "observ", "Tom"}).err, "");

  const TempFolder folder;
  folder.write("lines.txt", "a\nb\n");
  const std::string file = (folder.path() / "lines.txt").string();
  for (const char* const command : {"embed", "observe"}) {
    const ProgramResult result = run_infer({command, file});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.err.find("-i " + file + " reads its lines"), std::string::npos) << result.err;
  }
  EXPECT_NE(run_infer({file}).err.find("infer - < " + file), std::string::npos);
}

TEST(CliErrorsTest, BadInputExitsWith3) {
  expect_infer_fails({"--ids", "8192"}, 3, {"8192", "8191"});
  expect_infer_fails({"--ids", "-1"}, 3, {"-1"});
  expect_infer_fails({"--ids", "99999999999"}, 3, {"99999999999"});
  expect_infer_fails({"--ids", " "}, 3, {"--ids"});
  expect_infer_fails({"--positions", "learned", "x"}, 3, {"position table", "sinusoidal"});
}

TEST(CliErrorsTest, NamesThatNoFileCanHaveExitWith3) {
  const TempFolder folder;
  const std::string name(300, 'x'), loop = folder.path() / "loop";
  std::filesystem::create_symlink("loop", loop);
  for (const auto& file : {std::pair(name, "name too long"),
                           std::pair(loop + "/a", "Too many levels of symbolic links")}) {
    const std::string& prefix = file.first;
    const char* const why = file.second;
    const auto fails = [&](std::vector<std::string> arguments) {
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
  const std::filesystem::path model = folder.path() / "model";
  std::filesystem::copy(bundled_model("none"), model, std::filesystem::copy_options::recursive);
  std::filesystem::create_symlink("loop.json", model / "loop.json");
  std::filesystem::create_symlink("loop.safetensors", model / "loop.safetensors");
  std::filesystem::create_directory(model / "folder.safetensors");
  mkfifo((model / "pipe.json").c_str(), 0600);
  mkfifo((model / "pipe.safetensors").c_str(), 0600);
  const std::string out = (folder.path() / "a.npy").string();
  EXPECT_EQ(run_infer({"embed", "-q", "-m", model.string(), "-o", out, "Tom"}).exit_code, 0);
  EXPECT_EQ(run_infer({"info", model.string()}).exit_code, 0);
}

TEST(CliErrorsTest, BadModelsExitWith4) {
  const TempFolder folder;
  expect_infer_fails({"-m", "no-such-model", "x"}, 4, {"no-such-model", "sinusoidal"});
  expect_infer_fails({"-m", "owner/bert", "x"}, 4, {"hf download owner/bert --local-dir bert"});
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
  std::filesystem::create_symlink("l.safetensors", loop);
  expect_infer_fails({"compare", "none", "learned", "-i", loop.string()}, 3, {"l.safetensors"});
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
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "There is no /dev/full here.";
  const ProgramResult result = run_infer({"-q", "Tom"}, {.out = "/dev/full"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(result.err.starts_with("infer: cannot write to standard output")) << result.err;
}

}  // namespace
}  // namespace phasor
