// Command lines of infer, run one after another on small models in a folder of their own.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

/// A file outside the folder, a server, a measurement that takes its time.
bool is_left_out(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.find("..") != word.npos || word.find('/') != word.npos || word.starts_with('~') ||
           word == "serve" || word == "bench" ||
           // What a user asks for may take long: numbers have four digits at most.
           std::ranges::count_if(word, [](unsigned char c) { return std::isdigit(c); }) > 4;
  });
}

class Folders {
 public:
  Folders() {
    const BertFolder labels({"yes", "no"}), ranks({"relevant"});
    add("model", labels);
    add("ranker", ranks);
    models_.write("model/golden.json", R"({"atol": 100, "rtol": 0, "items": [{"text": "a b",
"ids": [2, 4, 6, 3], "logits": [0, 0]}]})");
    outside_ = open(".", O_RDONLY | O_DIRECTORY);
    null_ = open("/dev/null", O_RDWR);
    dup2(null_, STDIN_FILENO);
    out_ = dup(STDOUT_FILENO);
    err_ = dup(STDERR_FILENO);
    std::signal(SIGPIPE, SIG_IGN);
  }

  /// What the last lines of an input left is removed.
  void begin() const {
    for (const auto& entry : std::filesystem::directory_iterator(work_.path())) {
      if (!entry.is_symlink()) std::filesystem::remove_all(entry.path());
    }
    work_.write("lines.txt", "a b\nc\n");
  }

  int run(std::vector<std::string>& words) const {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::fflush(stdout);
    dup2(null_, STDOUT_FILENO);
    dup2(null_, STDERR_FILENO);
    int code = 0;
    require(chdir(work_.path().c_str()) == 0, "the folder can be entered");
    try {
      code = infer::run_command(static_cast<int>(words.size()), arguments.data());
    } catch (const std::exception&) {
      code = infer::report_current_exception();
    }
    std::fflush(stdout);
    dup2(out_, STDOUT_FILENO);
    dup2(err_, STDERR_FILENO);
    require(fchdir(outside_) == 0, "the folder can be left");
    return code;
  }

 private:
  void add(const char* name, const BertFolder& model) const {
    std::filesystem::copy(model.path(), models_.path() / name,
                          std::filesystem::copy_options::recursive);
    std::filesystem::create_symlink(models_.path() / name, work_.path() / name);
  }

  Folder models_, work_;
  int null_ = -1, out_ = -1, err_ = -1, outside_ = -1;
};

/// An input is a word a line; between two command lines there is a line ";".
bool run_options(std::string_view bytes) {
  static const Folders folders;
  folders.begin();
  std::vector<std::vector<std::string>> lines = {{"infer"}};
  for (size_t begin = 0; begin < bytes.size() && lines.back().size() < 30;) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view word = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (word != ";") {
      std::erase(lines.back().emplace_back(word), '\0');
    } else if (lines.size() < 4) {
      lines.push_back({"infer"});
    }
  }
  bool accepted = true;
  for (std::vector<std::string>& words : lines) {
    if (is_left_out(words)) return false;
    const int code = folders.run(words);
    require(code >= 0 && code <= infer::kBadModel, "a command line is not the backend's fault");
    accepted &= code == 0;
  }
  return accepted;
}

}  // namespace

Fuzzer options_fuzzer() {
  return {.name = "options",
          .run = run_options,
          .seeds = []() -> std::vector<std::string> {
            return {
                "-m\nmodel\na b\nc\n--json",
                "embed\n-m\nmodel\n-i\nlines.txt\n-o\nout.npy",
                "tokenize\n-m\nmodel\n--special\n[MASK]",
                "info\nmodel",
                "classify\n-m\nmodel\na\n--top\n1",
                "rank\n-m\nranker\na\nb\nc",
                "positions\npaper\n--length\n6\n--width\n4",
                "positions\npaper\nmodel",
                "observe\n-m\nmodel\na b\n--edit\nreverse\n--only\nsplit,order",
                "observe\n-m\nmodel\n--ids\n4,5,6\n--cut-residual\n1.mlp\n--save\nout.safetensors",
                "compare\nmodel\nranker\na b c",
                "verify\nmodel",
                "help\nembed",
                "-m\nmodel\n--positions\nsinusoidal:marian\n--overflow\nwindow\na",
                "shard\nplan\n-m\nmodel\n-i\nlines.txt\n-o\nshards\n--lines\n1\n;\n"
                "shard\nrun\nshards\n;\nshard\nstatus\nshards\n--verify\n--json\n;\n"
                "shard\nmerge\nshards\n-o\nall.npy",
                "shard\nplan\n-m\nmodel\n-i\nlines.txt\n-o\nshards\n--format\njsonl\n;\n"
                "shard\nslurm\nshards\n;\nshard\nrun\nshards\n0-0\n;\n"
                "shard\nrun\nshards\n--verify"};
          },
          .words = words(R"(
\nmodel\n ranker\n \n;\n shard\n shards\n --left\n --clean\n --verify\n -m\n --json\n --ids\n
--edit\n --only\n --positions\n --overflow\n --precision\n --threads\n --save\n --hooks\n -i\n
-o\n --html\n --cut-residual\n --baseline\n --pooling\n --prefix\n --resume\n shift= scale= table=
swap= noise= interpolate window truncate bf16 int8 auto -- \n-\n nan inf -1 9999 1e99 0x1 random =
,)"),
          .refused = []() -> std::vector<std::string> {
            return {"rank\n-m\nmodel\na\nb", "shard\nrun\nshards"};
          }};
}

}  // namespace phasor::fuzz
