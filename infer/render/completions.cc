// The shells' scripts ask infer itself what may come next, so that no shell knows an option.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "infer/render/described.h"

namespace infer {
namespace {

constexpr const char* kBash = R"(# Completes infer in bash; made by: infer completion bash
_infer() {
  local kind word help
  COMPREPLY=()
  {
    read -r kind
    while IFS=$'\t' read -r word help; do COMPREPLY+=("$word"); done
  } < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [[ $kind == files ]] || return 0
  while IFS= read -r word; do COMPREPLY+=("$word"); done \
    < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]#=}")
  compopt -o filenames 2>/dev/null
}
complete -F _infer infer
)";

constexpr const char* kZsh = R"(#compdef infer
# Completes infer in zsh; made by: infer completion zsh
_infer() {
  local -a lines words_now
  words_now=("${(@Q)words[2,CURRENT]}")
  lines=("${(@f)$($words[1] completion words -- "${(@)words_now}" 2>/dev/null)}")
  local kind=$lines[1]
  lines=("${(@)${(@)lines[2,-1]}//:/\\:}")
  lines=("${(@)lines/$'\t'/:}")
  _describe infer lines
  [[ $kind != files ]] || _files
}
if [[ $funcstack[1] == _infer ]]; then _infer "$@"; else compdef _infer infer; fi
)";

constexpr const char* kFish = R"(# Completes infer in fish; made by: infer completion fish
function __infer_words
    set -l words (commandline -opc) (commandline -ct)
    set -l lines ($words[1] completion words -- $words[2..-1] 2>/dev/null)
    test "$lines[1]" = files; and __fish_complete_path (commandline -ct)
    printf '%s\n' $lines[2..-1]
end
complete -c infer -f -a '(__infer_words)'
)";

const OptionDescription* find_option(const CommandDescription& command, const std::string& name) {
  const auto found = std::ranges::find_if(command.options, [&](const OptionDescription& option) {
    return std::ranges::find(option.names, name) != option.names.end();
  });
  return found == command.options.end() ? nullptr : &*found;
}

/// The option whose value is the next word: that of "-m", "--model" and "-qm", but not of
/// "--model=learned"; null where there is none.
const OptionDescription* waits_for_value(const CommandDescription& command,
                                         const std::string& word) {
  const bool letters = !word.starts_with("--") && word.size() > 1;
  const OptionDescription* const option =
      find_option(command, letters ? fmt::format("-{}", word.back()) : word);
  return option != nullptr && !option->value.empty() ? option : nullptr;
}

/// Words that may come next.
class Candidates {
 public:
  explicit Candidates(std::string begun) : begun_(std::move(begun)) {}

  void add(const std::string& word, std::string_view help) {
    if (!word.starts_with(begun_)) return;
    lines_ += fmt::format("{}\t{}\n", word, help.substr(0, help.find('\n')));
  }
  /// The values of an option or an argument; what stands before them in the word is kept.
  void add_values(const OptionDescription& option, const std::string& before = "") {
    const std::string head = begun_.substr(0, std::max(before.size(), begun_.rfind(',') + 1));
    for (const std::string& value : option.values) add(head + value, "");
    files_ = files_ || option.takes_file();
  }
  std::string text() const { return (files_ ? "files\n" : "words\n") + lines_; }

 private:
  std::string begun_, lines_;
  bool files_ = false;
};

}  // namespace

std::string bash_completion(Descriptions) { return kBash; }
std::string zsh_completion(Descriptions) { return kZsh; }
std::string fish_completion(Descriptions) { return kFish; }

std::string completed(Descriptions commands, std::vector<std::string> words) {
  if (words.empty() || words.back() == "=") words.emplace_back();
  std::erase(words, "=");  // bash's words end there
  const std::string begun = words.back();
  words.pop_back();
  const CommandDescription* command = &commands[0];
  const OptionDescription* open = nullptr;  // whose value comes next
  bool may_be_command = true;
  for (const std::string& word : words) {
    if (std::exchange(open, nullptr) != nullptr) continue;
    if (word.starts_with('-')) {
      open = waits_for_value(*command, word);
    } else if (std::exchange(may_be_command, false)) {
      const auto found = std::ranges::find(commands, "infer " + word, &CommandDescription::name);
      if (found != commands.end()) command = &*found;
    }
  }

  Candidates candidates(begun);
  const size_t equals = begun.starts_with("--") ? begun.find('=') : begun.npos;
  if (open != nullptr) {
    candidates.add_values(*open);
  } else if (equals != begun.npos) {
    if (const auto* const option = find_option(*command, begun.substr(0, equals)))
      candidates.add_values(*option, begun.substr(0, equals + 1));
  } else if (begun.starts_with('-')) {
    for (const OptionDescription& option : command->options) {
      for (const std::string& name : option.names) candidates.add(name, option.help);
    }
  } else {
    for (const CommandDescription& other : commands.subspan(may_be_command ? 1 : commands.size())) {
      candidates.add(other.name.substr(other.name.find(' ') + 1), other.summary);
    }
    for (const OptionDescription& option : command->options) {
      if (option.names.empty() || option.takes_words) candidates.add_values(option);
    }
  }
  return candidates.text();
}

}  // namespace infer
