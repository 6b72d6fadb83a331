// infer label: what a head says of the parts of each text, such as names.
#include <fmt/format.h>

#include <algorithm>

#include "files/utf8.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/classify/classifier.h"

namespace infer {
namespace {

constexpr const char* kLabelFooter =
    R"(The model is a token classifier, of names, personal data or parts of speech. In the
line of a text [Tom Sawyer PER] is a span and its label; --json lists the spans.
docs/command-line.md#ranking-and-classifying says what --aggregation does.

Examples:
  infer label -m bert-base-NER "Tom Sawyer lives in St. Petersburg."
  infer label -m bert-base-NER --redact -i letters.txt
  infer label -m bert-base-NER --json -i letters.txt)";

using Spans = std::vector<phasor::LabelledSpan>;

/// `text` with [LABEL], or [SPAN LABEL], in the place of each span, whose spaces stay.
std::string marked(std::string_view text, const Spans& spans, bool redact, const Output& output) {
  std::string result;
  size_t done = 0;
  for (const phasor::LabelledSpan& each : spans) {
    const auto end = static_cast<size_t>(each.span.end);
    size_t begin = std::max(done, static_cast<size_t>(each.span.begin));
    while (begin < end && text[begin] == ' ') ++begin;
    if (begin >= end) continue;  // nothing, or what another token of the character was
    result += printable(text.substr(done, begin - done));
    const std::string span = printable(text.substr(begin, end - begin));
    const std::string name = printable(each.label);
    result +=
        redact ? fmt::format("[{}]", name) : output.tinted(fmt::format("[{} {}]", span, name));
    done = end;
  }
  return result + printable(text.substr(done));
}

/// `shown` stands in the text's place.
std::string to_json(int64_t line, std::string_view shown, std::string_view text, const Spans& spans,
                    phasor::OffsetUnit unit, bool redact) {
  const phasor::internal::CharacterPlaces characters(text);
  const auto place = [&](int64_t byte) {
    return unit == phasor::OffsetUnit::kCharacters ? characters(byte) : byte;
  };
  JsonWriter json;
  json.object([&] {
    json.member("line", line, "text", shown);
    json.key("labels").array(spans, [&](const phasor::LabelledSpan& one) {
      json.object([&] {
        json.member("label", one.label, "probability", one.score);
        if (!redact)
          json.member("word", text.substr(one.span.begin, one.span.end - one.span.begin));
        if (unit != phasor::OffsetUnit::kNone)
          json.member("start", place(one.span.begin), "end", place(one.span.end));
      });
    });
  });
  return json.take() + "\n";
}

}  // namespace

int label(CommandLine& line) {
  TextArguments arguments;
  bool redact = false;
  line.footer(kLabelFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  line.flag("--redact", "write each text with [LABEL] in the place of its spans", redact);
  add_options(line, arguments, "a checkpoint's folder, with a head that labels tokens",
              phasor::kUseLabel);
  if (const auto done = line.parse()) return *done;
  const phasor::OffsetUnit unit =
      arguments.how.offset_unit.value_or(phasor::OffsetUnit::kCharacters);
  arguments.how.offset_unit = phasor::OffsetUnit::kBytes;  // to cut the text
  LineReader lines = lines_of("label", "a token classifier", phasor::kUseLabel, arguments);
  Output output;
  const Classifier classifier(arguments, true);
  const bool json = arguments.common.json;
  const auto run = [&](auto texts, const auto& how) {
    return classifier.encoder.label(texts, how);
  };
  const auto write = [&](std::span<const Line> window, const phasor::Labels& result) {
    for (size_t i = 0; i < window.size() && !output.closed(); ++i) {
      const std::string& text = window[i].text;
      const Spans spans = result[static_cast<int64_t>(i)];
      const std::string shown = json && !redact ? text : marked(text, spans, redact, output);
      output.write(json ? to_json(window[i].number, shown, text, spans, unit, redact)
                        : shown + "\n");
    }
    return !output.closed();
  };
  return run_lines(arguments, lines, false, 1024, run, write, [&] { return classifier.summary(); });
}

}  // namespace infer
