// What the subcommands' arguments have in common: the options themselves, and texts, ids and
// positions as users write them.
#include "infer/cli/options.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <system_error>

#include "infer/cli/help.h"
#include "infer/commands.h"
#include "infer/render/terminal.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/version.h"

namespace infer {
namespace {

/// CLI11 takes a positional "[MASK]" for a list and strips its brackets, but not behind this.
constexpr char kGuard = '\x1f';

/// The arguments in the reverse order that CLI11 wants, with guards before what looks like a list.
std::vector<std::string> guarded(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string argument = argv[i];
    const CLI::Option* before = app.get_option_no_throw(argv[i - 1]);
    const bool is_value = i > 1 && before != nullptr && before->get_items_expected_min() > 0;
    const bool guard = !is_value && (argument.starts_with('[') || argument.starts_with(kGuard));
    arguments.push_back(guard ? kGuard + argument : argument);
  }
  return arguments;
}

phasor::Precision parse_precision(const std::string& name) {
  try {
    return phasor::parse<phasor::Precision>(name);
  } catch (const phasor::InvalidArgument& error) {
    throw UsageError(fmt::format("--precision: {}", error.what()));
  }
}

std::vector<std::string> lines_of(std::istream& stream) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

void add_model(CLI::App& app, CommonOptions& options) {
  app.add_option("-m,--model", options.model,
                 "a checkpoint's folder, or a bundled model: sinusoidal (default), learned, none")
      ->type_name("DIR|NAME");
}

void add_language(CLI::App& app, CommonOptions& options) {
  app.add_option("--lang", options.language,
                 "the texts' language, as the model spells it: en, en_XX, eng_Latn; for Marian the "
                 "one to translate into")
      ->type_name("CODE");
}

void add_prefix(CLI::App& app, CommonOptions& options) {
  app.add_option("--prefix", options.prefix, "put before every text, like \"query: \"")
      ->type_name("TEXT");
}

void add_threads(CLI::App& app, CommonOptions& options) {
  app.add_option("-t,--threads", options.threads, "worker threads (default: one for each core)")
      ->option_text("N")
      ->check(CLI::Range(0, 1024));
}

void add_precision(CLI::App& app, CommonOptions& options) {
  app.add_option_function<std::string>(
         "--precision", [&](const std::string& name) { options.precision = parse_precision(name); },
         "what matrices are multiplied in: f32 (default), bf16, int8, or auto, the fastest here")
      ->type_name("P");
}

void add_precisions(CLI::App& app, const std::string& description,
                    std::vector<phasor::Precision>& precisions) {
  app.add_option_function<std::vector<std::string>>(
         "--precision",
         [&](const std::vector<std::string>& names) {
           precisions.clear();
           for (const std::string& name : names) precisions.push_back(parse_precision(name));
         },
         description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("P");
}

void add_json_and_quiet(CLI::App& app, CommonOptions& options) {
  app.add_flag("--json", options.json, "print JSON, one object a line");
  app.add_flag("-q,--quiet", options.quiet, "print nothing but results and errors");
}

void add_html(CLI::App& app, std::string& file) {
  app.add_option("--html", file, "write a page of figures for a browser; it needs no network")
      ->type_name("FILE")
      ->check([](const std::string& name) {
        const bool is_name = !name.empty() && name != "-";
        return is_name ? "" : fmt::format("'{}' is no file; write a name like page.html", name);
      });
}

CLI::Option* add_words(CLI::App& app, const std::string& name, const std::string& description) {
  const CLI::callback_t accept = [](const CLI::results_t&) { return true; };
  return app.add_option(name, accept, description)
      ->type_size(1)
      ->type_name("")
      ->expected(0, -1)
      ->allow_extra_args();
}

std::vector<std::string> words(const CLI::Option& option) {
  std::vector<std::string> words = option.results();
  for (std::string& word : words) {
    if (word.starts_with(kGuard)) word.erase(0, 1);
  }
  return words;
}

std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag(
      "--version", [] { return "infer (" + versions() + ")"; },
      "print phasor's and oneDNN's version");
  app.formatter(std::make_shared<HelpFormatter>());
  try {
    app.parse(guarded(app, argc, argv));
  } catch (const CLI::CallForHelp&) {
    Output().write(app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    Output().write(std::string(version.what()) + "\n");
    return 0;
  }
  return std::nullopt;
}

void note_slow(phasor::Precision precision) {
  const std::string why = phasor::why_slow(precision);
  if (!why.empty()) report_note(why);
}

std::string versions() {
  return fmt::format("phasor {}, oneDNN {}", PHASOR_VERSION, phasor::Encoder::backend_version());
}

std::vector<std::string> read_texts(const std::vector<std::string>& words,
                                    const std::string& prefix) {
  std::vector<std::string> texts;
  for (const std::string& word : words) {
    if (word != "-") {
      texts.push_back(prefix + word);
      continue;
    }
    for (const std::string& line : lines_of(std::cin)) texts.push_back(prefix + line);
  }
  return texts;
}

std::vector<std::string> read_lines(const std::string& file) {
  std::vector<std::string> lines;
  if (file == "-") {
    lines = lines_of(std::cin);
  } else {
    std::ifstream stream(file, std::ios::binary);
    std::error_code ignored;
    if (!stream || std::filesystem::is_directory(file, ignored)) {
      throw phasor::InvalidArgument(fmt::format(
          "cannot read the text file '{}': {}", file,
          std::filesystem::exists(file, ignored) ? "not a readable file" : "there is none"));
    }
    lines = lines_of(stream);
  }
  std::erase_if(lines, [](const std::string& line) {
    return line.find_first_not_of(" \t\r\v\f") == std::string::npos;
  });
  if (lines.empty()) {
    throw phasor::InvalidArgument(
        fmt::format("the text file '{}' holds no text; write one text a line", file));
  }
  return lines;
}

std::vector<int32_t> parse_ids(std::string_view list) {
  constexpr std::string_view kSeparators = ", \t\n\r";
  std::vector<int32_t> ids;
  for (;;) {
    const size_t begin = list.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) break;
    list.remove_prefix(begin);
    const std::string_view word = list.substr(0, list.find_first_of(kSeparators));
    list.remove_prefix(word.size());
    int32_t id = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (problem == std::errc::result_out_of_range) {
      throw phasor::InvalidArgument(
          fmt::format("--ids: {} is no token id; infer info tells the vocabulary's size", word));
    }
    if (problem != std::errc() || end != word.data() + word.size()) {
      throw UsageError(
          fmt::format("--ids: '{}' is no number; write token ids like \"5 17 9\"", word));
    }
    ids.push_back(id);
  }
  if (ids.empty()) {
    throw phasor::InvalidArgument("--ids is empty; write at least one token id, like \"5 17 9\"");
  }
  return ids;
}

phasor::Positions parse_positions(const std::string& name, const phasor::PositionConfig& own) {
  using phasor::Positions;
  if (name.empty() || name == "own") return Positions();
  if (name == "none") return Positions::none();
  if (name == "learned") return Positions::learned();
  if (name == "sinusoidal") return Positions::sinusoidal(own.layout, own.base);
  constexpr std::string_view kPrefix = "sinusoidal:";
  if (name.starts_with(kPrefix)) {
    try {
      return Positions::sinusoidal(
          phasor::parse<phasor::SinusoidalLayout>(name.substr(kPrefix.size())), own.base);
    } catch (const phasor::InvalidArgument& error) {
      throw UsageError(fmt::format("--positions {}: {}", name, error.what()));
    }
  }
  throw UsageError(fmt::format(
      "--positions: '{}' is none of own, none, sinusoidal, sinusoidal:LAYOUT, learned", name));
}

}  // namespace infer
