// What the subcommands' arguments have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/config.h"
#include "phasor/positions.h"
#include "phasor/precision.h"

namespace infer {

struct CommonOptions {
  std::string model = "sinusoidal";
  std::string language;
  std::string prefix;
  int threads = 0;
  phasor::Precision precision = phasor::Precision::kFloat32;
  bool json = false;
  bool quiet = false;
};

void add_model(CLI::App& app, CommonOptions& options);
/// --lang and --prefix: what a model wants to know, or to read, with every text.
void add_language(CLI::App& app, CommonOptions& options);
void add_prefix(CLI::App& app, CommonOptions& options);
void add_threads(CLI::App& app, CommonOptions& options);
void add_precision(CLI::App& app, CommonOptions& options);
/// --precision for several, with commas or repeated.
void add_precisions(CLI::App& app, const std::string& description,
                    std::vector<phasor::Precision>& precisions);
void add_json_and_quiet(CLI::App& app, CommonOptions& options);
/// --html: where HtmlReport writes.
void add_html(CLI::App& app, std::string& file);

/// Any number of positional arguments.
CLI::Option* add_words(CLI::App& app, const std::string& name, const std::string& description);
/// After parse(): the arguments, letter for letter.
std::vector<std::string> words(const CLI::Option& option);

/// Parses, and prints help or version where that was asked for: then the result is the exit code.
std::optional<int> parse(CLI::App& app, int argc, char** argv);

/// Says why a precision that was asked for is slow on this machine, where it is.
void note_slow(phasor::Precision precision);

/// "phasor 0.1.0, oneDNN 2.6.3".
std::string versions();

/// The words, with each "-" replaced by the lines of stdin, and `prefix` before each text.
std::vector<std::string> read_texts(const std::vector<std::string>& words,
                                    const std::string& prefix = {});

/// The lines of a text file that are not blank; "-" is stdin. Throws InvalidArgument naming the
/// file where it cannot be read or holds no text.
std::vector<std::string> read_lines(const std::string& file);

/// "5 17 9" or "5,17,9". Throws UsageError (no number) or InvalidArgument (none at all, or none
/// that could be an id).
std::vector<int32_t> parse_ids(std::string_view list);

/// none | sinusoidal[:layout] | learned, or own (and empty) for what the model has.
phasor::Positions parse_positions(const std::string& name, const phasor::PositionConfig& own);

}  // namespace infer
