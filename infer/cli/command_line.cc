// The one file that knows CLI11, which takes long to compile.
#include "infer/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <utility>

#include "infer/cli/terminal.h"
#include "phasor/encoder.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// What people use first, on a line each, and the names of the rest; the same with every CLI11.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string usage = "Usage: " + name + " [OPTIONS]", texts, options, rest, commands;
    for (const CLI::Option* option : app->get_options()) {
      const bool is_positional = option->get_positional();
      const std::string shown = make_option_name(option, is_positional) + make_option_opts(option);
      if (is_positional) usage += " " + make_option_usage(option);
      if (!is_positional && option->get_description().empty())
        rest += ", " + shown;
      else
        (is_positional ? texts : options) += row(shown, option->get_description());
    }
    for (const CLI::App* command : app->get_subcommands({})) {
      if (commands.empty())
        commands = "\nCommands (the first word; infer COMMAND --help says more):\n";
      commands += row(command->get_name(), command->get_description());
    }
    return wrapped(app->get_description(), 0, width()) + "\n" + usage + "\n" + texts + commands +
           "\nOptions:\n" + options +
           wrapped("  Also (docs/command-line.md): " + rest.substr(2), 4, width()) + "\n\n" +
           app->get_footer() + "\n";
  }

 private:
  static int width() { return std::min(Output().width(), 100); }

  static std::string row(const std::string& name, const std::string& help) {
    const int indent = std::min(26, width() / 2);
    const bool too_long = display_width(name) + 2 >= indent;
    return "  " + (too_long ? name + "\n" + pad_right("", indent) : pad_right(name, indent - 2)) +
           wrapped(help, indent, width()) + "\n";
  }
};

/// Before a word that CLI11 must take letter for letter: it would strip the brackets of "[MASK]",
/// end a command at "++", and leave what follows "--" to the program's own options.
constexpr char kGuard = '\x1f';

std::string unguarded(const std::string& word) {
  return word.starts_with(kGuard) ? word.substr(1) : word;
}

bool takes_value(const CLI::Option& option) { return option.get_expected_max() != 0; }

/// Whether the value of `word`, "--prompt" or "-qi", is the word that follows.
bool takes_next(const CLI::App& app, const std::string& word) {
  const bool is_long = word.starts_with("--");
  for (size_t i = 1; word.starts_with('-') && i < word.size(); ++i) {
    const CLI::Option* option = app.get_option_no_throw(is_long ? word : std::string{'-', word[i]});
    if (option == nullptr) return false;
    if (takes_value(*option)) return is_long || i + 1 == word.size();
  }
  return false;
}

/// The arguments in the reverse order that CLI11 wants, with guards before texts and values, and
/// with values in words of their own: of "--prompt=" it would take the next argument for the value,
/// of "-o=a" "=a", and it would not call a flag's function for "=false".
std::vector<std::string> guarded(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> arguments;
  bool options = true, is_value = false;
  for (const std::string& word : words) {
    const bool is_text = is_value || !options;
    is_value = !is_text && takes_next(app, word);
    if (is_text || word.starts_with('[') || word.starts_with(kGuard) || word == "++") {
      arguments.push_back(kGuard + word);
      continue;
    }
    if (word == "--") {
      options = false;
      continue;
    }
    const std::string name = word.substr(0, word.find('='));
    const bool has_value = name != word && name.starts_with('-');
    const CLI::Option* const option = has_value ? app.get_option_no_throw(name) : nullptr;
    arguments.push_back(option == nullptr ? word : name);
    if (option == nullptr) continue;
    const std::string value = word.substr(name.size() + 1);
    if (!takes_value(*option)) {
      throw CLI::ParseError(fmt::format("{} takes no value, so no '{}'", name, value),
                            CLI::ExitCodes::ArgumentMismatch);
    }
    arguments.push_back(kGuard + value);
  }
  std::ranges::reverse(arguments);
  return arguments;
}

CLI::Option* add(CLI::App& app, const std::string& names, const char* value,
                 const std::string& help, CommandLine::TakeAll take) {
  const std::string_view shown = *value != '\0' ? std::string_view(value) : names;
  const bool is_file =
      std::ranges::any_of(std::array{"FILE", "DIR", "OUT", "TABLE", "MODEL"},
                          [&](const char* word) { return shown.find(word) != shown.npos; });
  const CLI::callback_t callback = [take = std::move(take), is_file, names](CLI::results_t values) {
    for (std::string& text : values) {
      text = unguarded(text);
      if (is_file && text.empty())  // as "$FILE" is where the shell knows no FILE
        throw UsageError(fmt::format("{}: the name is empty", names));
    }
    take(values);
    return true;
  };
  return app.add_option(names, callback, help)->type_name(value)->type_size(1);
}

