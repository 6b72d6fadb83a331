// Command lines of infer, run on a small model in a folder of their own.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "infer/commands.h"
#include "infer/render/terminal.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

/// A file outside the folder, a server, a measurement that takes its time, many processes.
bool is_left_out(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.find("..") != word.npos || word.find('/') != word.npos || word.starts_with('~') ||
           word == "serve" || word == "bench" || word == "shard" ||
           // What a user asks for may take long: numbers have four digits at most.
           std::ranges::count_if(word, [](unsigned char c) { return std::isdigit(c); }) > 4;
  });
}

class Folders {
 public:
  Folders() {
    std::filesystem::copy(bert_.path(), models_.path() / "model",
                          std::filesystem::copy_options::recursive);
    work_.write("lines.txt", "a b\nc\n");
    std::filesystem::create_symlink(models_.path() / "model", work_.path() / "model");
    outside_ = open(".", O_RDONLY | O_DIRECTORY);
    null_ = open("/dev/null", O_RDWR);
    dup2(null_, STDIN_FILENO);
    out_ = dup(STDOUT_FILENO);
    err_ = dup(STDERR_FILENO);
    std::signal(SIGPIPE, SIG_IGN);
  }

  int run(std::vector<std::string>& words) {
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
    for (const auto& entry : std::filesystem::directory_iterator(work_.path())) {
      const auto name = entry.path().filename();
      if (name != "model" && name != "lines.txt") std::filesystem::remove_all(entry.path());
    }
    return code;
  }

 private:
  BertFolder bert_{{"yes", "no"}};
  Folder models_, work_;
  int null_ = -1, out_ = -1, err_ = -1, outside_ = -1;
};

/// An input is a word a line.
void run_options(std::string_view bytes) {
  static Folders folders;
  std::vector<std::string> words = {"infer"};
  for (size_t begin = 0; begin < bytes.size() && words.size() < 30;) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    words.emplace_back(bytes.substr(begin, end - begin));
    std::erase(words.back(), '\0');
    begin = end + 1;
  }
  if (is_left_out(words)) return;
  const int code = folders.run(words);
  require(code >= 0 && code <= infer::kBadModel, "a command line is not the backend's fault");
}

}  // namespace

Fuzzer options_fuzzer() {
  return {.name = "options",
          .run = run_options,
          .seeds = []() -> std::vector<std::string> {
            return {"-m\nmodel\na b\nc\n--json",
                    "embed\n-m\nmodel\n-i\nlines.txt\n-o\nout.npy",
                    "tokenize\n-m\nmodel\n--special\n[MASK]",
                    "info\nmodel",
                    "classify\n-m\nmodel\na\n--top-k\n1",
                    "rank\n-m\nmodel\na\nb",
                    "positions\nsinusoidal\n--rows\n6\n--width\n4",
                    "positions\nrotary\nalibi",
                    "observe\n-m\nmodel\na b\n--edit\nreverse\n--only\nsplit,order",
                    "observe\n-m\nmodel\n--ids\n4,5,6\n--cut-residual\n1.mlp\n--save\nout.npz",
                    "compare\nmodel\nmodel:none\na b c",
                    "verify\nmodel",
                    "help\nembed",
                    "-m\nmodel\n--positions\nsinusoidal:marian\n--overflow\nwindow\na"};
          },
          .words = {"\nmodel\n",
                    "-m\n",
                    "--json\n",
                    "--ids\n",
                    "--edit\n",
                    "--only\n",
                    "--positions\n",
                    "--overflow\n",
                    "--precision\n",
                    "--threads\n",
                    "--save\n",
                    "--hooks\n",
                    "-i\n",
                    "-o\n",
                    "--html\n",
                    "--cut-residual\n",
                    "--baseline\n",
                    "--pooling\n",
                    "--prefix\n",
                    "--resume\n",
                    "shift=",
                    "scale=",
                    "table=",
                    "swap=",
                    "noise=",
                    "interpolate",
                    "window",
                    "truncate",
                    "bf16",
                    "int8",
                    "auto",
                    "--",
                    "\n-\n",
                    "nan",
                    "inf",
                    "-1",
                    "9999",
                    "1e99",
                    "0x1",
                    "random",
                    "=",
                    ","}};
}

}  // namespace phasor::fuzz
