// infer tokenize TEXT…: the pieces and ids that a tokenizer makes of a text.
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "infer/cli/input.h"
#include "infer/cli/options.h"
#include "infer/commands.h"
#include "infer/render/observed_json.h"
#include "infer/render/terminal.h"
#include "phasor/model.h"
#include "phasor/tokenizer.h"

namespace infer {
namespace {

constexpr const char* kTokenizeFooter = R"(Examples:
  infer tokenize "Tom bit a dog."
  infer tokenize --special "Tom [MASK] a dog."
  infer tokenize -m bert-base-uncased --pair "It rains." "Tom bit a dog."
  infer tokenize -m nllb-200-distilled-600M --lang eng_Latn "Tom bit a dog."
  cat sentences.txt | infer tokenize --json)";

}  // namespace

int tokenize(int argc, char** argv) {
  CommonOptions common;
  std::optional<std::string> pair;
  std::vector<std::string> texts;
  CommandLine line("infer tokenize", "Prints the pieces and ids of each TEXT.", kTokenizeFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input (default)", texts);
  add_model(line, common);
  add_language(line, common);
  add_prefix(line, common);
  line.option("--pair", "TEXT", "make a pair of every text and this one, which comes second", pair);
  add_special(line, common);
  add_json_and_quiet(line, common);
  if (const auto done = line.parse(argc, argv)) return *done;
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
    const phasor::TokenizeOptions options = tokenize_options(common);
    phasor::Tokens tokens =
        pair ? tokenizer->encode_pair(text, *pair, options) : tokenizer->encode(text, options);
    if (tokens.invalid_bytes > 0 && !common.quiet) {
      report_note(invalid_bytes_note(tokens.invalid_bytes));
    }
    if (!common.json && !std::exchange(first, false)) output.write("\n");
    nlohmann::ordered_json json = {{"text", text}, {"ids", tokens.ids}, {"pieces", tokens.pieces}};
    TokenRow token{"token", {}}, id{"id", {}}, type{"type", {}};
    for (const std::string& piece : tokens.pieces) token.cells.push_back(printable(piece));
    for (const int32_t i : tokens.ids) id.cells.push_back(fmt::format("{}", i));
    std::vector<TokenRow> rows = {token, id};
    if (pair) {
      tokens.token_types.resize(tokens.ids.size());  // zeros if there are none
      for (const int32_t t : tokens.token_types) type.cells.push_back(fmt::format("{}", t));
      rows.push_back(type);
      json["text_pair"] = *pair;
      json["token_types"] = tokens.token_types;
    }
    common.json
        ? output.write(one_line(json) + "\n")
        : output.show(output.heading(printable(text)) + "\n" + token_table(rows, output.width()));
    if (output.closed()) break;
  }
  return 0;
}

}  // namespace infer
