#include "infer/commands/text_lines.h"

#include <fmt/format.h>
#include <unistd.h>

#include "infer/cli/terminal.h"
#include "phasor/model.h"

namespace infer {

LineReader lines_of(const TextArguments& given) {
  const bool reads = given.words.empty() || given.words == std::vector<std::string>{"-"};
  if (!reads) return LineReader(read_texts(given.words));
  return LineReader(given.input.value_or("-"), given.common.quiet);
}

void tell(const TextArguments& given, const phasor::Model& model, bool has_prompt) {
  if (given.common.quiet) return;
  note_slow(precision_of(given.common));
  const std::string prompt = has_prompt ? prompt_of(given.how, model.text()) : "";
  if (!prompt.empty() && !given.how.prompt) {
    report_note(
        fmt::format("before every text: \"{}\" (config_sentence_transformers.json)", prompt));
  }
  for (const std::string& note : model.notes()) report_note(note);
}

int end_of(const LineStream& stream, const TextArguments& given, const std::string& each) {
  if (given.common.quiet) return 0;
  report_note(stream.summary(each));
  constexpr double kLongRun = 10;  // seconds, after which a choice of precision pays
  const bool is_long = stream.seconds() > kLongRun && isatty(STDERR_FILENO) != 0;
  const std::string faster = is_long ? faster_note(given.common) : "";
  if (!faster.empty()) report_note(faster);
  return 0;
}

}  // namespace infer
