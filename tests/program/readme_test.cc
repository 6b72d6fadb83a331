// The commands and programs of README.md and docs/*.md run, and print what those pages show.
//
// PHASOR_UPDATE_README=1 program_test writes what they print into the pages.
#include <csignal>
#include <regex>

#include "files/matrix_file.h"
#include "tests/support/bert_folder.h"
#include "tests/support/run_program.h"

namespace phasor {
namespace {

const fs::path kSource = PHASOR_SOURCE_DIR;
const fs::path kReadme = kSource / "README.md";

/// A fenced block: where its contents lie in `lines`.
struct Block {
  std::string language;
  size_t begin = 0, end = 0;
};

struct Page {
  explicit Page(fs::path file) : path(std::move(file)), lines(lines_of(read_text_file(path))) {}

  std::vector<Block> blocks() const {
    std::vector<Block> blocks;
    bool open = false;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!lines[i].starts_with("```")) continue;
      if (open) {
        blocks.back().end = i;
      } else {
        blocks.push_back({lines[i].substr(3), i + 1, i + 1});
      }
      open = !open;
    }
    return blocks;
  }
  std::vector<std::string> contents(const Block& block) const {
    return {lines.begin() + block.begin, lines.begin() + block.end};
  }

  fs::path path;
  std::vector<std::string> lines;
};

/// README.md, and docs/*.md in alphabetical order.
std::vector<fs::path> page_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSource / "docs"))
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  files.insert(files.begin(), kReadme);
  return files;
}

std::vector<Page> pages() {
  const std::vector<fs::path> files = page_files();
  return {files.begin(), files.end()};
}

bool serves(const std::string& line) { return line.starts_with("infer serve"); }

/// Without the comment behind it.
std::string command_in(const std::string& line) {
  const std::string command = line.substr(0, line.find(" # "));
  return command.substr(0, command.find_last_not_of(' ') + 1);
}

const fs::path kPrograms = fs::path(INFER_BINARY).parent_path();

/// What the tests can run: `./dev bench` where it is built.
bool runs_infer(const std::string& line) {
  return !serves(line) &&
         (line.starts_with("infer ") || line.starts_with("./dev infer ") ||
          (line.starts_with("./dev bench --model") && fs::exists(kPrograms / "encoder_bench")));
}

/// A script of docs/data, where there is a Python that runs it.
bool runs_script(const std::string& line) {
  static const bool kHasPython = run_program({"/bin/sh", "-c", "python3 --version"}).exit_code == 0;
  return kHasPython && line.starts_with("python3 docs/data/");
}

/// Makes a folder like examples/, where sentences.txt has its first `count` lines alone.
fs::path few_sentences(const TempFolder& folder, size_t count) {
  const std::vector<std::string> all = lines_of(read_text_file(kSource / "examples/sentences.txt"));
  std::string few;
  for (size_t i = 0; i < count; ++i) few += all.at(i) + "\n";
  return folder.write("sentences.txt", few).parent_path();
}

/// Runs a line of a page, where `infer` is the binary under test, in a folder that holds examples/
/// and, in place of the models that the README downloads, a bundled one and a tiny reranker. The
/// lines before it may have left files in the folder.
ProgramResult run_line(std::string line, const TempFolder& folder = {},
                       const fs::path& examples = kSource / "examples") {
  if (line.starts_with("./dev infer")) line.erase(0, 6);
  if (line.starts_with("./dev bench"))
    line.replace(0, 11, "encoder_bench --benchmark_min_time=0.01");
  static const BertFolder kReranker({"relevant"});
  const std::pair<const char*, fs::path> links[] = {
      {"docs", kSource / "docs"},
      {"examples", examples},
      {"all-MiniLM-L6-v2", kSource / "models" / "sinusoidal"},
      {"ms-marco-MiniLM-L6-v2", kReranker.path()}};
  for (const auto& [name, target] : links)
    if (!fs::exists(folder / name)) fs::create_directory_symlink(target, folder / name);
  return run_program({"/bin/sh", "-c", "PATH='" + kPrograms.string() + "':$PATH; " + line},
                     {.directory = folder.path()});
}

/// The file in examples/ that a block is the program of: the README's in C++, and those in C, which
/// the text before names. Empty where it is no whole program.
std::string program_in(const Page& page, const Block& block) {
  if (block.language == "cpp" && page.path == kReadme) return "encode.cc";
  if (block.language != "c" || !page.contents(block)[0].starts_with("#include")) return "";
  for (size_t i = block.begin; i-- > 0;) {
    std::smatch name;
    static const std::regex kName("examples/([a-z_]+[.]c)\\b");
    if (std::regex_search(page.lines[i], name, kName)) return name[1];
  }
  return "";
}

