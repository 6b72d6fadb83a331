// Each script first finds the command among the words before the cursor, as run_command() does, and
// then offers that command's options, or an option's values.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "infer/render/described.h"

namespace infer {
namespace {

std::string replaced(std::string text, std::string_view letters, std::string_view before) {
  for (size_t i = text.size(); i-- > 0;) {
    if (letters.find(text[i]) != letters.npos) text.insert(i, before);
  }
  return text;
}

/// As a word of bash and zsh.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? "'\\''" : std::string(1, letter);
  return word + "'";
}
std::string fish_quoted(const std::string& text) { return "'" + replaced(text, "\\'", "\\") + "'"; }

/// "'infer -m' 'infer --model'": each name behind the command.
std::vector<std::string> with_command(const CommandDescription& command,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names) words.push_back(quoted(command.name + " " + name));
  return words;
}

/// The options of infer itself that have a value: they may stand before a command.
std::vector<std::string> before_command(Descriptions commands) {
  std::vector<std::string> words;
  for (const OptionDescription& option : commands[0].options) {
    if (option.value.empty()) continue;
    for (std::string& word : with_command(commands[0], option.names)) words.push_back(word);
  }
  return words;
}

/// 'infer embed', 'infer shard', 'infer shard plan'.
std::vector<std::string> command_words(Descriptions commands) {
  std::vector<std::string> words;
  for (const CommandDescription& command : commands.subspan(1))
    words.push_back(quoted(command.name));
  return words;
}

/// Those that may come next, and their last words.
std::vector<std::pair<std::string, const CommandDescription*>> next_commands(
    Descriptions commands, const CommandDescription& command) {
  std::vector<std::pair<std::string, const CommandDescription*>> next;
  for (const CommandDescription& other : commands) {
    const size_t space = other.name.rfind(' ');
    if (space == other.name.npos || other.name.substr(0, space) != command.name) continue;
    next.emplace_back(other.name.substr(space + 1), &other);
  }
  return next;
}

/// What words that follow no option can be: positional arguments, and more values of an option.
OptionDescription positional(const CommandDescription& command) {
  OptionDescription all;
  for (const OptionDescription& option : command.options) {
    if (!option.names.empty() && !option.takes_words) continue;
    all.value += option.value + " ";
    all.values.insert(all.values.end(), option.values.begin(), option.values.end());
  }
  return all;
}

std::string bash_action(const std::vector<std::string>& words, bool files) {
  std::string action;
  if (!words.empty())
    action += fmt::format(" words={}", quoted(fmt::format("{}", fmt::join(words, " "))));
  return action + (files ? " files=1" : "");
}

constexpr std::string_view kBash = R"(# Completes infer in bash; made by: infer completion bash
_infer() {{
  local command=infer words= files= i
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  [[ $cur != '=' ]] || cur=
  [[ $prev != '=' ]] || prev=${{COMP_WORDS[COMP_CWORD-2]}}
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${{COMP_WORDS[i]}}" in
      {before}) [[ ${{COMP_WORDS[++i]}} != '=' ]] || ((++i)) ;;
      'infer -'*) ;;
      {commands}) command+=" ${{COMP_WORDS[i]}}" ;;
      *) break ;;
    esac
  done
  case "$command $prev" in
{values}    *)
      if [[ $cur == -* ]]; then
        case $command in
{options}        esac
      else
        case $command in
{arguments}        esac
      fi ;;
  esac
  COMPREPLY=()
  local head=${{cur%"${{cur##*,}}"}} line
  [[ ! $words ]] || while IFS= read -r line; do COMPREPLY+=("$line"); done \
    < <(compgen -P "$head" -W "$words" -- "${{cur##*,}}")
  if [[ $files ]]; then
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    compopt -o filenames 2>/dev/null
  fi
}}
complete -F _infer infer
)";

/// `nothing`: where no value is offered. A space shows what is to be typed.
std::string zsh_action(const OptionDescription& option, const char* nothing = " ") {
  std::string action = option.values.empty() ? ""
                                             : fmt::format("compset -P \"*,\"; compadd - {}; ",
                                                           fmt::join(option.values, " "));
  if (option.takes_file()) action += "_files; ";
  return fmt::format(":{}:{}", replaced(option.value, ":", "\\"),
                     action.empty() ? nothing : "{" + action + "}");
}

/// An argument of zsh's _arguments.
std::string zsh_option(const OptionDescription& option) {
  const bool flag = option.value.empty();
  std::string others = option.repeatable ? "*" : fmt::format("({})", fmt::join(option.names, " "));
  std::string lines;
  for (const std::string& name : option.names) {
    const char* const value = flag ? "" : name.starts_with("--") ? "=" : "+";
    lines += fmt::format(" \\\n        {}", quoted(fmt::format("{}{}{}[{}]{}", others, name, value,
                                                               replaced(option.help, "[]\\", "\\"),
                                                               flag ? "" : zsh_action(option))));
  }
  return lines;
}

