// Measuring one side of a comparison.
#include "infer/experiment/comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "infer/experiment/means.h"
#include "infer/experiment/position_table.h"

namespace infer {
namespace {

constexpr int64_t kMostTableRows = 512;  // the Gram matrix has the square of it

std::vector<Input> read_inputs(const Side& side, const Question& question) {
  std::vector<Input> inputs;
  for (const std::vector<int32_t>& ids : question.ids) {
    Input& input = inputs.emplace_back(input_from_ids(side.model(), ids));
    const int64_t tokens = std::ssize(input.token_ids);
    if (question.max_tokens > 0 && tokens > question.max_tokens) {
      keep_leading_tokens(input, question.max_tokens);
    }
  }
  for (const std::string& text : question.texts) {
    inputs.push_back(input_from_text(side.model(), text, question.max_tokens));
  }
  return inputs;
}

/// The measures that a comparison's sections show.
std::vector<Measure> measures_of(const Question& question) {
  constexpr std::array<std::pair<Section, Measure>, 4> kMeasures = {
      {{Section::kEffect, Measure::kEffect},
       {Section::kOrder, Measure::kOrder},
       {Section::kAttention, Measure::kAttention},
       {Section::kDirect, Measure::kDirect}}};
  std::vector<Measure> measures;
  for (const auto& [section, measure] : kMeasures) {
    if (question.asks(section)) measures.push_back(measure);
  }
  return measures;
}

void measure_layers(Side& side, const Question& question, Progress& progress, SideReport& report) {
  const std::vector<Measure> measures = measures_of(question);
  if (measures.empty() && question.page == nullptr) return;
  Request request{.measures = measures, .seed = question.seed};
  // Those on the page alone: their patterns take much memory.
  const size_t on_page = question.page == nullptr ? 0 : HtmlReport::kMostTexts;
  const Subject subject = side.subject();
  ObservedMeans means;
  for (const std::span<const Input> batch : batches_of(report.inputs, on_page)) {
    progress.show(side.label + ": texts", means.texts(), std::ssize(report.inputs));
    request.patterns = static_cast<size_t>(means.texts()) < on_page;
    request.measures = measures;
    if (request.patterns) {
      request.measures.insert(request.measures.end(), {Measure::kSplit, Measure::kScores});
    }
    for (const Observed& text : observe_texts(subject, batch, request, progress)) {
      if (question.page != nullptr) question.page->add_run(means.texts(), side.label, text);
      means.add(text);
    }
    request.seed += batch.size();
  }
  if (measures.empty()) return;
  const Observed mean = means.result();
  report.layers = mean.layers;
  report.tokens = means.tokens();
  report.reordered_texts = means.reordered_texts();
  for (const auto& [measure, why] : mean.missing) {
    if (measure == Measure::kOrder) {
      report.missing[Section::kOrder] = "no text has two tokens that could change places";
    } else if (measure == Measure::kDirect) {
      report.missing[Section::kDirect] = why;
    }
  }
}

TableMeasures measure_table(std::span<const double> table, int64_t d_model) {
  return {.toeplitz_r2 = phasor::toeplitz_r2(table, d_model),
          .locality = phasor::position_locality(table, d_model),
          .symmetry = phasor::position_symmetry(table, d_model)};
}

void describe_table(const Side& side, uint64_t seed, SideReport& report) {
  const int64_t rows = std::min(side.trained_length().value_or(kMostTableRows), kMostTableRows);
  const std::vector<float> vectors =
      side.encoder.model().position_vectors(rows, side.options.positions, side.options.overflow);
  if (std::all_of(vectors.begin(), vectors.end(), [](float value) { return value == 0; })) {
    report.missing[Section::kTable] = "no positions are added";
    return;
  }
  const int64_t width = side.model().config().embedding_width();
  const std::vector<double> table(vectors.begin(), vectors.end());
  report.table = TableReport{.rows = rows,
                             .norm = phasor::mean_norm(vectors, width),
                             .measures = measure_table(table, width),
                             .random = measure_table(random_values(rows * width, seed), width)};
}

/// Why this side can score no masked tokens; empty where it can.
std::string why_no_masks(const Side& side, const Question& question) {
  if (!question.corpus) return "give a file of sentences with -i FILE";
  if (!side.model().weights().mlm_head) return "the checkpoint has no masked-language-model head";
  if (!side.model().has_tokenizer()) return "the checkpoint has no tokenizer that phasor reads";
  if (!mask_to_fill(side.model())) return "the tokenizer has no mask token";
  return "";
}

void measure_lengths(Side& side, const Question& question, const Corpus& corpus, Progress& progress,
                     SideReport& report) {
  const std::optional<int64_t> trained = side.trained_length();
  if (!trained) {
    report.missing[Section::kLonger] = "the checkpoint does not say how long its texts were";
    return;
  }
  report.lengths =
      score_lengths(side.encoder, side.options, corpus, *trained, question.seed, progress);
  if (std::ssize(report.lengths) == 0 || report.lengths.back().factor < 2) {
    report.missing[Section::kLonger] =
        fmt::format("the file has {} tokens; twice the trained length is {}", corpus.num_tokens(),
                    2 * *trained);
  }
}

void measure_masks(Side& side, const Question& question, Progress& progress, SideReport& report) {
  const bool masked = question.asks(Section::kMasked), longer = question.asks(Section::kLonger);
  if (!masked && !longer) return;
  if (const std::string why = why_no_masks(side, question); !why.empty()) {
    report.missing[Section::kMasked] = report.missing[Section::kLonger] = why;
    return;
  }
  const Corpus& corpus = report.corpus.emplace(tokenize_corpus(side.model(), *question.corpus));
  if (masked) {
    report.masked = score_texts(side.encoder, side.options, corpus, question.max_tokens,
                                question.seed, progress);
  }
  if (longer) measure_lengths(side, question, corpus, progress, report);
}

}  // namespace

bool Question::asks(Section section) const {
  return std::find(sections.begin(), sections.end(), section) != sections.end();
}

std::optional<int64_t> Side::trained_length() const {
  return infer::trained_length(encoder, options);
}

Subject Side::subject() { return {.name = model_name, .encoder = encoder, .options = options}; }

bool same_tokens(const SideReport& a, const SideReport& b) {
  const auto same = [](const Input& x, const Input& y) {
    return x.token_ids == y.token_ids && x.pieces == y.pieces;
  };
  const bool same_inputs =
      std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same);
  const bool both_masked = a.corpus && b.corpus;
  return same_inputs && (!both_masked || a.corpus->texts == b.corpus->texts);
}

SideReport measure(Side& side, const Question& question, Progress& progress) {
  SideReport report;
  report.inputs = read_inputs(side, question);
  measure_layers(side, question, progress, report);
  if (question.asks(Section::kTable)) describe_table(side, question.seed, report);
  measure_masks(side, question, progress, report);
  return report;
}

}  // namespace infer
