// What the subcommands' arguments have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/command_line.h"
#include "phasor/config.h"
#include "phasor/encoder.h"
#include "phasor/positions.h"
#include "phasor/precision.h"
#include "phasor/tokenizer.h"

namespace infer {

struct CommonOptions {
  std::string model = "sinusoidal";
  std::string language;
  std::string prefix;
  bool follow_links = false;
  bool special = false;  // special tokens written in a text are read as such
  int threads = 0;
  std::optional<phasor::Precision> precision;  // that was asked for; see precision_of()
  phasor::KernelLibrary kernels = phasor::KernelLibrary::kAuto;
  bool json = false;
  bool quiet = false;
};

/// Options that several commands have.
enum Common : uint32_t {
  kModel = 1,
  kLinks = 2,
  kLanguage = 4,
  kPrefix = 8,
  kSpecial = 16,
  kThreads = 32,
  kPrecision = 64,
  kKernels = 128,
  kPrint = 256,  // --json and --quiet
  kLoad = kModel | kLinks | kLanguage,
  kRun = kThreads | kPrecision | kKernels | kPrint,
};
/// Adds those of `which`.
void add_common(CommandLine& line, uint32_t which, CommonOptions& options);
/// How a model or tokenizer is loaded: --lang and --follow-links.
phasor::LoadOptions load_options(const CommonOptions& options);
/// How a model is run: --threads, --precision and --kernels.
phasor::EncoderOptions encoder_options(const CommonOptions& options);
/// How the texts of read_texts(), after --prefix, are tokenized.
phasor::TokenizeOptions tokenize_options(const CommonOptions& options, int64_t max_tokens = 0);
/// --html: where the page is written.
void add_html(CommandLine& line, std::string& file);

/// --only for `what` ("views"), repeatable or with commas.
void add_only(CommandLine& line, std::string_view what, std::vector<std::string>& only);
template <typename Row>
std::vector<std::string_view> names_of(std::span<const Row> rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

/// Which of `names` are shown, by index, ascending: those in `only`; all that can be, where it is
/// empty or says "all".
/// `why_not(i)` says what names[i] lacks, and nothing where it lacks nothing. Throws UsageError for
/// a name that there is not, and for one that cannot be shown.
std::vector<size_t> picked(const std::vector<std::string>& only,
                           std::span<const std::string_view> names,
                           const std::function<std::string(size_t)>& why_not);

/// float32 where none was asked for.
phasor::Precision precision_of(const CommonOptions& options);
/// What other precisions would give on this machine, for people who wait for a long run; empty
/// where one was asked for, or where nothing was measured.
std::string faster_note(const CommonOptions& options);
/// Says why a precision that was asked for is slow on this machine, where it is.
void note_slow(phasor::Precision precision);

/// Says that a lone text is the name of a file, where it is, and `how` to read the file instead.
void note_file_as_text(const std::vector<std::string>& texts, const std::string& how,
                       const CommonOptions& options);

/// Whether a word is a bundled model's name or the folder of a model.
bool names_model(const std::string& word);
/// Says which texts are that, too.
void note_models_as_texts(const std::vector<std::string>& texts, const CommonOptions& options);

/// A sentence for people about a text that was not all UTF-8.
std::string invalid_bytes_note(int64_t invalid_bytes);

/// The words, with each "-" replaced by the lines of stdin, and `prefix` before each text. Throws
/// InvalidArgument where stdin has no line.
std::vector<std::string> read_texts(const std::vector<std::string>& words,
                                    const std::string& prefix = {});

/// Whether it has nothing but ASCII's white space.
bool is_blank(std::string_view text);

/// The lines of a text file that are not blank; "-" is stdin. Throws InvalidArgument naming the
/// file where it cannot be read or holds no text.
std::vector<std::string> read_lines(const std::string& file);

/// What Positions::named() takes, with a mask: causal, none or own; empty stands for "own". Throws
/// UsageError.
phasor::Positions parse_positions(const std::string& name, const phasor::PositionConfig& own,
                                  const std::string& mask = {});

}  // namespace infer