/// What stands in a block: a program, or what the block before printed. Empty where it may be any.
std::optional<std::vector<std::string>> expected(const Page& page, size_t b) {
  const std::vector<Block> blocks = page.blocks();
  if (const std::string program = program_in(page, blocks[b]); !program.empty()) {
    std::vector<std::string> lines = lines_of(read_text_file(kSource / "examples" / program));
    lines.erase(lines.begin());  // the comment that says what the file is
    return lines;
  }
  if (blocks[b].language != "text" || b == 0) return std::nullopt;
  const Block& before = blocks[b - 1];
  if (std::string program = program_in(page, before); !program.empty()) {
    program = program.ends_with(".c") ? program.replace(program.size() - 2, 1, "_")
                                      : program.substr(0, program.size() - 3);
    return lines_of(run_program({(fs::path(EXAMPLES_DIR) / program).string()}).out);
  }
  const std::string& line = page.lines.at(before.begin);
  if (before.language != "sh" || (!runs_infer(line) && !runs_script(line))) return std::nullopt;
  EXPECT_EQ(before.end - before.begin, 1u) << page.path << ": whose output is shown? " << line;
  const ProgramResult result = run_line(line);
  EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
  return lines_of(result.out);
}

// The blocks and shades of bars.
const std::string kBars =
    "(\u2588|\u2589|\u258a|\u258b|\u258c|\u258d|\u258e|\u258f|\u2591|\u2592|\u2593)+";

/// Equal but for numbers with a point, which may differ by one in their last digit, and bars.
void expect_same_output(const std::string& want, const std::string& got) {
  static const std::regex kBarsAndBlanks(kBars + " *"), kNumber("[0-9][0-9.]*[.][0-9.]*[0-9]");
  const auto rest_of = [](const std::string& text) {
    return std::regex_replace(std::regex_replace(text, kBarsAndBlanks, ""), kNumber, "#");
  };
  EXPECT_EQ(rest_of(want), rest_of(got));
  std::sregex_iterator number(want.begin(), want.end(), kNumber), end;
  std::sregex_iterator other(got.begin(), got.end(), kNumber);
  ASSERT_EQ(std::distance(number, end), std::distance(other, end)) << got;
  for (; number != end; ++number, ++other) {
    const std::string digits = number->str();
    const double last = std::pow(10, -static_cast<double>(digits.size() - digits.find('.') - 1));
    EXPECT_NEAR(std::stod(digits), std::stod(other->str()), 1.01 * last) << got;
  }
}

/// The different lines that a command prints, each number a '#', without bars and intervals, nor
/// the sentences above the tables of a file of texts, which say what stands out in its numbers.
std::set<std::string> kinds_of_lines(const std::vector<std::string>& lines) {
  static const std::regex kLeftOut(kBars + "|\u00b7|\u00b1[0-9.e-]+");
  static const std::regex kNumber("([<+-]|\u2212)?[0-9][0-9.]*(e-?[0-9]+)?"), kBlanks(" +");
  std::set<std::string> kinds;
  bool sums_up = false;
  for (const std::string& line : lines) {
    if (line.starts_with("examples/")) {
      sums_up = true;
    } else if (!line.empty() && line[0] != ' ') {
      sums_up = false;
    }
    if (sums_up && line.starts_with(' ')) continue;
    std::string kind = std::regex_replace(line, kLeftOut, "");
    kind = std::regex_replace(std::regex_replace(kind, kNumber, "#"), kBlanks, " ");
    kinds.insert(kind.substr(0, kind.find_last_not_of(' ') + 1));
  }
  return kinds;
}

/// What a page links to, but for addresses on the web, from its own folder.
std::vector<std::string> links_of(const Page& page) {
  const std::string text = read_text_file(page.path);
  std::vector<std::string> links;
  for (size_t i = text.find("]("); i != std::string::npos; i = text.find("](", i + 1)) {
    std::string target = text.substr(i + 2, text.find(')', i) - i - 2);
    target.erase(std::min(target.find('#'), target.size()));
    if (!target.starts_with("http")) links.push_back(target);
  }
  return links;
}

/// Compares a block of a page with what it should hold.
void expect_shows(const Page& page, const Block& block, const std::vector<std::string>& want) {
  const std::vector<std::string> shown = page.contents(block);
  ASSERT_EQ(shown.size(), want.size())
      << page.path << ", line " << block.begin << "; PHASOR_UPDATE_README=1 program_test renews it";
  for (size_t i = 0; i < shown.size(); ++i) {
    if (block.language != "text") {
      EXPECT_EQ(shown[i], want[i]);
    } else {
      expect_same_output(shown[i], want[i]);
    }
  }
}

