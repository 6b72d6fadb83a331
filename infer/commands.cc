// The table of commands.
#include "infer/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "files/spelling.h"
#include "infer/cli/terminal.h"
#ifdef PHASOR_SERVE
#include "infer/serve/serve.h"
#endif

namespace infer {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*function)(CommandLine&);
};

constexpr Command kCommands[] = {
    {"embed", "Makes one vector of each TEXT, or of each line of a file, in order.", embed},
#ifdef PHASOR_SERVE
    {"serve", "Serves models over HTTP: embeddings, rerankers and classifiers.", serve},
#endif
    {"rank", "Sorts texts, or the lines of a file, by relevance to QUERY.", rank},
    {"classify", "Names the most likely labels of each TEXT, or of each line.", classify},
    {"label", "Finds names and other spans in each TEXT, or in each line.", label},
    {"tokenize", "Prints the pieces and ids of each TEXT.", tokenize},
    {"info", "Says what a model is: family, sizes, norms, positions, tokenizer.", info},
    {"observe", "Shows what every layer does with positions, as they are or edited.", observe},
    {"compare", "Shows two models, kinds of positions or precisions, side by side.", compare},
    {"positions", "Shows tables of position vectors: computed, a model's, a file's.", positions},
};

/// "--nearest is an option of infer embed": of an option that some commands have.
std::string owners_of(const std::string& option) {
  std::vector<std::string_view> owners;
  CommandLine plain = CommandLine::seeking(option);
  std::string hint;
  if (run(plain, hint) == 0) owners.emplace_back("TEXT");
  for (const auto& [name, summary, function] : kCommands) {
    CommandLine line = CommandLine::seeking(option);
    if (function(line) == 0) owners.emplace_back(name);
  }
  if (owners.empty()) return "";
  return fmt::format("{} is an option of infer {}", option, fmt::join(owners, ", "));
}

/// `word` may be a misspelt command.
int run_texts(CommandLine& line, std::string_view word) {
  const bool is_option = word.starts_with('-');
  const std::string_view meant =
      is_option ? "" : phasor::internal::nearest_name(word, command_names());
  std::string hint = meant.empty() ? "" : fmt::format("did you mean the command infer {}?", meant);
  try {
    return run(line, hint);
  } catch (const UsageError& error) {
    if (hint.empty()) throw;
    throw UsageError(fmt::format("{}; {}", error.what(), hint));
  }
}

}  // namespace

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) names.emplace_back(command.name);
  return names;
}

int run_command(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const bool helps = !words.empty() && words[0] == "help";
  if (helps) {
    words.erase(words.begin());
    words.resize(std::min<size_t>(words.size(), 1));
    words.emplace_back("--help");
  }
  const std::string word = words.empty() ? "" : words[0];
  CommandLine program("infer", "Runs a Transformer encoder on each TEXT, layer by layer.", words,
                      owners_of);
  for (const auto& [name, summary, function] : kCommands) {
    CommandLine line = program.command(name, summary);
    if (name == word) return function(line);
  }
  if (helps && words.size() > 1)
    throw UsageError(fmt::format("there is no command '{}'{}; infer --help lists them", word,
                                 phasor::internal::did_you_mean(word, command_names())));
  return run_texts(program, word);
}

}  // namespace infer
