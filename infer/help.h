// How infer's help looks.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace infer {

/// CLI11's, with descriptions that are wrapped beside their options.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(32); }
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace infer
