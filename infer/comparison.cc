// Measuring one side of a comparison.
#include "infer/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

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

std::vector<int64_t> draw_order(Reordering kind, const phasor::Model& model,
                                std::span<const int32_t> token_ids, uint64_t seed) {
  const std::vector<int64_t> places = text_places(model, token_ids);
  const auto tokens = std::ssize(token_ids);
  switch (kind) {
    case Reordering::kSwap:
      return phasor::swapped_order(tokens, places, seed);
    case Reordering::kReverse:
      return phasor::reversed_order(tokens, places);
    case Reordering::kShuffle:
      break;
  }
  return phasor::shuffled_order(tokens, places, seed);
}

/// Runs batches of texts, and adds up what each layer does to their tokens.
class LayerMeasurement {
 public:
  LayerMeasurement(Side& side, const Question& question, SideReport& report)
      : side_(side), question_(question), report_(report) {
    report_.layers.resize(side.model().config().num_layers + 1);
  }

  void add(std::span<const Input> inputs) {
    const Batch batch = observe(side_.encoder, inputs, side_.options, phasor::residual_trace());
    for (int64_t i = 0; i < std::ssize(inputs); ++i) add_states(batch, i);
    if (!question_.asks(Section::kOrder)) return;
    for (size_t kind = 0; kind < kReorderingNames.size(); ++kind) {
      add_reordered(inputs, batch.observation.trace(), static_cast<Reordering>(kind));
    }
    for (const Input& input : inputs) {
      if (!can_reorder(input)) continue;
      ++report_.reordered_texts;
      reordered_tokens_ += static_cast<double>(input.token_ids.size());
    }
    first_text_ += inputs.size();
  }

  /// Sums become means.
  void finish() {
    const auto tokens = static_cast<double>(report_.tokens);
    for (SideLayer& layer : report_.layers) {
      layer.norm /= tokens;
      layer.effect /= tokens;
      layer.direct.norm /= tokens;
      layer.direct.alignment /= tokens;
      for (double& moved : layer.order) moved /= std::max(reordered_tokens_, 1.0);
    }
  }

 private:
  int64_t d_model() const { return side_.model().config().d_model; }

  bool can_reorder(const Input& input) const {
    return text_places(side_.model(), input.token_ids).size() > 1;
  }

  void add_states(const Batch& batch, int64_t i) {
    const std::vector<LayerReport> states = layer_reports(batch, d_model(), i);
    const std::vector<phasor::PartShare> direct =
        phasor::direct_position_path(side_.model(), batch.observation.trace(), i);
    const auto tokens = static_cast<double>(batch.encoding.num_tokens(i));
    report_.tokens += batch.encoding.num_tokens(i);
    for (size_t l = 0; l < report_.layers.size(); ++l) {
      SideLayer& layer = report_.layers[l];
      layer.norm += states[l].norm * tokens;
      layer.effect += states[l].position_effect * tokens;
      layer.direct.norm += direct[l].norm * tokens;
      layer.direct.alignment += direct[l].alignment * tokens;
      if (l > 0) layer.attention.add(batch.observation.attention(static_cast<int64_t>(l) - 1, i));
    }
  }

  void add_reordered(std::span<const Input> inputs, const phasor::Trace& states, Reordering kind) {
    std::vector<std::vector<int64_t>> orders;
    std::vector<std::vector<int32_t>> sequences;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::span<const int32_t> ids = inputs[i].token_ids;
      const uint64_t seed = question_.seed + first_text_ + i;
      orders.push_back(draw_order(kind, side_.model(), ids, seed));
      sequences.push_back(phasor::reordered(ids, orders.back()));
    }
    phasor::Trace moved = hidden_states();
    phasor::RunOptions options = side_.options;
    options.observer = &moved;
    side_.encoder.encode_ids(sequences, options);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!can_reorder(inputs[i])) continue;
      const auto tokens = static_cast<double>(inputs[i].token_ids.size());
      const auto sequence = static_cast<int64_t>(i);
      for (int64_t l = 0; l < std::ssize(report_.layers); ++l) {
        report_.layers[l].order[static_cast<size_t>(kind)] +=
            tokens * phasor::order_sensitivity(states.hidden_state(l, sequence).values,
                                               moved.hidden_state(l, sequence).values, orders[i],
                                               d_model());
      }
    }
  }

  Side& side_;
  const Question& question_;
  SideReport& report_;
  size_t first_text_ = 0;  // of the batch
  double reordered_tokens_ = 0;
};