class ReadmePageTest : public testing::TestWithParam<fs::path> {};
INSTANTIATE_TEST_SUITE_P(, ReadmePageTest, testing::ValuesIn(page_files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST_P(ReadmePageTest, ShowsWhatItsCommandsAndProgramsPrint) {
  const bool update = std::getenv("PHASOR_UPDATE_README") != nullptr;
  Page page(GetParam());
  size_t compared = 0;
  for (size_t b = 0; b < page.blocks().size(); ++b) {
    const auto want = expected(page, b);
    if (!want) continue;
    ++compared;
    const Block block = page.blocks()[b];
    ASSERT_FALSE(want->empty()) << page.path << ", line " << block.begin;
    if (update) {
      page.lines.erase(page.lines.begin() + block.begin, page.lines.begin() + block.end);
      page.lines.insert(page.lines.begin() + block.begin, want->begin(), want->end());
    } else {
      expect_shows(page, block, *want);
    }
  }
  if (page.path == kReadme) {
    EXPECT_EQ(compared, 3u);
  }
  if (!update) return;
  std::ofstream file(page.path);
  for (const std::string& line : page.lines) file << line << "\n";
}

// Of those whose numbers take minutes, this alone is in ./dev test.
TEST_P(ReadmePageTest, ShowsTheLinesThatItsCommandsPrintOfFewTexts) {
  const TempFolder of_few, of_twice_the_trained_length;
  const fs::path few = few_sentences(of_few, 3);
  const fs::path longer = few_sentences(of_twice_the_trained_length, 14);
  const Page page(GetParam());
  const std::vector<Block> blocks = page.blocks();
  for (size_t b = 0; b + 1 < blocks.size(); ++b) {
    const std::string& line = page.lines.at(blocks[b].begin);
    if (blocks[b].language != "sh" || blocks[b + 1].language != "text" || !runs_infer(line) ||
        line.find("examples/") == line.npos)
      continue;
    const ProgramResult result = run_line(line, {}, contains(line, "longer") ? longer : few);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    EXPECT_EQ(kinds_of_lines(page.contents(blocks[b + 1])), kinds_of_lines(lines_of(result.out)))
        << line;
  }
}

TEST(ReadmeTest, EveryOtherCommandOfInferSucceeds) {
  const TempFolder of_few;
  const fs::path few = few_sentences(of_few, 14);
  std::set<std::string> run;  // or compared
  const auto visit =
      [&](bool compared,
          const std::function<void(const std::string&, const TempFolder&)>& command) {
        for (const Page& page : pages()) {
          const std::vector<Block> blocks = page.blocks();
          for (size_t b = 0; b < blocks.size(); ++b) {
            if (blocks[b].language != "sh") continue;
            if (compared != (b + 1 < blocks.size() && blocks[b + 1].language == "text")) continue;
            const TempFolder folder;  // later commands of a block read what earlier ones write
            for (const std::string& line : page.contents(blocks[b])) {
              if (!runs_infer(line)) continue;
              const bool writes = line.find(" -o ") != line.npos;
              if (run.insert(command_in(line)).second || (writes && !compared))
                command(line, folder);
            }
          }
        }
      };
  visit(true, [](const std::string&, const TempFolder&) {});
  size_t commands = 0;
  visit(false, [&](const std::string& line, const TempFolder& folder) {
    const ProgramResult result = run_line(line, folder, few);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    const bool to_file = line.find(" -o ") != line.npos || line.find(" > ") != line.npos;
    EXPECT_EQ(result.out.empty(), to_file) << line;
    ++commands;
  });
  EXPECT_GE(commands, 30u);
}

TEST(ReadmeTest, PythonReadsTheFilesAsTheDocumentationDoes) {
  std::string python;
  for (const char* each : {"/usr/bin/python3", "python3"})
    if (run_line(fmt::format("{} -c 'import numpy'", each)).exit_code == 0) python = each;
  if (python.empty()) GTEST_SKIP() << "There is no numpy; install python3-numpy.";
  const Page page(kSource / "docs/reading-in-python.md");
  const TempFolder folder;  // the scripts read what the commands before them write
  if (run_line(python + " -c 'import safetensors'").exit_code != 0) {
    const ProgramResult installed = run_line(
        python + " -m pip install --quiet --no-deps --target packages safetensors", folder);
    if (installed.exit_code != 0) GTEST_SKIP() << "There is no safetensors: " << installed.err;
    python = "PYTHONPATH=packages " + python;
  }
  size_t scripts = 0;
  for (const Block& block : page.blocks()) {
    std::string text;
    for (const std::string& line : page.contents(block)) text += line + "\n";
    const bool is_script = block.language == "python";
    if (is_script) folder.write("script.py", text);
    if (!is_script && block.language != "sh") continue;
    const ProgramResult result = run_line(is_script ? python + " script.py" : text, folder);
    EXPECT_EQ(result.exit_code, 0) << text << result.err;
    EXPECT_TRUE(!is_script || !result.out.empty()) << text;
    scripts += is_script ? 1 : 0;
  }
  EXPECT_EQ(scripts, 1u);
}

/// The lines of the first block in this language that has a line which begins so.
std::string block_with(const Page& page, const std::string& language, const std::string& begin) {
  for (const Block& block : page.blocks()) {
    const std::vector<std::string> lines = page.contents(block);
    const bool has = std::ranges::any_of(lines, [&](auto& it) { return it.starts_with(begin); });
    if (block.language == language && has) return fmt::format("{}\n", fmt::join(lines, "\n"));
  }
  ADD_FAILURE() << page.path << ": " << begin;
  return "";
}

TEST(ReadmeTest, TheVectorsOfACorpusInPartsAreThoseOfTheWhole) {
  if (run_line("command -v make").exit_code != 0) GTEST_SKIP() << "there is no make here";
  const TempFolder folder;
  const auto run = [&](const std::string& line) { return run_line(line, folder); };
  const Page page(kSource / "docs/command-line.md");
  folder.write("Makefile", block_with(page, "make", "MODEL ="));
  for (const std::string& line : {block_with(page, "sh", "mkdir parts"), std::string("make -j 2"),
                                  std::string("infer embed -q -i examples/sentences.txt -o a.npy")})
    ASSERT_EQ(run(line).exit_code, 0) << line;
  const auto rows_of = [](const fs::path& npy) { return internal::read_table(npy, "").values; };
  std::vector<double> rows;
  const std::string made = (folder / "vectors/sinusoidal-f32").string();
  for (const std::string& file : lines_of(run("ls " + made + "/*.npy").out)) {
    const std::vector<double> part = rows_of(file);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  // Without AVX-512, last digits depend on the lines that run together.
  expect_close<double, double>(rows, rows_of(folder / "a.npy"), 1e-5, "vectors");
  EXPECT_TRUE(contains(run("LC_ALL=C make").out, "Nothing to be done"));
  // Of another precision nothing is there yet.
  EXPECT_EQ(lines_of(run("make -n PRECISION=int8 | grep 'infer embed'").out).size(), 4u);
}

/// Runs a block that starts a server: the server in the background, then the requests, which must
/// succeed, and SIGTERM, which it must end well of.
TEST(ReadmeTest, EveryServerAnswersTheRequestsBelowIt) {
  if (run_line("command -v curl").exit_code != 0) GTEST_SKIP() << "there is no curl here";
  if (run_line("infer serve --help").exit_code != 0) GTEST_SKIP() << "built without infer serve";
  size_t servers = 0;
  for (const Page& page : pages()) {
    for (const Block& block : page.blocks()) {
      if (block.language != "sh" || !serves(page.lines[block.begin])) continue;
      std::string server = page.lines[block.begin].substr(0, page.lines[block.begin].find('#'));
      server = std::regex_replace(server, std::regex("--port [0-9]+"), "");
      std::string script = "set -e\n" + server + " --port 0 >log 2>&1 &\n" + R"(server=$!
trap 'kill $server; cat log' EXIT
until port=$(sed -n 's/^note: serving .*://p' log | grep .); do kill -0 $server; sleep 0.1; done
)";
      for (size_t i = block.begin + 1; i < block.end; ++i) {
        std::string line = page.lines[i];
        if (const size_t at = line.find("8080"); at != line.npos) line.replace(at, 4, "$port");
        if (line.starts_with("curl ")) line.insert(5, "-sf ");
        script += line + "\n";
      }
      const ProgramResult result = run_line(script + "trap - EXIT\nkill $server\nwait $server\n");
      EXPECT_EQ(result.exit_code, 0) << script << result.out << result.err;
      ++servers;
    }
  }
  EXPECT_GT(servers, 0u);
}

TEST(ReadmeTest, EveryFileAPageLinksToIsThere) {
  size_t links = 0;
  for (const Page& page : pages()) {
    for (const std::string& target : links_of(page)) {
      EXPECT_TRUE(fs::exists(page.path.parent_path() / target)) << page.path << ": " << target;
      ++links;
    }
  }
  EXPECT_GT(links, 0u);
}

TEST(ReadmeTest, EveryTestThatSecurityNamesIsThere) {
  std::string sources;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "tests"))
    if (entry.path().extension() == ".cc") sources += read_text_file(entry.path());
  const std::string page = read_text_file(kSource / "SECURITY.md");
  const std::regex named("`(\\w+Test)\\.(\\w+)`");
  size_t count = 0;
  for (std::sregex_iterator test(page.begin(), page.end(), named), end; test != end; ++test) {
    const std::string arguments = fmt::format("({}, {})", test->str(1), test->str(2));
    EXPECT_TRUE(sources.find("TEST" + arguments) != sources.npos ||
                sources.find("TEST_F" + arguments) != sources.npos)
        << test->str();
    ++count;
  }
  EXPECT_GT(count, 10u);
}

}  // namespace
}  // namespace phasor
