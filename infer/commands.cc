// The table of commands, and how argv is matched to one.
#include "infer/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "files/spelling.h"
#include "infer/cli/terminal.h"
#ifdef PHASOR_SERVE
#include "infer/serve/serve.h"
#endif

namespace infer {
namespace {

constexpr Command kCommands[] = {
    Command{"embed", "[TEXT...]", "one vector for each text or line of a file", embed},
#ifdef PHASOR_SERVE
    Command{"serve", "", "embeddings, rerankers and classifiers over HTTP", serve},
#endif
    Command{"rank", "QUERY [TEXT...]", "texts by their relevance to a query", rank},
    Command{"classify", "[TEXT...]", "the most likely labels of texts", classify},
    Command{"label", "[TEXT...]", "names and other spans in texts, by a token classifier", label},
    Command{"tokenize", "TEXT...", "text to pieces and ids", tokenize},
    Command{"info", "[MODEL]", "what a model is", info},
    Command{"observe", "TEXT...", "position through the layers, before and after interventions",
            observe},
    Command{"compare", "A B [TEXT...]", "two models, or two kinds of positions, side by side",
            compare},
    Command{"positions", "[TABLE [TABLE]]", "tables of position vectors", positions},
};

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  return names;
}

const Command* find_command(std::string_view name) {
  const auto found = std::ranges::find(kCommands, name, &Command::name);
  return found == std::end(kCommands) ? nullptr : &*found;
}

/// The options of all commands that take no value.
constexpr std::string_view kFlags =
    " -h --help --version -q --quiet --csv --follow-links --json --no-normalize --normalize "
    "--offsets --parse-special --query --redact --similarity --sparse --special --strict --tokens ";

/// Whether `argument` takes the next word as its value: "-m", "--model" and "-qm" do, "-mlearned",
/// "--model=learned" and flags do not.
bool takes_next(std::string_view argument) {
  const auto is_flag = [](std::string_view name) {
    return kFlags.find(fmt::format(" {} ", name)) != kFlags.npos;
  };
  if (argument.starts_with("--")) return !is_flag(argument) && argument.find('=') == argument.npos;
  size_t i = 1;
  while (i < argument.size() && is_flag(fmt::format("-{}", argument[i]))) ++i;
  return i + 1 == argument.size();
}

/// The first word that is neither an option nor its value; argc where there is none.
int first_word(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    if (argument == "-" || !argument.starts_with('-')) return i;
    if (takes_next(argument)) ++i;
  }
  return argc;
}

int show_help(std::string_view name) {
  std::string program = "infer", help = "--help";
  std::array<char*, 3> arguments = {program.data(), help.data(), nullptr};
  const Command* const command = find_command(name);
  if (!name.empty() && command == nullptr) {
    throw UsageError(fmt::format("there is no command '{}'{}; infer --help lists them", name,
                                 phasor::internal::did_you_mean(name, command_names())));
  }
  return (command == nullptr ? run : command->function)(2, arguments.data());
}

/// `meant` is the command that the first word may be a misspelling of; empty where there is none.
int run_texts(int argc, char** argv, std::string_view meant) {
  const std::string hint =
      meant.empty() ? "" : fmt::format("did you mean the command infer {}?", meant);
  try {
    const int code = run(argc, argv);
    const bool quiet = std::any_of(argv + 1, argv + argc, [](std::string_view argument) {
      return argument == "-q" || argument == "--quiet";
    });
    if (!hint.empty() && !quiet) report_note(hint);
    return code;
  } catch (const UsageError& error) {
    if (hint.empty()) throw;
    throw UsageError(fmt::format("{}; {}", error.what(), hint));
  }
}

}  // namespace

int run_command(int argc, char** argv) {
  // Only the first word names a command: in `infer Tom info` both words are texts.
  const int place = first_word(argc, argv);
  if (place >= argc) return run(argc, argv);
  const std::string_view word = argv[place];
  if (word == "help") return show_help(place + 1 < argc ? argv[place + 1] : "");
  const Command* const command = find_command(word);
  if (command == nullptr)
    return run_texts(argc, argv, phasor::internal::nearest_name(word, command_names()));
  std::vector<char*> arguments(argv, argv + argc + 1);  // up to the null
  arguments.erase(arguments.begin() + place);
  return command->function(argc - 1, arguments.data());
}

std::string list_of_commands() {
  std::string list = "Commands (the first word only; infer COMMAND --help says more):";
  for (const Command& command : kCommands) {
    list += fmt::format("\n  {:<28}{}", fmt::format("{} {}", command.name, command.arguments),
                        command.summary);
  }
  return list;
}

std::string short_help() {
  return fmt::format(R"(usage: infer [OPTIONS] TEXT...
       infer {} ...
try:   infer "Tom bit a dog."       or "infer -" for texts from standard input
       infer --help
)",
                     fmt::join(command_names(), "|"));
}

}  // namespace infer