void measure_layers(Side& side, const Question& question, Progress& progress, SideReport& report) {
  LayerMeasurement measurement(side, question, report);
  int64_t done = 0;
  for (const std::span<const Input> batch : batches_of(report.inputs)) {
    progress.show(side.label + ": texts", done, std::ssize(report.inputs));
    measurement.add(batch);
    done += std::ssize(batch);
  }
  measurement.finish();
  if (report.reordered_texts == 0) {
    report.missing[Section::kOrder] = "no text has two tokens that could change places";
  }
}

TableMeasures measure_table(std::span<const double> table, int64_t d_model) {
  return {.toeplitz_r2 = phasor::toeplitz_r2(table, d_model),
          .locality = phasor::position_locality(table, d_model),
          .symmetry = phasor::position_symmetry(table, d_model)};
}

/// Uniform in [−1, 1), the same on every machine.
std::vector<double> random_table(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> values(count);
  for (double& value : values) value = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
  return values;
}

void describe_table(const Side& side, uint64_t seed, SideReport& report) {
  const int64_t rows = std::min(side.trained_length().value_or(kMostTableRows), kMostTableRows);
  const std::vector<float> vectors = side.encoder.position_vectors(rows, side.options);
  if (std::all_of(vectors.begin(), vectors.end(), [](float value) { return value == 0; })) {
    report.missing[Section::kTable] = "no positions are added";
    return;
  }
  const int64_t width = side.model().config().embedding_width();
  const std::vector<double> table(vectors.begin(), vectors.end());
  report.table = TableReport{.rows = rows,
                             .norm = phasor::mean_norm(vectors, width),
                             .measures = measure_table(table, width),
                             .random = measure_table(random_table(rows * width, seed), width)};
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
  const int64_t trained = model().config().max_positions;
  const std::optional<int64_t> limit = encoder.max_tokens(options);
  if (trained == 0) return limit;
  return std::min(trained, limit.value_or(trained));
}

bool same_tokens(const SideReport& a, const SideReport& b) {
  const auto same = [](const Input& x, const Input& y) {
    return x.token_ids == y.token_ids && x.pieces == y.pieces;
  };
  const bool same_inputs =
      std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same);
  const bool both_masked = a.corpus && b.corpus;
  return same_inputs && (!both_masked || a.corpus->texts == b.corpus->texts);
}

std::vector<Deviation> measure_precision(Side& a, Side& b, std::span<const Input> inputs,
                                         Progress& progress) {
  const int64_t layers = a.model().config().num_layers;
  std::vector<Deviation> deviations(layers + 1);
  int64_t done = 0;
  for (const std::span<const Input> batch : batches_of(inputs)) {
    progress.show(b.label + ": texts", done, std::ssize(inputs));
    const auto run = [&](Side& side) {
      phasor::Trace states = hidden_states();
      phasor::RunOptions options = side.options;
      options.observer = &states;
      side.encoder.encode_ids(token_ids_of(batch), options);
      return states;
    };
    const phasor::Trace want = run(a), got = run(b);
    for (int64_t i = 0; i < std::ssize(batch); ++i) {
      for (int64_t l = 0; l <= layers; ++l) {
        deviations[l].add(got.hidden_state(l, i).values, want.hidden_state(l, i).values,
                          a.model().config().d_model);
      }
    }
    done += std::ssize(batch);
  }
  return deviations;
}

SideReport measure(Side& side, const Question& question, Progress& progress) {
  SideReport report;
  report.inputs = read_inputs(side, question);
  const auto layer_sections = {Section::kEffect, Section::kOrder, Section::kAttention,
                               Section::kDirect};
  if (std::any_of(layer_sections.begin(), layer_sections.end(),
                  [&](Section section) { return question.asks(section); })) {
    measure_layers(side, question, progress, report);
  }
  if (question.asks(Section::kTable)) describe_table(side, question.seed, report);
  measure_masks(side, question, progress, report);
  return report;
}

}  // namespace infer
