// Command lines of infer, run one after another on small models in a folder of their own.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/bert_folder.h"

namespace phasor::fuzz {
namespace {

/// Whether a command line is skipped: it names a file outside, starts a server, or takes long.
bool is_left_out(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    return word.find("..") != word.npos || word.find('/') != word.npos || word.starts_with('~') ||
           word == "serve" ||
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
    outside_ = open(".", O_RDONLY | O_DIRECTORY);
    null_ = open("/dev/null", O_RDWR);
    dup2(null_, STDIN_FILENO);
    out_ = dup(STDOUT_FILENO);
    err_ = dup(STDERR_FILENO);
    std::signal(SIGPIPE, SIG_IGN);
  }

  /// Removes the files of the previous input.
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

/// Its blanks become ends of words, as run_options() reads them.
std::string input_of_line(std::string line) {
  std::ranges::replace(line, ' ', '\n');
  return line;
}

}  // namespace

Fuzzer options_fuzzer() {
  return {.name = "options",
          .run = run_options,
          .seeds = []() -> std::vector<std::string> {
            std::vector<std::string> inputs;
            for (const char* const line :
                 {"embed -m model -i lines.txt -o out.npy ; embed -m model -i lines.txt -o out.npy",
                  "tokenize -m model --special [MASK]", "info model", "classify -m model a --top 1",
                  "rank -m ranker a b c", "positions paper --length 6 --width 4",
                  "positions paper model", "observe -m model --edit reverse --only split,order a",
                  "observe -m model --ids 4,5,6 --cut-residual 1.mlp --save out.safetensors",
                  "compare model ranker a", "help embed",
                  "-m model --positions sinusoidal:marian --overflow window --json a"}) {
              inputs.push_back(input_of_line(line));
            }
            return inputs;
          },
          .words = words(R"(
\nmodel\n ranker\n \n;\n -m\n --json\n --ids\n
--edit\n --only\n --positions\n --overflow\n --precision\n --threads\n --save\n --hooks\n -i\n
-o\n --html\n --cut-residual\n --baseline\n --pooling\n --prefix\n shift= scale= table=
swap= noise= interpolate window truncate bf16 int8 auto -- \n-\n nan inf -1 9999 1e99 0x1 random =
,)"),
          .refused = {input_of_line("rank -m model a b")}};
}

}  // namespace phasor::fuzz
