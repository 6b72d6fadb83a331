// infer classify: what a classification head says of each text.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/classify/classifier.h"
#include "infer/matrix.h"

namespace infer {
namespace {

constexpr const char* kClassifyFooter =
    R"(One line for each text: its most likely labels with their probabilities, and the
text. docs/command-line.md#ranking-and-classifying says how these are made.

Examples:
  infer classify -m distilbert-base-uncased-finetuned-sst-2-english "What a day."
  infer classify -m nli-model --pair "A dog was bitten." "Tom bit a dog."
  infer classify -m toxic-bert --json -i comments.txt)";

}  // namespace

int classify(CommandLine& line) {
  TextArguments arguments;
  std::optional<int64_t> top;
  std::optional<std::string> pair;
  line.footer(kClassifyFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  line.option("--pair", "TEXT", "make a pair of every text and this one, which comes second", pair);
  line.option("--top", "N", "show the N most likely labels (default: 1, with --json all)", top,
              Range{1, kMostShown});
  add_options(line, arguments, "a checkpoint's folder, with a classification head",
              phasor::kUseClassify);
  if (const auto done = line.parse()) return *done;
  LineReader lines = lines_of("classify", "a classifier", phasor::kUseClassify, arguments);
  Output output;
  const Classifier classifier(arguments);
  const std::vector<std::string>& labels = classifier.head.labels;
  const bool json = arguments.common.json;
  const int64_t shown = top.value_or(json ? kMostShown : 1);
  const auto run = [&](auto texts, const phasor::TextOptions& how) {
    if (!pair) return classifier.encoder.classify(texts, how);
    const std::vector<std::string_view> second(texts.size(), *pair);
    return classifier.encoder.classify(texts, second, how);
  };
  const auto write = [&](std::span<const Line> window, const phasor::Classification& result) {
    for (int64_t i = 0; i < result.size() && !output.closed(); ++i) {
      const phasor::Classification::Row row = result[i];
      std::vector<size_t> order = best_first(row.logits);
      order.resize(std::min<size_t>(order.size(), shown));
      const std::string& text = window[i].text;
      if (json) {
        JsonWriter object;
        object.object([&] {
          object.member("line", window[i].number, "text", text);
          object.key("labels").array(order, [&](size_t l) {
            object.object("label", labels[l], "probability", row.probabilities[l], "logit",
                          row.logits[l]);
          });
        });
        output.write(object.take() + "\n");
        continue;
      }
      std::string list;
      for (const size_t l : order) {
        list += fmt::format("{}{:.3f} {}", list.empty() ? "" : ", ", row.probabilities[l],
                            printable(labels[l]));
      }
      output.write(output.labelled(list + "  ", text));
    }
    return !output.closed();
  };
  const int64_t line_bytes = 2 * std::ssize(labels) * int64_t{sizeof(float)};
  return run_lines(arguments, lines, false, line_bytes, run, write,
                   [&] { return classifier.summary(); });
}

}  // namespace infer
