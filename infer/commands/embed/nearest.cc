#include "infer/commands/embed/nearest.h"

#include <fmt/format.h>

#include "infer/cli/terminal.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// Vectors of up to 1000 texts, with notes on those that are cut or not all UTF-8. `option` is for
/// messages.
phasor::Vectors embed_few(phasor::Encoder& encoder, const phasor::TextOptions& how,
                          const std::vector<std::string>& texts, const std::string& option,
                          bool quiet) {
  constexpr size_t kMost = 1000;
  if (texts.empty() || texts.size() > kMost) {
    throw phasor::InvalidArgument(
        fmt::format("{} takes 1 to {} texts, not {}", option, kMost, texts.size()));
  }
  constexpr int64_t kMostNumbers = 1 << 24;
  const int64_t width = encoder.embedding_width(how);
  if (width * std::ssize(texts) > kMostNumbers) {
    throw phasor::InvalidArgument(
        fmt::format("{}: {} vectors of {} numbers are too many; give at most {} texts", option,
                    texts.size(), width, kMostNumbers / width));
  }
  phasor::Vectors vectors = encoder.embed(texts, how);
  for (int64_t i = 0; i < vectors.size() && !quiet; ++i) {
    const std::string report = line_report(vectors.reports[i]);
    if (!report.empty()) report_note(fmt::format("text {}: {}", i + 1, report));
  }
  return vectors;
}

}  // namespace

std::vector<Query> queries_of(const std::vector<std::string>& texts,
                              const std::optional<std::string>& prefix, Embedder& embedder) {
  phasor::TextOptions how = embedder.options;
  const std::string of_lines = embedder.prompt();
  how.role = phasor::TextRole::kQuery;
  how.prompt_name.clear();
  how.prompt = prefix.value_or(embedder.model->text().query_prompt().value_or(of_lines));
  if (!embedder.quiet && !how.prompt->empty() && !prefix && how.prompt != of_lines) {
    report_note(
        fmt::format("before every query: \"{}\" (config_sentence_transformers.json)", *how.prompt));
  }
  const phasor::Vectors vectors =
      embed_few(embedder.encoder, how, texts, "--nearest", embedder.quiet);
  std::vector<Query> queries;
  for (size_t q = 0; q < texts.size(); ++q) {
    queries.push_back({texts[q], {vectors[q].begin(), vectors[q].end()}});
  }
  return queries;
}

void add_line(std::span<const float> vector, const Line& line, phasor::Similarity kind,
              int64_t most, std::vector<Query>& queries) {
  for (Query& query : queries) {
    add(similarity(query.vector, vector, kind), line, most, query.nearest);
  }
}

void print_nearest(const std::vector<Query>& queries, phasor::Similarity kind, bool json) {
  Output output;
  for (const Query& query : queries) {
    JsonWriter object;
    object.object([&] {
      object.member("query", query.text);
      object.key("nearest").array(query.nearest, [&](const RankedLine& line) {
        object.object("line", line.number, to_string(kind), line.key, "text", line.text);
      });
    });
    std::string text =
        (&query == &queries.front() ? "" : "\n") + output.heading(printable(query.text)) + "\n";
    for (const RankedLine& line : query.nearest) {
      text +=
          output.labelled(fmt::format("  {:6.3f}  line {:<7} ", line.key, line.number), line.text);
    }
    output.write(json ? object.take() + "\n" : text);
  }
}

void print_similarities(const std::vector<std::string>& texts, Embedder& embedder, bool json) {
  const phasor::Vectors vectors =
      embed_few(embedder.encoder, embedder.options, texts, "--similarity", embedder.quiet);
  const phasor::Similarity kind = embedder.similarity();
  std::vector<std::vector<double>> similarities(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    for (size_t j = 0; j < texts.size(); ++j) {
      similarities[i].push_back(similarity(vectors[i], vectors[j], kind));
    }
  }
  Output output;
  if (json) {
    const bool cosines = kind == phasor::Similarity::kCosine;
    const std::string name(cosines ? "cosines" : to_string(kind));
    return output.write(json_object("texts", texts, name, similarities) + "\n");
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
}

}  // namespace infer
