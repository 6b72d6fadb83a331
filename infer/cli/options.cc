#include "infer/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "files/spelling.h"
#include "infer/cli/line_reader.h"
#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Those of a file, in which there must be one.
std::vector<std::string> all_lines(const std::string& file, bool with_blank) {
  LineReader reader(file, false);
  std::vector<std::string> lines;
  while (std::optional<Line> line = reader.next()) {
    if (line->left_out > 0 || line->oddity != nullptr) {
      throw phasor::InvalidArgument(
          fmt::format("{}: line {}{}", reader.name(), line->number,
                      line->left_out > 0 ? fmt::format(" has more than {} bytes", kMaxLineBytes)
                                         : fmt::format(": {}", line->oddity)));
    }
    if (with_blank || !is_blank(line->text)) lines.push_back(std::move(line->text));
  }
  if (lines.empty()) reader.refuse_empty();
  return lines;
}

constexpr std::string_view kBundled[] = {"sinusoidal", "learned",  "none",
                                         "rotary",     "relative", "alibi"};

}  // namespace

void add_common(CommandLine& line, uint32_t which, CommonOptions& options) {
  if ((which & kModel) != 0)
    line.option("-m,--model", "DIR|NAME",
                fmt::format("a folder, OWNER/MODEL in the hub's cache, or a bundled model: {} "
                            "(default), {}",
                            kBundled[0], fmt::join(std::span(kBundled).subspan(1), ", ")),
                options.model);
  if ((which & kLinks) != 0) line.flag("--follow-links", "", options.follow_links);
  if ((which & kLanguage) != 0) line.option("--lang", "CODE", "", options.language);
  if ((which & kPrefix) != 0)
    line.option("--prefix", "TEXT", "put before every text, like \"query: \"", options.prefix);
  if ((which & kSpecial) != 0) line.flag("--special", "", options.special);
  if ((which & kThreads) != 0)
    line.option("-t,--threads", "N", "worker threads (default, and 0: all available cores)",
                options.threads, Range{0, 1024});
  if ((which & kPrecision) != 0)
    line.option("--precision", "P",
                "f32 (default), bf16, int8, or auto (the fastest on this machine)",
                options.precision);
  if ((which & kKernels) != 0) line.option("--kernels", "K", "", options.kernels);
  if ((which & kPrint) != 0) {
    line.flag("--json", "print JSON, one object a line", options.json);
    line.flag("-q,--quiet", "print nothing but results and errors", options.quiet);
  }
}

phasor::LoadOptions load_options(const CommonOptions& options) {
  return {.language = options.language, .follow_links = options.follow_links};
}

phasor::EncoderOptions encoder_options(const CommonOptions& options) {
  return {
      .threads = options.threads, .precision = precision_of(options), .kernels = options.kernels};
}

phasor::TokenizeOptions tokenize_options(const CommonOptions& options, int64_t max_tokens) {
  return {.parse_special = options.special,
          .max_tokens = max_tokens,
          .prompt_bytes = std::ssize(options.prefix)};
}

void add_html(CommandLine& line, std::string& file) {
  line.option("--html", "FILE", "write a page of figures for a browser; it needs no network",
              [&file](const std::string& name) {
                if (name == "-") {
                  throw UsageError("--html: '-' is no file; write a name like page.html");
                }
                file = name;
              });
}

void add_only(CommandLine& line, std::string_view what, std::vector<std::string>& only) {
  line.list("--only", "NAMES", fmt::format("show only these {}, or all; with commas", what), only,
            Values::kCommas);
}

std::vector<size_t> picked(const std::vector<std::string>& only,
                           std::span<const std::string_view> names,
                           const std::function<std::string(size_t)>& why_not) {
  for (const std::string& name : only) {
    if (name == "all" || std::ranges::find(names, name) != names.end()) continue;
    throw UsageError(fmt::format("--only: '{}' is none of all, {}{}", name, fmt::join(names, ", "),
                                 phasor::internal::did_you_mean(name, names)));
  }
  const bool all = only.empty() || std::ranges::find(only, "all") != only.end();
  std::vector<size_t> indices;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool named = std::ranges::find(only, names[i]) != only.end();
    const std::string why = why_not(i);
    if (named && !why.empty()) throw UsageError(fmt::format("--only {}: {}", names[i], why));
    if (named || (all && why.empty())) indices.push_back(i);
  }
  return indices;
}

void note_file_as_text(const std::vector<std::string>& texts, const std::string& how,
                       const CommonOptions& options) {
  std::error_code ignored;
  if (options.quiet || texts.size() != 1) return;
  if (!std::filesystem::is_regular_file(texts[0], ignored)) return;
  report_note(fmt::format("'{0}' is a file; {1} {0} reads its lines", texts[0], how));
}

bool names_model(const std::string& word) {
  std::error_code ignored;
  if (word.empty()) return false;
  return std::ranges::find(kBundled, word) != std::end(kBundled) ||
         std::filesystem::is_regular_file(std::filesystem::path(word) / "config.json", ignored);
}

void note_models_as_texts(const std::vector<std::string>& texts, const CommonOptions& options) {
  if (options.quiet) return;
  const auto model = std::ranges::find_if(texts, names_model);
  if (model == texts.end()) return;
  report_note(fmt::format(
      "'{}' is also a model's name, and was run as a text; -m NAME chooses a model, and infer "
      "compare A B takes two",
      *model));
}

phasor::Precision precision_of(const CommonOptions& options) {
  return options.precision.value_or(phasor::Precision::kFloat32);
}

std::string faster_note(const CommonOptions& options) {
  const std::string faster = phasor::faster_than_float32();
  const bool measured = options.kernels != phasor::KernelLibrary::kOneDnn;
  if (options.precision || !measured || faster.empty()) return {};
  return fmt::format(
      "--precision is f32 by default; {}; docs/performance.md says how to measure your model",
      faster);
}

void note_slow(phasor::Precision precision) {
  const std::string why = phasor::why_slow(precision);
  if (!why.empty()) report_note(why);
}

std::string invalid_bytes_note(int64_t invalid_bytes) {
  return invalid_bytes == 1
             ? "1 byte was not UTF-8 and was read as U+FFFD"
             : fmt::format("{} bytes were not UTF-8 and were read as U+FFFD", invalid_bytes);
}

std::vector<std::string> read_texts(const std::vector<std::string>& words,
                                    const std::string& prefix) {
  std::vector<std::string> texts;
  for (const std::string& word : words) {
    const bool reads = word == "-";
    for (const std::string& text : reads ? all_lines(word, true) : std::vector{word}) {
      texts.push_back(prefix + text);
    }
  }
  return texts;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\v\f\n") == text.npos; }

std::vector<std::string> read_lines(const std::string& file) { return all_lines(file, false); }

phasor::Positions parse_positions(const std::string& name, const phasor::PositionConfig& own,
                                  const std::string& mask) {
  const auto positions =
      of_option("--positions", [&] { return phasor::Positions::named(name, own); });
  return mask.empty() ? positions
                      : of_option("--mask", [&] { return positions.edited("mask=" + mask); });
}

}  // namespace infer
