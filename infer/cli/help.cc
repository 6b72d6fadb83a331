// An option and what it does, in two columns.
#include "infer/cli/help.h"

#include "infer/render/terminal.h"

namespace infer {

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string usage = "Usage: " + name + " [OPTIONS]";
  const auto is_positional = [](const CLI::Option* option) { return option->get_positional(); };
  for (const CLI::Option* option : app->get_options(is_positional)) {
    usage += " " + make_option_usage(option);
  }
  return app->get_description() + "\n" + usage + "\n" + make_positionals(app) +
         make_groups(app, mode) + "\n" + app->get_footer() + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  constexpr int kWidth = 100;
  const int indent = static_cast<int>(get_column_width());
  const std::string name =
      "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const bool too_long = display_width(name) >= indent;
  return (too_long ? name + "\n" + pad_right("", indent) : pad_right(name, indent)) +
         wrapped(make_option_desc(option), indent, kWidth) + "\n";
}

}  // namespace infer
