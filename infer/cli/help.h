// How infer's help looks.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace infer {

/// CLI11's options, with descriptions that are wrapped beside them, in a frame that is the same
/// with all of its versions.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(32); }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace infer
