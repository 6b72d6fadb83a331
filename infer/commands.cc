// The table of commands, and how argv is matched to one.
#include "infer/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "engine/spelling.h"
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
    Command{"bench", "", "latency and tokens a second for shapes, threads and precisions", bench},
    Command{"completion", "SHELL", "a script that completes commands in bash, zsh or fish",
            completion},
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

/// Whether `argument` takes the next word as its value: "-m", "--model" and "-qm" do, "-mlearned"
/// does not. Looks in the options of all `commands`.
bool takes_next(std::string_view argument, std::span<const CommandDescription> commands) {
  const auto has_value = [&](std::string_view name) {
    return std::ranges::any_of(commands, [&](const CommandDescription& command) {
      return std::ranges::any_of(command.options, [&](const OptionDescription& option) {
        return !option.value.empty() && std::ranges::find(option.names, name) != option.names.end();
      });
    });
  };
  if (argument.starts_with("--")) return has_value(argument);
  for (size_t i = 1; i < argument.size(); ++i) {
    if (has_value(fmt::format("-{}", argument[i]))) return i + 1 == argument.size();
  }
  return false;
}

/// The first word that is neither an option nor its value; argc where there is none.
int first_word(int argc, char** argv) {
  std::vector<CommandDescription> commands;  // made for an option that stands before a word
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    if (argument == "-" || !argument.starts_with('-')) return i;
    if (commands.empty()) commands = describe_commands();
    if (takes_next(argument, commands)) ++i;
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

void describe(const Command& command, std::vector<CommandDescription>& all) {
  try {
    command.function(0, nullptr);
  } catch (CommandDescription& described) {
    described.arguments = command.arguments;
    described.summary = command.summary;
    all.push_back(described);
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

std::vector<CommandDescription> describe_commands() {
  std::vector<CommandDescription> all;
  describe({"infer", "[OPTIONS] TEXT...",
            "run Transformer encoders, and see how positions travel through them", run},
           all);
  for (const Command& command : kCommands) describe(command, all);
  return all;
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
