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

/// An option and what it does, in two columns, and a frame that is the same with every CLI11.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(32); }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string usage = "Usage: " + name + " [OPTIONS]";
    const auto is_positional = [](const CLI::Option* option) { return option->get_positional(); };
    for (const CLI::Option* option : app->get_options(is_positional)) {
      usage += " " + make_option_usage(option);
    }
    constexpr int kWritten = 100;  // columns that the texts are written for
    const bool narrow = Output().width() < kWritten;
    const std::string footer = app->get_footer();
    const std::string description = app->get_description() + "\n";
    return (narrow ? reflowed(description) : description) + usage + "\n" + make_positionals(app) +
           make_groups(app, mode) + "\n" + (narrow ? reflowed(footer) : footer + "\n");
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const int width = std::min(Output().width(), 100);
    const int indent = std::min(static_cast<int>(get_column_width()), width / 2);
    const std::string name =
        "  " + make_option_name(option, is_positional) + make_option_opts(option);
    const bool too_long = display_width(name) >= indent;
    return (too_long ? name + "\n" + pad_right("", indent) : pad_right(name, indent)) +
           wrapped(make_option_desc(option), indent, width) + "\n";
  }
};

/// CLI11 takes "[MASK]" for a list and strips its brackets, but not behind this.
constexpr char kGuard = '\x1f';

std::string unguarded(const std::string& word) {
  return word.starts_with(kGuard) ? word.substr(1) : word;
}

/// The arguments in the reverse order that CLI11 wants, with guards. Of "--prompt=" it would take
/// the next argument for the value.
std::vector<std::string> guarded(int argc, char** argv) {
  const auto options = std::find(argv, argv + argc, std::string_view("--")) - argv;
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (i < options && argument.starts_with("--") && argument.ends_with('=')) {
      arguments.emplace_back();
      argument.pop_back();
    }
    const bool guard = argument.starts_with('[') || argument.starts_with(kGuard);
    arguments.push_back(guard ? kGuard + argument : argument);
  }
  return arguments;
}

/// Whether a value can be the name of a file or folder, by what help calls it.
bool takes_file(std::string_view value) {
  return std::ranges::any_of(
      std::array{"FILE", "DIR", "FOLDER", "CORPUS", "OUT", "TABLE", "MODEL", "VECTORS"},
      [&](const char* word) { return value.find(word) != value.npos; });
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

struct CommandLine::Parser {
  Parser(const char* name, const char* description) : app(description, name) {}

  CLI::Option* add(const std::string& names, const char* value, const std::string& help,
                   CommandLine::TakeAll take) {
    const bool is_file = takes_file(*value != '\0' ? std::string_view(value) : names);
    const CLI::callback_t callback = [take = std::move(take), is_file,
                                      names](CLI::results_t values) {
      for (std::string& text : values) {
        text = unguarded(text);
        if (is_file && text.empty()) {  // as "$FILE" is where the shell knows no FILE
          throw UsageError(fmt::format("{}: the name is empty", names));
        }
      }
      take(values);
      return true;
    };
    return app.add_option(names, callback, help)->type_name(value)->type_size(1);
  }

  std::string unexpected() const {
    std::vector<std::string> words = app.remaining();
    const auto option =
        std::ranges::find_if(words, [](const auto& w) { return w.starts_with('-'); });
    if (option == words.end()) return fmt::format("unexpected argument '{}'", unguarded(words[0]));
    const std::string name = option->substr(0, option->find('='));
    std::vector<std::string> long_names;
    for (const CLI::Option* known : app.get_options()) {
      for (const std::string& known_name : known->get_lnames())
        long_names.push_back(fmt::format("--{}", known_name));
    }
    const std::vector<std::string_view> names(long_names.begin(), long_names.end());
    return fmt::format("there is no option {}{}", name,
                       phasor::internal::did_you_mean(name, names));
  }

  CLI::App app;
};

CommandLine::CommandLine(const char* name, const char* description, std::string footer)
    : parser_(std::make_unique<Parser>(name, description)) {
  CLI::App& app = parser_->app;
  app.footer(std::move(footer));
  app.formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, const std::string& help, Given given) {
  parser_->app.add_flag_callback(names, std::move(given), help);
}

void CommandLine::option(const std::string& names, const char* value, const std::string& help,
                         Take take) {
  const auto take_one = [take = std::move(take), names](const auto& values) {
    if (values.size() > 1) throw UsageError(fmt::format("{}: give it once", names));
    take(values.at(0));
  };
  parser_->add(names, value, help, take_one)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::list(const char* names, const char* value, const std::string& help, TakeAll take,
                       Values each) {
  CLI::Option* const option = parser_->add(names, value, help, std::move(take))->expected(1, -1);
  option->allow_extra_args(each == Values::kWords);
  if (each == Values::kCommas) option->delimiter(',');
}

void CommandLine::words(const char* name, const char* help, std::vector<std::string>& target) {
  const auto take = [&target](const auto& values) { target = values; };
  parser_->add(name, "", help, take)->expected(0, -1)->allow_extra_args();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  CLI::App& app = parser_->app;
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag(
      "--version", [] { return "infer (" + versions() + ")"; },
      "print phasor's and oneDNN's version");
  const auto fail = [&](const std::string& what) {
    throw UsageError(fmt::format("{}; {} --help lists the options", what, app.get_name()));
  };
  try {
    app.parse(guarded(argc, argv));
  } catch (const CLI::CallForHelp&) {
    Output().show(app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    Output().write(std::string(version.what()) + "\n");
    return 0;
  } catch (const CLI::ExtrasError&) {
    fail(parser_->unexpected());
  } catch (const CLI::ParseError& error) {
    fail(error.what());
  }
  return std::nullopt;
}

std::string versions() {
  return fmt::format("phasor {}, oneDNN {}", PHASOR_VERSION, phasor::Encoder::backend_version());
}

}  // namespace infer
