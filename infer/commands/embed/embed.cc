// infer embed: one line in, one vector out, in order, for as many lines as there are.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "infer/cli/field_options.h"
#include "infer/cli/line_stream.h"
#include "infer/cli/options.h"
#include "infer/cli/terminal.h"
#include "infer/commands.h"
#include "infer/commands/embed/embed_file.h"
#include "infer/commands/embed/embedder.h"
#include "infer/commands/embed/kinds.h"
#include "infer/commands/embed/nearest.h"
#include "phasor/errors.h"

namespace infer {
namespace {

constexpr const char* kEmbedFooter =
    R"(The model's files say how its vectors are made: docs/command-line.md#sentence-vectors.

Examples:
  infer embed "Tom bit a dog."
  infer embed -i sentences.txt -o vectors.npy
  infer embed -i sentences.txt --nearest 3 "Who bit whom?"
  infer embed --similarity "Tom bit a dog." "A dog bit Tom." "It rains.")";

struct EmbedArguments : VectorArguments {
  std::vector<std::string> words;
  std::string input;
  std::string output;
  std::optional<std::string> query_prefix;  // like TextOptions::prompt, for --nearest
  bool similarity = false;
  int nearest = 0;
};

/// Throws UsageError where options exclude each other or need one another.
void check(const EmbedArguments& arguments, bool has_input) {
  const bool texts = !arguments.words.empty(), searches = arguments.nearest > 0;
  const bool has_output = !arguments.output.empty(), compares = arguments.similarity;
  const bool dense_alone = phasor::uses_of(arguments.how) == phasor::kUseDense;
  const bool reads_twice = arguments.input == "-" && std::ranges::count(arguments.words, "-") > 0;
  const std::pair<bool, const char*> wrong[] = {
      {searches && (!texts || has_output || compares),
       "--nearest prints lines of a file for the given texts: give texts and -i FILE, and neither "
       "-o nor --similarity"},
      {searches && reads_twice,
       "--nearest: texts and lines cannot both be standard input; give -i FILE"},
      {searches && !has_input && isatty(STDIN_FILENO) != 0,
       "--nearest prints lines of a file; give it with -i FILE"},
      {!searches && arguments.query_prefix,
       "--query-prefix is put before the texts of --nearest; give it a number"},
      {!searches && compares && has_input,
       "--similarity compares the given texts with each other; to search a file, write: infer "
       "embed -i FILE --nearest 3 \"a text\""},
      {!searches && has_input && texts,
       "embed: texts and -i exclude each other, but with --nearest; give one of them"},
      {compares && (!texts || has_output),
       "--similarity prints a table of the given texts: give texts, and no -o"},
      {searches && arguments.how.role != phasor::TextRole::kAny,
       "--nearest: TEXT are queries and the lines documents; leave out --role"},
      {!dense_alone && (compares || searches),
       "--nearest and --similarity compare one vector of each text; leave out --kinds, --sparse "
       "and --tokens"},
      {!dense_alone && has_output && arguments.output != "-" &&
           !arguments.output.ends_with(".safetensors"),
       "-o: --kinds, --sparse and --tokens write .safetensors, or JSON lines without -o"},
      {arguments.common.json && has_output && arguments.output != "-" &&
           !arguments.output.ends_with(".jsonl"),
       "--json prints, and -o writes OUT in the format that its name says: leave out --json, or "
       "name OUT .jsonl"}};
  for (const auto& [is_wrong, why] : wrong) {
    if (is_wrong) throw UsageError(why);
  }
}

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
std::optional<int> parse_arguments(CommandLine& line, EmbedArguments& arguments) {
  std::optional<std::string> input;
  bool sparse = false, tokens = false, query = false;
  line.footer(kEmbedFooter);
  line.words("TEXT", "texts; - stands for the lines of standard input", arguments.words);
  add_common(line, kLoad, arguments.common);
  line.option("-i,--input", "FILE", "the file of the lines (default: -, standard input)", input);
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
  arguments.input = input.value_or("-");
  phasor::TextOptions& how = arguments.how;
  take_kinds(sparse, tokens, how);
  if (query && how.role == phasor::TextRole::kDocument)
    throw UsageError("--query and --role document exclude each other; give one");
  if (query) how.role = phasor::TextRole::kQuery;
  const uint32_t uses = phasor::uses_of(how);
  check(arguments, input.has_value());
  check_options(how, uses,
                how.kinds.empty() ? "infer embed" : "--kinds " + phasor::field("kinds").text(how));
  if (arguments.nearest > 0) how.role = phasor::TextRole::kDocument;
  const bool has_places = (uses & (phasor::kUseTokens | phasor::kUseStates)) != 0;
  if (has_places && !how.offset_unit) how.offset_unit = phasor::OffsetUnit::kCharacters;
  if (arguments.output == "-") arguments.output.clear();  // where JSON lines go by default
  if (arguments.nearest == 0) note_file_as_text(arguments.words, "-i", arguments.common);
  return std::nullopt;
}

/// Every line of `lines` to vectors in the output, or to what is nearest to some texts. Dense
/// vectors are written as they are made; a file of other kinds is kept until the end.
int stream(const EmbedArguments& arguments, LineReader& lines) {
  const bool saves = !arguments.output.empty();
  Output output;
  VectorFormat format;
  if (saves) format.kind = VectorFormat::kind_of(arguments.output);
  if (saves) refuse_to_replace("-o", arguments.output);
  Embedder embedder(arguments);
  const phasor::Similarity kind = embedder.similarity();
  std::vector<Query> queries;
  if (arguments.nearest > 0)
    queries = queries_of(read_texts(arguments.words), arguments.query_prefix, embedder);
  std::optional<VectorFile> file;
  Columns columns;
  if (saves && embedder.makes_dense_alone()) {
    format.width = embedder.encoder.embedding_width(embedder.options);
    format.metadata = embedder.metadata();
    file.emplace(arguments.output, format);
  }
  embedder.stream.waits = saves || !queries.empty();
  LineStream stream(lines, embedder.stream);
  VectorCounts counts;
  const auto embed = [&](auto texts, const auto& progress, const auto& stop) {
    return embedder.run(texts, progress, stop);
  };
  const auto write = [&](std::span<const Line> window, const phasor::Vectors& vectors) {
    counts.add(vectors);
    if (file) {
      file->append(vectors.dense);
    } else if (saves) {
      columns.add(vectors.arrays(), 0, vectors.size());
    }
    for (int64_t i = 0; i < vectors.size() && !saves && !output.closed(); ++i) {
      if (queries.empty()) {
        output.write(to_json(vectors, i, window[i].number, embedder.model->tokenizer()));
      } else if (!is_blank(window[i].text)) {
        add_line(vectors[i], window[i], kind, arguments.nearest, queries);
      }
    }
    return !output.closed();
  };
  if (!stream.run<phasor::Vectors>(embed, write))
    return report_error("interrupted", kBadInput);  // the signal ends the program
  if (file) {
    file->commit();
  } else if (saves) {
    save_vectors(arguments.output, columns, embedder);
  }
  if (!queries.empty() && queries[0].nearest.empty()) lines.refuse_empty();  // all were blank
  print_nearest(queries, kind, arguments.common.json);
  if (embedder.quiet) return 0;
  report_note(stream.summary(counts.summary(embedder)));
  constexpr double kLongRun = 10;  // seconds, after which a choice of precision pays
  const bool is_long = stream.seconds() > kLongRun && isatty(STDERR_FILENO) != 0;
  const std::string faster = is_long ? faster_note(arguments.common) : "";
  if (!faster.empty()) report_note(faster);
  return 0;
}

}  // namespace

int embed(CommandLine& line) {
  EmbedArguments arguments;
  if (const auto done = parse_arguments(line, arguments)) return *done;
  if (arguments.similarity) {
    Embedder embedder(arguments);
    print_similarities(read_texts(arguments.words), embedder, arguments.common.json);
    return 0;
  }
  for (const char* extension : {"", ".infer-tmp"}) {  // what is written must not be the input
    const std::string file = arguments.output + extension;
    std::error_code ignored;
    if (!arguments.output.empty() && std::filesystem::equivalent(arguments.input, file, ignored)) {
      throw UsageError(fmt::format("-o: {} is the input; choose another name", file));
    }
  }
  const bool from_file = arguments.nearest > 0 || arguments.words.empty() ||
                         arguments.words == std::vector<std::string>{"-"};
  LineReader lines = from_file ? LineReader(arguments.input, arguments.common.quiet)
                               : LineReader(read_texts(arguments.words));
  return stream(arguments, lines);
}

}  // namespace infer
