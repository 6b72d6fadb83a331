// infer embed: one line in, one vector out, in order, for as many lines as there are.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "infer/cli/field_options.h"
#include "infer/cli/save.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/embed/nearest.h"
#include "phasor/fields.h"

namespace infer {
namespace {

constexpr const char* kEmbedDescription =
    "Makes one vector of each TEXT, or of each line of a file, in order.";

constexpr const char* kEmbedFooter =
    R"(How vectors are made is read from sentence-transformers' files beside the model; without
them it is the mean over tokens, not normalised. --prefix "" leaves out a prompt that the
model's files ask for. Lines that were cut or are not all UTF-8 are counted, and the first
five reported by number.

A text has room for as many tokens as those files say, or else as the model was trained on.
A longer text is treated as --overflow says:
  truncate     it is cut to that length (the default)
  error        the run stops at that line
  window       all of it is run, in windows of that length that overlap by half; where they
               overlap, their states are averaged
  clamp        all of it is run; tokens past the end of the position table take its last row
  interpolate  all of it is run; its positions are squeezed into the position table
Positions without a table (sinusoidal, rotary, other relative ones, none) need neither clamp
nor interpolate: the text is run as it is.

OUT appears when it is complete. A .safetensors file says which model made it, with which pooling
and precision, in its metadata; .npy and .jsonl say nothing.

--nearest prints, for each TEXT, the N lines of FILE that are most similar: whose cosine is
largest, or the dot product, or minus the Euclidean or Manhattan distance, if the model's
files name that as similarity_fn_name. The prompts that they name "query" and "document" (or
"passage") are used. Saved vectors are searched in a few lines of Python, or in an index:
docs/python.md.

--sparse prints the pieces of the vocabulary that have a weight, the largest first; with -o
FILE.safetensors it writes the matrix of all lines as sparse_offsets, sparse_indices and
sparse_values (CSR). The model's files say how weights are made: a SpladePooling, or bge-m3's
sparse_linear.pt.
--tokens prints the vector of each token, and its place in the text in characters; with -o it
writes the vectors of all lines as token_vectors [N, E], token_offsets (line i has the rows
token_offsets[i] to token_offsets[i + 1] - 1), token_ids and token_spans. Queries (--query) and
documents are compared by MaxSim, as infer rank does.
--sparse and --tokens together print both and one vector of the text, from one run (bge-m3).

Examples:
  infer embed "Tom bit a dog."
  infer embed -i sentences.txt -o vectors.npy
  infer embed -i sentences.txt --nearest 3 "Who bit whom?"
  infer embed --similarity "Tom bit a dog." "A dog bit Tom." "It rains.")";

/// What --sparse and --tokens say; both: also one vector of the text.
void take_kinds(bool sparse, bool tokens, phasor::TextOptions& how) {
  using enum phasor::VectorKind;
  if (!sparse && !tokens) return;
  if (!how.kinds.empty())
    throw UsageError("--kinds says what --sparse and --tokens say; leave these out");
  if (sparse && tokens) how.kinds.push_back(kDense);
  if (sparse) how.kinds.push_back(kSparse);
  if (tokens) how.kinds.push_back(kTokens);
}

/// The exit code where the arguments say all there is to do.
std::optional<int> parse_arguments(int argc, char** argv, EmbedArguments& arguments) {
  CommandLine line("infer embed", kEmbedDescription, kEmbedFooter);
  bool sparse = false, tokens = false, query = false;
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  add_model(line, arguments.common);
  line.option("-i,--input", "FILE",
              "the file whose lines are embedded (default: -, standard input)", arguments.input);
  line.option("-o,--output", "OUT",
              "write to .npy, .safetensors or .jsonl (default: -, JSON lines on standard output)",
              arguments.output);
  add_language(line, arguments.common);
  add_fields(line, phasor::kUseEmbed, arguments.how);
  line.flag("--strict", "stop at a line that is cut or not plain UTF-8", arguments.strict);
  line.flag("--similarity", "print how similar the texts are to each other instead",
            arguments.similarity);
  line.flag("--sparse",
            "--kinds sparse: a weight for each piece of the vocabulary, of which few are not 0 "
            "(SPLADE, bge-m3)",
            sparse);
  line.flag("--tokens",
            "--kinds tokens: a vector of each token, for late interaction (ColBERT, bge-m3); with "
            "--sparse: --kinds dense,sparse,tokens (bge-m3)",
            tokens);
  line.flag("--query", "--role query", query);
  line.option("--nearest", "N",
              "print the N lines of -i FILE that are nearest to each TEXT instead",
              arguments.nearest, Range{1, 1000});
  line.option("--query-prefix", "TEXT",
              "put before every TEXT of --nearest (default: the model's prompt for queries, or "
              "else what is put before the lines)",
              arguments.query_prefix);
  add_run(line, arguments.common);
  if (const auto done = line.parse(argc, argv)) return *done;
  phasor::TextOptions& how = arguments.how;
  take_kinds(sparse, tokens, how);
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
  for (const char* extension : {"", ".infer-tmp"}) {  // what is written must not be the input
    const std::string file = given.output + extension;
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
    matrix.emplace("-o", file, "dense", embedder.encoder.embedding_width(given.how),
                   embedder.metadata());
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
      "only --nearest N takes texts and the lines of -i FILE, and --query-prefix";
  const Mode mode =
      given.nearest > 0 ? Mode{"--nearest",
                               {"texts", "-i", "--query-prefix"},
                               "it prints the lines of -i FILE (documents) that are nearest to the "
                               "texts (queries), by "
                               "one vector of each",
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
    if (lacks || (is_given && !is_taken)) {
      throw UsageError(
          fmt::format("{}: {} {}; {}", mode.name, lacks ? "give" : "leave out", name, mode.what));
    }
  }
  return mode;
}

}  // namespace

int embed(int argc, char** argv) {
  EmbedArguments arguments;
  if (const auto done = parse_arguments(argc, argv, arguments)) return *done;
  return mode_of(arguments).run(arguments);
}

}  // namespace infer
