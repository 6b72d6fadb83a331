// What infer embed, classify, label and rank share: texts, or the lines of a file, run window by
// window as TextOptions say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "phasor/options.h"

namespace infer {

struct TextArguments {
  CommonOptions common;
  std::vector<std::string> words;
  std::optional<std::string> input;  // the file of -i
  phasor::TextOptions how;
  bool strict = false;
};

/// The texts, or without any (or with "-" alone) the lines of the input.
LineReader lines_of(const TextArguments& given);

/// On stderr, unless quiet: that a precision is slow, what is put before each text unasked, unless
/// nothing is, and what should be known of the model's files.
void tell(const TextArguments& given, const phasor::Model& model, bool has_prompt = true);

/// After a complete run: what was done, on stderr. Returns the exit code.
int end_of(const LineStream& stream, const TextArguments& given, const std::string& each);

/// Runs `call(texts, options)` over the lines and hands `write` each window with its result; it
/// says whether there is to be another. `finish` is called in the end, and says what became of a
/// line ("128 numbers each"). Returns the exit code. `waits`, `line_bytes`: see StreamOptions.
template <typename Call, typename Write, typename Finish>
int run_lines(const TextArguments& given, LineReader& lines, bool waits, int64_t line_bytes,
              const Call& call, const Write& write, const Finish& finish) {
  using Texts = std::span<const std::string_view>;
  const bool refuses_long = given.how.overflow == phasor::Overflow::kError;
  const auto run = [&](Texts texts, const phasor::Progress& progress, const std::stop_token& stop) {
    phasor::TextOptions how = given.how;
    // The library does not know the line's number: the text is cut, and the stream refuses it.
    if (refuses_long) how.overflow = phasor::Overflow::kTruncate;
    how.progress = progress;
    how.stop = stop;
    return call(texts, how);
  };
  LineStream stream(lines, {.quiet = given.common.quiet,
                            .strict = given.strict,
                            .waits = waits,
                            .refuses_long = refuses_long,
                            .line_bytes = line_bytes});
  using Result = std::invoke_result_t<Call, Texts, const phasor::TextOptions&>;
  if (!stream.run<Result>(run, write))
    return report_error("interrupted", kBadInput);  // the signal ends the program
  return end_of(stream, given, finish());
}

}  // namespace infer
