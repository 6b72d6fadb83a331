#include <fmt/format.h>
#include <fmt/ranges.h>

#include "infer/render/described.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// Letter for letter in roff.
std::string roff(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_line = i == 0 || text[i - 1] == '\n';
    if (starts_line && (text[i] == '.' || text[i] == '\'')) escaped += "\\&";
    escaped += text[i] == '\\'   ? "\\e"
               : text[i] == '-'  ? "\\-"
               : text[i] == '\'' ? "\\(aq"
                                 : std::string(1, text[i]);
  }
  return escaped;
}

std::string as_written(std::string_view lines) {
  while (lines.starts_with('\n')) lines.remove_prefix(1);
  while (lines.ends_with('\n')) lines.remove_suffix(1);
  return lines.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(lines));
}

std::string options_of(const CommandDescription& command) {
  std::string text;
  for (const OptionDescription& option : command.options) {
    std::vector<std::string> names;
    for (const std::string& name : option.names)
      names.push_back(fmt::format("\\fB{}\\fR", roff(name)));
    text += fmt::format(".TP\n{}{}{}{}\n{}\n", fmt::join(names, ", "),
                        option.names.empty() || option.value.empty() ? "" : " ",
                        option.value.empty() ? "" : fmt::format("\\fI{}\\fR", roff(option.value)),
                        option.repeatable ? " ..." : "", roff(option.help));
  }
  return text;
}

/// The paragraph of a footer that begins with `title`, without it.
std::string behind_title(const std::string& footer, std::string_view title) {
  const size_t found = footer.find("\n\n" + std::string(title));
  if (found == footer.npos) return "";
  const size_t begin = found + 2 + title.size();
  return footer.substr(begin, footer.find("\n\n", begin) - begin);
}

constexpr std::string_view kPage = R"(.\" Made by: infer completion man
.TH INFER 1 "" "phasor {version}" "User Commands"
.SH NAME
infer \- {summary}
.SH SYNOPSIS
{synopsis}.SH DESCRIPTION
{description}
Results go to standard output, everything else to standard error.
.PP
The first word alone can name a command; otherwise all words are texts.
.SH OPTIONS
{options}.SH COMMANDS
{commands}.SH EXIT STATUS
{status}
.SH ENVIRONMENT
.TP
.B PHASOR_MODELS
a folder in which bundled models are looked for first
.TP
.BR HF_HUB_CACHE ", " HUGGINGFACE_HUB_CACHE ", " HF_HOME ", " XDG_CACHE_HOME
where the cache of the Hugging Face hub is, in which OWNER/MODEL is looked for
.TP
.B NO_COLOR
where it is not empty, output has no colours
.SH FILES
.TP
.I ../share/phasor/models
the bundled models, seen from the folder of the program
.SH EXAMPLES
{examples})";

}  // namespace

std::string manual_page(Descriptions commands) {
  const CommandDescription& infer = commands[0];
  std::string synopsis, sections;
  for (const CommandDescription& command : commands) {
    synopsis += fmt::format("\\fB{}\\fR {}\n.br\n", roff(command.name), roff(command.arguments));
    if (&command == &infer) continue;
    sections +=
        fmt::format(".SS {} {}\n{}\n{}{}", roff(command.name), roff(command.arguments),
                    roff(command.description), options_of(command), as_written(command.footer));
  }
  return fmt::format(kPage, fmt::arg("version", PHASOR_VERSION),
                     fmt::arg("summary", roff(infer.summary)), fmt::arg("synopsis", synopsis),
                     fmt::arg("description", roff(infer.description)),
                     fmt::arg("options", options_of(infer)), fmt::arg("commands", sections),
                     fmt::arg("status", roff(behind_title(infer.footer, "Exit codes: "))),
                     fmt::arg("examples", as_written(behind_title(infer.footer, "Examples:"))));
}

}  // namespace infer
