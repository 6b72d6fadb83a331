// The options of commands that read texts, and their table in the documentation.
#include <fmt/ranges.h>

#include "infer/cli/line_stream.h"
#include "tests/support/run_program.h"

namespace infer {
namespace {

using phasor::Field;
using phasor::FieldType;

TEST(FieldOptionsTest, TheDocumentationHasTheirTable) {
  std::string table = "| option | of | |\n|---|---|---|\n";
  for (const Field& field : phasor::fields()) {
    if (field.type == FieldType::kOther) continue;
    std::string option = option_of(field);
    if (field.type == FieldType::kSwitch) option += ",--no-" + option.substr(2);
    if (const size_t comma = option.find(','); comma != option.npos)
      option.replace(comma, 1, "`, `");
    table += fmt::format("| `{}` | `{}` | {} |\n", option, fmt::join(commands_of(field), "`, `"),
                         help_of(field));
  }
  const std::string page = phasor::read_text_file(PHASOR_SOURCE_DIR "/docs/command-line.md");
  EXPECT_TRUE(page.find("\n" + table + "\n") != page.npos) << "it is:\n" << table;
}

TEST(FieldOptionsTest, AnEmptyValueIsWrittenInTwoWays) {
  for (const bool joined : {false, true}) {
    phasor::TextOptions options;
    std::vector<std::string> texts;
    std::vector<std::string> words = {joined ? "--prompt=" : "--prompt", "Tom", "--", "--a="};
    if (!joined) words.insert(words.begin() + 1, "");
    CommandLine line("infer", "", words);
    line.words("TEXT", "", texts);
    add_fields(line, phasor::kUseEmbed, options);
    EXPECT_FALSE(line.parse());
    EXPECT_EQ(options.prompt, "");
    EXPECT_EQ(texts, (std::vector<std::string>{"Tom", "--a="}));
  }
}

}  // namespace
}  // namespace infer
