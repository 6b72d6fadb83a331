// What infer embed, classify, label and rank share: the options of the table in phasor/fields.h,
// and texts, or the lines of a file, run window by window as these say, so that memory stays
// bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "infer/cli/line_reader.h"
#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "phasor/fields.h"
#include "phasor/model.h"
#include "phasor/options.h"
#include "phasor/results.h"

namespace infer {

struct TextArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::optional<std::string> input;  // the file of -i
  phasor::TextOptions how;
  bool strict = false;  // a line that is cut or not all UTF-8 is an error
};

/// The option of a field: "--max-tokens", or with the other name that it has, "--prompt,--prefix".
std::string option_of(const phasor::Field& field);
/// Half a sentence with the values.
std::string help_of(const phasor::Field& field);

/// The commands that have it, "embed --kinds tokens,states" or "label".
std::vector<std::string> commands_of(const phasor::Field& field);

/// Adds the options of the fields that have one of the uses.
void add_fields(CommandLine& line, uint32_t uses, phasor::TextOptions& options);

/// After parse(). Throws UsageError where check_fields() throws: before a model is loaded.
void check_options(const phasor::TextOptions& options, uint32_t uses, std::string_view command);

/// The texts, or without any (or with "-" alone) the lines of the input.
LineReader lines_of(const TextArguments& given);

/// On stderr, unless quiet: that a precision is slow, what is put before each text unasked, unless
/// nothing is, and what should be known of the model's files.
void tell(const TextArguments& given, const phasor::Model& model, bool has_prompt = true);

/// What is told about a line that could not be taken as it is; empty for others.
std::string line_report(const phasor::TextReport& tokens, const Line& line = {});

/// A line and the number by which it is chosen: the largest first, and of equal ones the first
/// line.
struct RankedLine {
  double key = 0;
  int64_t number = 0;  // from 1
  std::string text;
  double score = 0;  // which people are shown

  bool operator<(const RankedLine& other) const {
    return key != other.key ? key > other.key : number < other.number;
  }
};
using Ranking = std::multiset<RankedLine>;
/// Keeps the best `most` lines; the text of another is not copied. The score is the key, unless it
/// is given.
void add(double key, const Line& line, int64_t most, Ranking& ranking,
         std::optional<double> score = {});
/// The lines of a query, best first, with so many decimals; or as a JSON object, in which they are
/// an array of this name, and `write_numbers` writes the members of a line's numbers.
void print(Output& output, const std::string& query, const Ranking& ranking, int decimals,
           const char* json_name,
           const std::function<void(const RankedLine&, JsonWriter&)>& write_numbers);

/// A run over lines, whose result is somewhere else.
struct LineRun {
  using Texts = std::span<const std::string_view>;
  /// Runs a window's texts, and says what should be known of each; may throw kCancelled.
  std::function<const phasor::TextReports*(Texts, const phasor::TextOptions& how)> run;
  std::function<bool(std::span<const Line> window)> write;  // false: no more windows
  std::function<std::string()> finish;
  bool waits = true;       // for a whole window where lines come slowly
  int64_t line_bytes = 0;  // of a line's result; wide ones make windows of fewer lines

  /// Returns the exit code. Throws InvalidArgument for a file without lines.
  int operator()(const TextArguments& given, LineReader& lines) const;
};

/// Runs `call(texts, options)` over the lines and hands `write` each window with its result; it
/// says whether there is to be another. `finish` is called in the end, and says what became of a
/// line ("128 numbers each"). Returns the exit code.
template <typename Call, typename Write, typename Finish>
int run_lines(const TextArguments& given, LineReader& lines, bool waits, int64_t line_bytes,
              const Call& call, const Write& write, const Finish& finish) {
  std::optional<std::invoke_result_t<Call, LineRun::Texts, const phasor::TextOptions&>> result;
  const LineRun run = {.run =
                           [&](LineRun::Texts texts, const phasor::TextOptions& how) {
                             result.reset();  // two windows' results are never held at once
                             result = call(texts, how);
                             return &result->reports;
                           },
                       .write = [&](auto window) { return write(window, *result); },
                       .finish = finish,
                       .waits = waits,
                       .line_bytes = line_bytes};
  return run(given, lines);
}

}  // namespace infer
