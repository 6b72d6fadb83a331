// infer embed --nearest and --similarity: what is compared by vectors.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "infer/cli/terminal.h"
#include "infer/commands/embed/embedder.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Vectors of up to 1000 texts, with notes on those that are cut or not all UTF-8.
phasor::Vectors embed_few(const Embedder& embedder, const phasor::TextOptions& how,
                          const std::vector<std::string>& texts) {
  constexpr size_t kMost = 1000;
  if (texts.size() > kMost) {
    throw phasor::InvalidArgument(
        fmt::format("{} takes up to {} texts, not {}",
                    embedder.given.similarity ? "--similarity" : "--nearest", kMost, texts.size()));
  }
  phasor::Vectors vectors = embedder.encoder.embed(texts, how);
  for (int64_t i = 0; i < vectors.size() && !embedder.given.common.quiet; ++i) {
    const std::string report = line_report(vectors.reports[i]);
    if (!report.empty()) report_note(fmt::format("text {}: {}", i + 1, report));
  }
  return vectors;
}

/// How the texts of --nearest are run: with --query-prefix, or the model's prompt for queries, or
/// else what is put before the lines.
phasor::TextOptions query_options(const Embedder& embedder) {
  phasor::TextOptions how = embedder.given.how;
  const std::string of_lines = prompt_of(how, embedder.model->text());
  const auto& prefix = embedder.given.query_prefix;
  how.role = phasor::TextRole::kQuery;
  how.prompt_name.clear();
  how.prompt = prefix.value_or(embedder.model->text().query_prompt().value_or(of_lines));
  const bool is_own = !prefix && !how.prompt->empty() && how.prompt != of_lines;
  if (is_own && !embedder.given.common.quiet)
    report_note(
        fmt::format("before every query: \"{}\" (config_sentence_transformers.json)", *how.prompt));
  return how;
}

}  // namespace

int nearest(EmbedArguments& given) {
  const bool is_taken = std::ranges::count(given.words, "-") > 0 || isatty(STDIN_FILENO) != 0;
  if (is_taken && given.input.value_or("-") == "-") {
    throw UsageError(
        "--nearest prints lines of a file: give it with -i FILE, for standard input is a terminal "
        "or has the texts");
  }
  given.how.role = phasor::TextRole::kDocument;
  LineReader lines(given.input.value_or("-"), given.common.quiet);
  const Embedder embedder(given);
  const phasor::Similarity kind = embedder.similarity();
  const std::vector<std::string> texts = read_texts(given.words);
  const phasor::Vectors queries = embed_few(embedder, query_options(embedder), texts);
  std::vector<Ranking> rankings(texts.size());
  const auto rank = [&](std::span<const Line> window, const phasor::Vectors& vectors) {
    for (int64_t i = 0; i < vectors.size(); ++i) {
      for (size_t q = 0; q < rankings.size() && !is_blank(window[i].text); ++q)
        add(similarity(queries[q], vectors[i], kind), window[i], given.nearest, rankings[q]);
    }
    return true;
  };
  return embedder.run(lines, true, rank, [&] {
    if (rankings[0].empty()) lines.refuse_empty();  // all were blank
    Output output;
    for (size_t q = 0; q < texts.size(); ++q) {
      if (q > 0 && !given.common.json) output.write("\n");
      print(output, texts[q], rankings[q], 3, given.common.json ? "nearest" : nullptr,
            [&](const RankedLine& line, JsonWriter& json) {
              json.member(to_string(kind), line.key);
            });
    }
    return embedder.summary({});
  });
}

int similarities(EmbedArguments& given) {
  const Embedder embedder(given);
  const std::vector<std::string> texts = read_texts(given.words);
  const phasor::Vectors vectors = embed_few(embedder, given.how, texts);
  const phasor::Similarity kind = embedder.similarity();
  std::vector<std::vector<double>> similarities(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < texts.size(); ++j)
      similarities[i].push_back(similarity(vectors[i], vectors[j], kind));
  }
  Output output;
  if (given.common.json) {
    const bool cosines = kind == phasor::Similarity::kCosine;
    const std::string name(cosines ? "cosines" : to_string(kind));
    output.write(json_object("texts", texts, name, similarities) + "\n");
    return 0;
  }
  const size_t number_width = std::to_string(texts.size()).size();
  std::string table(number_width + 1, ' ');
  for (size_t j = 0; j < texts.size(); ++j) table += fmt::format("{:>7}", j + 1);
  table += "\n";
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string row = fmt::format("{:>{}} ", i + 1, number_width);
    for (const double value : similarities[i]) row += fmt::format(" {:6.3f}", value);
    table += output.labelled(row + "  ", texts[i]);
  }
  output.show(table);
  return 0;
}

}  // namespace infer
