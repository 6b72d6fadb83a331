// infer embed: one line in, one vector out, in order, for as many lines as there are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/embed/embedder.h"
#include "phasor/fields.h"

namespace infer {
namespace {

constexpr const char* kEmbedFooter =
    R"(The model's files say how its vectors are made: docs/command-line.md#sentence-vectors.

Examples:
  infer embed "Tom bit a dog."
  infer embed -i sentences.txt -o vectors.npy
  infer embed -i sentences.txt --nearest 3 "Who bit whom?"
  infer embed --similarity "Tom bit a dog." "A dog bit Tom." "It rains.")";

std::optional<int> parse_arguments(CommandLine& line, EmbedArguments& arguments) {
  bool sparse = false, tokens = false, query = false;
  line.footer(kEmbedFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  add_common(line, kLoad, arguments.common);
  line.option("-i,--input", "FILE", "the file of the lines (default: -, standard input)",
              arguments.input);
  line.option("-o,--output", "OUT",
              "write .npy, .safetensors or .jsonl (default: -, JSON lines on stdout)",
              arguments.output);
  line.flag("--similarity", "print how similar the texts are to each other instead",
            arguments.similarity);
  line.option("--nearest", "N",
              "print the N lines of -i FILE that are nearest to each TEXT instead",
              arguments.nearest, Range{1, 1000});
  line.option("--query-prefix", "TEXT",
              "put before every TEXT of --nearest, in place of the model's prompt",
              arguments.query_prefix);
  line.flag("--sparse", "--kinds sparse: weights of pieces of the vocabulary (SPLADE, bge-m3)",
            sparse);
  line.flag("--tokens", "--kinds tokens: a vector of each token (ColBERT, bge-m3)", tokens);
  line.flag("--query", "", query);
  add_fields(line, phasor::kUseEmbed, arguments.how);
  line.flag("--strict", "stop at a line that is cut or not plain UTF-8", arguments.strict);
  add_common(line, kRun, arguments.common);
  if (const auto done = line.parse()) return *done;
  phasor::TextOptions& how = arguments.how;
  using enum phasor::VectorKind;
  if ((sparse || tokens) && !how.kinds.empty())
    throw UsageError("--kinds says what --sparse and --tokens say; leave these out");
  if (sparse && tokens) how.kinds.push_back(kDense);
  if (sparse) how.kinds.push_back(kSparse);
  if (tokens) how.kinds.push_back(kTokens);
  if (query && how.role == phasor::TextRole::kDocument)
    throw UsageError("--query and --role document exclude each other; give one");
  if (query) how.role = phasor::TextRole::kQuery;
  const uint32_t uses = phasor::uses_of(how);
  if ((phasor::field("offset_unit").uses & uses) != 0 && !how.offset_unit)
    how.offset_unit = phasor::OffsetUnit::kCharacters;
  check_options(how, uses,
                how.kinds.empty() ? "infer embed" : "--kinds " + phasor::field("kinds").text(how));
  if (arguments.output == "-") arguments.output.clear();  // where JSON lines go by default
  return std::nullopt;
}

/// Throws UsageError for a file of -o that cannot be what is asked for, or must not be replaced.
void check_output(const EmbedArguments& given) {
  const std::string extension = std::filesystem::path(given.output).extension().string();
  const bool is_npy = extension == ".npy", is_lines = extension == ".jsonl";
  if (!is_npy && !is_lines && extension != ".safetensors") {
    throw UsageError(
        fmt::format("-o: {} ends in none of .npy, .jsonl and .safetensors; these are the formats "
                    "that infer embed writes",
                    given.output));
  }
  if (is_npy && phasor::uses_of(given.how) != phasor::kUseDense)
    throw UsageError("-o: .npy has one vector of each text; write .safetensors or .jsonl");
  if (given.common.json && !is_lines) {
    throw UsageError(
        "--json prints, and -o writes OUT in the format that its name says: leave out --json, or "
        "name OUT .jsonl");
  }
  for (const char* end : {"", ".infer-tmp"}) {  // what is written must not be the input
    const std::string file = given.output + end;
    std::error_code ignored;
    if (std::filesystem::equivalent(given.input.value_or("-"), file, ignored))
      throw UsageError(fmt::format("-o: {} is the input; choose another name", file));
  }
  refuse_to_replace("-o", given.output);
}

/// A vector of each text or line. All but files of several tensors are written line by line.
int embed_each(EmbedArguments& given) {
  note_file_as_text(given.words, "-i", given.common);
  const std::string& file = given.output;
  if (!file.empty()) check_output(given);
  LineReader lines = lines_of(given);
  const Embedder embedder(given);
  Output output;
  std::optional<TemporaryFile> text;
  std::optional<MatrixFile> matrix;
  Columns columns;
  const bool is_text = file.empty() || file.ends_with(".jsonl");
  if (is_text && !file.empty()) {
    text.emplace("-o", file);
  } else if (!is_text && phasor::uses_of(given.how) == phasor::kUseDense) {
    matrix.emplace("-o", file, embedder.encoder.embedding_width(given.how), embedder.metadata());
  }
  VectorCounts counts;
  const auto write = [&](std::span<const Line> window, const phasor::Vectors& vectors) {
    counts.add(vectors);
    if (matrix) matrix->append(vectors.dense);
    if (!matrix && !is_text) columns.add(vectors.arrays(), 0, vectors.size());
    for (int64_t i = 0; is_text && i < vectors.size() && !output.closed(); ++i) {
      const std::string json = embedder.json_of(vectors, i, window[i].number);
      text ? text->write(json) : output.write(json);
    }
    return !output.closed();
  };
  return embedder.run(lines, !file.empty(), write, [&] {
    if (text) text->commit();
    if (matrix) matrix->commit();
    if (!matrix && !is_text) embedder.save_vectors(columns);
    return embedder.summary(counts);
  });
}

/// What infer embed does: what it takes besides options that all take, and what is said of others.
struct Mode {
  std::string_view name;
  std::vector<std::string_view> takes;
  std::string_view what;
  int (*run)(EmbedArguments& given);
};

constexpr const char* kKinds = "--kinds, --sparse and --tokens";
constexpr const char* kRole = "--role and --query";

/// Throws UsageError for what the mode that was chosen does not take.
Mode mode_of(const EmbedArguments& given) {
  constexpr const char* kEach =
      "only --nearest N takes --query-prefix, and texts together with -i FILE";
  const Mode mode =
      given.nearest > 0
          ? Mode{"--nearest",
                 {"texts", "-i", "--query-prefix"},
                 "it prints the lines of -i FILE (documents) that are nearest to the "
                 "texts (queries), by one vector of each; infer rank compares vectors of tokens",
                 nearest}
      : given.similarity
          ? Mode{"--similarity",
                 {"texts", "--similarity", kRole},
                 "it prints a table of the texts, by one vector of each; to search a file, "
                 "write: infer embed -i FILE --nearest 3 \"a text\"",
                 similarities}
      : given.words.empty() ? Mode{"embed", {"-i", "-o", kKinds, kRole}, kEach, embed_each}
                            : Mode{"embed TEXT", {"texts", "-o", kKinds, kRole}, kEach, embed_each};
  const std::pair<std::string_view, bool> all[] = {
      {"texts", !given.words.empty()},
      {"-i", given.input.has_value()},
      {"-o", !given.output.empty()},
      {kKinds, phasor::uses_of(given.how) != phasor::kUseDense},
      {kRole, given.how.role != phasor::TextRole::kAny},
      {"--query-prefix", given.query_prefix.has_value()},
      {"--similarity", given.similarity}};
  for (const auto& [name, is_given] : all) {
    const bool is_taken = std::ranges::count(mode.takes, name) > 0;
    const bool lacks = name == "texts" && is_taken && !is_given;
    if (lacks || (is_given && !is_taken))
      throw UsageError(
          fmt::format("{}: {} {}; {}", mode.name, lacks ? "give" : "leave out", name, mode.what));
  }
  return mode;
}

}  // namespace

int embed(CommandLine& line) {
  EmbedArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  return mode_of(arguments).run(arguments);
}

}  // namespace infer