constexpr std::string_view kZsh = R"(#compdef infer
# Completes infer in zsh; made by: infer completion zsh
_infer() {{
  local command=infer
  local -a commands
  local -i i=2
  while ((i < CURRENT)); do
    case "$command $words[i]" in
      ({before}) ((i += 2)) ;;
      ('infer -'*) ((i++)) ;;
      ({commands}) command+=" $words[i]"; words[i]=(); ((CURRENT--)) ;;
      (*) break ;;
    esac
  done
  case $command in
{cases}  esac
}}
if [[ $funcstack[1] == _infer ]]; then _infer "$@"; else compdef _infer infer; fi
)";

constexpr std::string_view kFish = R"(# Completes infer in fish; made by: infer completion fish
function __infer_command
    set -l command infer
    set -l value 0
    for word in (commandline -opc)[2..-1]
        if test $value = 1
            set value 0
            continue
        end
        switch "$command $word"
            case {before}
                set value 1
            case 'infer -*'
            case {commands}
                set command "$command $word"
            case '*'
                break
        end
    end
    echo $command
end
complete -c infer -f
)";

std::string fish_option(const OptionDescription& option) {
  std::string line;
  for (const std::string& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.value.empty()) line += option.takes_file() ? " -r -F" : " -x";
  if (!option.values.empty()) {
    line += " -a " + fish_quoted(fmt::format("{}", fmt::join(option.values, " ")));
  }
  return line + " -d " + fish_quoted(option.help);
}

}  // namespace

std::string bash_completion(Descriptions commands) {
  std::string values, options, arguments;
  for (const CommandDescription& command : commands) {
    std::vector<std::string> names, next;
    for (const OptionDescription& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      if (option.value.empty() || option.names.empty()) continue;
      values += fmt::format("    {}){} ;;\n", fmt::join(with_command(command, option.names), " | "),
                            bash_action(option.values, option.takes_file()));
    }
    for (const auto& [name, ignored] : next_commands(commands, command)) next.push_back(name);
    const bool first_word = !next.empty();
    const OptionDescription words = positional(command);
    next.insert(next.end(), words.values.begin(), words.values.end());
    const std::string name = quoted(command.name);
    options += fmt::format("          {}){} ;;\n", name, bash_action(names, false));
    arguments +=
        fmt::format("          {}){}{} ;;\n", name, first_word ? " ((i < COMP_CWORD)) ||" : "",
                    bash_action(next, words.takes_file()));
  }
  return fmt::format(kBash, fmt::arg("before", fmt::join(before_command(commands), " | ")),
                     fmt::arg("commands", fmt::join(command_words(commands), " | ")),
                     fmt::arg("values", values), fmt::arg("options", options),
                     fmt::arg("arguments", arguments));
}

std::string zsh_completion(Descriptions commands) {
  std::string cases;
  for (const CommandDescription& command : commands) {
    std::string list, specs;
    for (const auto& [name, other] : next_commands(commands, command)) {
      list += fmt::format(" \\\n        {}", quoted(name + ":" + std::string(other->summary)));
    }
    if (!list.empty()) {
      list = fmt::format("      commands=({})\n", list);
      specs += " \\\n        '1:command:{_describe command commands}'";
    }
    for (const OptionDescription& option : command.options) {
      if (!option.names.empty()) specs += zsh_option(option);
    }
    // With " " an option's only match would be shown, and not be completed.
    specs += fmt::format(" \\\n        {}", quoted("*" + zsh_action(positional(command), "{ }")));
    cases +=
        fmt::format("    ({})\n{}      _arguments -s{} ;;\n", quoted(command.name), list, specs);
  }
  return fmt::format(kZsh, fmt::arg("before", fmt::join(before_command(commands), "|")),
                     fmt::arg("commands", fmt::join(command_words(commands), "|")),
                     fmt::arg("cases", cases));
}

std::string fish_completion(Descriptions commands) {
  std::string script =
      fmt::format(kFish, fmt::arg("before", fmt::join(before_command(commands), " ")),
                  fmt::arg("commands", fmt::join(command_words(commands), " ")));
  for (const CommandDescription& command : commands) {
    const std::string line =
        fmt::format("complete -c infer -n {}",
                    fish_quoted(fmt::format("test (__infer_command) = \"{}\"", command.name)));
    for (const auto& [name, other] : next_commands(commands, command)) {
      script += fmt::format("{} -a {} -d {}\n", line, name, fish_quoted(other->summary));
    }
    for (const OptionDescription& option : command.options) {
      if (!option.names.empty()) script += line + fish_option(option) + "\n";
    }
    const OptionDescription words = positional(command);
    if (!words.values.empty()) {
      script += fmt::format("{} -a {}\n", line,
                            fish_quoted(fmt::format("{}", fmt::join(words.values, " "))));
    }
    if (words.takes_file()) script += line + " -F\n";
  }
  return script;
}

}  // namespace infer
