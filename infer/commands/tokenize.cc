// infer tokenize TEXT…: the pieces and ids that a tokenizer makes of a text.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <utility>

#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "phasor/model.h"
#include "phasor/tokenizer.h"

namespace infer {
namespace {

constexpr const char* kTokenizeFooter = R"(Examples:
  infer tokenize "Tom bit a dog."
  infer tokenize --special --offsets "Tom [MASK] a dog."
  infer tokenize -m bert-base-uncased --pair "It rains." "Tom bit a dog."
  cat sentences.txt | infer tokenize --json)";

/// One line. Written piece by piece: a value of JSON takes several times the memory of the tokens.
std::string to_json(const std::string& text, const phasor::Tokens& tokens,
                    const std::optional<std::string>& pair) {
  JsonWriter json;
  json.object([&] {
    json.member("text", text, "ids", tokens.ids, "pieces", tokens.pieces);
    if (!tokens.offsets.empty()) {
      json.key("offsets").array([&] {
        for (const auto& [begin, end] : tokens.offsets) json.value(std::array{begin, end});
      });
    }
    if (!pair) return;
    json.member("text_pair", *pair, "token_types", tokens.token_types);
  });
  return json.take() + "\n";
}

std::vector<TokenRow> to_rows(const phasor::Tokens& tokens, bool pair) {
  std::vector<TokenRow> rows = {{"token", {}}, {"id", {}}};
  if (pair) rows.push_back({"type", {}});
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    rows[0].cells.push_back(printable(tokens.pieces[i]));
    rows[1].cells.push_back(std::to_string(tokens.ids[i]));
    if (pair) rows[2].cells.push_back(std::to_string(tokens.token_types[i]));
  }
  if (!tokens.offsets.empty()) rows.emplace_back().label = "characters";
  for (const auto& [begin, end] : tokens.offsets)
    rows.back().cells.push_back(end > 0 ? fmt::format("{}\u2013{}", begin, end) : "");
  return rows;
}

}  // namespace

int tokenize(CommandLine& line) {
  CommonOptions common;
  std::optional<std::string> pair;
  std::vector<std::string> texts;
  bool offsets = false;
  line.footer(kTokenizeFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input (default)", texts);
  add_common(line, kLoad | kPrefix | kSpecial | kPrint, common);
  line.option("--pair", "TEXT", "make a pair of every text and this one, which comes second", pair);
  line.flag("--offsets", "where each token stands: from which character to before which", offsets);
  if (const auto done = line.parse()) return *done;
  if (texts.empty()) {
    if (isatty(STDIN_FILENO) != 0) throw UsageError("tokenize: no text was given");
    texts.emplace_back("-");
  }
  note_file_as_text(texts, "infer tokenize - <", common);

  const auto tokenizer =
      phasor::Tokenizer::load(phasor::find_model(common.model), load_options(common));
  if (!common.quiet) {
    for (const std::string& note : tokenizer->notes()) report_note(note);
  }
  Output output;
  bool first = true;
  for (const std::string& text : read_texts(texts, common.prefix)) {
    phasor::TokenizeOptions options = tokenize_options(common);
    if (offsets) options.offset_unit = phasor::OffsetUnit::kCharacters;
    phasor::Tokens tokens =
        pair ? tokenizer->encode_pair(text, *pair, options) : tokenizer->encode(text, options);
    if (tokens.invalid_bytes > 0 && !common.quiet)
      report_note(invalid_bytes_note(tokens.invalid_bytes));
    if (!common.json && !std::exchange(first, false)) output.write("\n");
    if (pair) tokens.token_types.resize(tokens.ids.size());  // zeros if there are none
    common.json ? output.write(to_json(text, tokens, pair))
                : output.show(output.heading(printable(text)) + "\n" +
                              token_table(to_rows(tokens, pair.has_value()), output.width()));
    if (output.closed()) break;
  }
  return 0;
}

}  // namespace infer