/// What is said of words that the options of `app` leave.
std::string unexpected(const CLI::App& app, const std::vector<std::string>& words,
                       CommandLine::Elsewhere elsewhere) {
  const auto option = std::ranges::find_if(words, [](const auto& w) { return w.starts_with('-'); });
  if (option == words.end()) return fmt::format("unexpected argument '{}'", unguarded(words[0]));
  const std::string name = option->substr(0, option->find('='));
  const std::string other = elsewhere == nullptr ? "" : elsewhere(name);
  if (!other.empty()) return fmt::format("there is no option {}; {}", name, other);
  std::vector<std::string> known;
  for (const CLI::Option* each : app.get_options())
    for (const std::string& long_name : each->get_lnames()) known.push_back("--" + long_name);
  const std::vector<std::string_view> names(known.begin(), known.end());
  return fmt::format("there is no option {}{}", name, phasor::internal::did_you_mean(name, names));
}

}  // namespace

void refuse_number(std::string_view names, const std::string& text, std::optional<Range> range,
                   bool whole, bool from_zero) {
  throw UsageError(fmt::format("{}: '{}' is not a {}number{}", names.substr(names.find(',') + 1),
                               text, whole ? "whole " : "",
                               range       ? fmt::format(" from {} to {}", range->low, range->high)
                               : from_zero ? " from 0 up"
                                           : ""));
}

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         std::vector<std::string> words, Elsewhere elsewhere)
    : program_(std::make_shared<CLI::App>(description, name)),
      app_(program_.get()),
      words_(std::move(words)),
      elsewhere_(elsewhere) {
  app_->formatter(std::make_shared<HelpFormatter>());
  app_->require_subcommand(0, 1);
}

CommandLine CommandLine::seeking(const std::string& option) {
  CommandLine line("", "", {option});
  line.seeks_ = true;
  return line;
}

CommandLine CommandLine::command(const std::string& name, const std::string& description) {
  CommandLine line = *this;
  line.app_ = app_->add_subcommand(name, description);
  return line;
}

void CommandLine::footer(const std::string& text) { app_->footer(text); }

void CommandLine::flag(const std::string& names, const std::string& help, Given given) {
  app_->add_flag_callback(names, std::move(given), help);
}

void CommandLine::option(const std::string& names, const char* value, const std::string& help,
                         Take take) {
  const auto take_one = [take = std::move(take), names](const auto& values) {
    if (values.size() > 1) throw UsageError(fmt::format("{}: give it once", names));
    take(values.at(0));
  };
  add(*app_, names, value, help, take_one)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::list(const std::string& names, const char* value, const std::string& help,
                       TakeAll take, Values each) {
  CLI::Option* const option = add(*app_, names, value, help, std::move(take))->expected(1, -1);
  option->allow_extra_args(false);
  if (each == Values::kCommas) option->delimiter(',');
}

void CommandLine::words(const char* name, const char* help, std::vector<std::string>& target) {
  const auto take = [&target](const auto& values) { target = values; };
  add(*app_, name, "", help, take)->expected(0, -1)->allow_extra_args();
}

std::optional<int> CommandLine::parse() {
  if (seeks_) return app_->get_option_no_throw(words_[0]) == nullptr ? kUsage : 0;
  CLI::App& program = *program_;
  app_->set_help_flag("-h,--help");
  app_->set_version_flag("--version", [] { return "infer (" + versions() + ")"; })->description("");
  if (app_ == &program) {  // only the first word names a command
    for (CLI::App* command : program.get_subcommands({})) command->disabled();
  }
  const auto fail = [&](const std::string& what) {
    const std::string command = app_ == &program ? "" : " " + app_->get_name();
    throw UsageError(
        fmt::format("{}; {}{} --help lists the options", what, program.get_name(), command));
  };
  try {
    program.parse(guarded(*app_, words_));
  } catch (const CLI::CallForHelp&) {
    Output().show(program.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    Output().write(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ExtrasError&) {
    fail(unexpected(*app_, program.remaining(true), elsewhere_));
  } catch (const CLI::ParseError& error) {
    fail(error.what());
  }
  return std::nullopt;
}

bool CommandLine::ends_options() const { return std::ranges::count(words_, "--") > 0; }

std::string versions() {
  return fmt::format("phasor {}, oneDNN {}", PHASOR_VERSION, phasor::Encoder::backend_version());
}

}  // namespace infer
