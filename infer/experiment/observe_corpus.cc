// Observing the lines of a file as one: means over texts, and what only many texts can tell.
#include "infer/experiment/observe_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "infer/experiment/means.h"

namespace infer {
namespace {

constexpr int64_t kMostProbeTokens = 20000;  // the probe holds their states of all layers
constexpr size_t kHeldOut = 4;               // every fourth text

phasor::Progress shown(Progress& progress, const char* what) {
  return [&progress, what](int64_t done, int64_t total) { progress.show(what, done, total); };
}

/// The first `count` text tokens between the special ones, and where they are; empty where there
/// are fewer.
phasor::ProbeText cut_to(const phasor::Model& model, const Input& input, int64_t count) {
  const std::vector<int64_t> places = text_places(model, input.token_ids);
  if (std::ssize(places) < count) return {};
  phasor::ProbeText text;
  int64_t seen = 0;
  for (int64_t t = 0; t < std::ssize(input.token_ids); ++t) {
    const bool is_text = std::binary_search(places.begin(), places.end(), t);
    if (is_text && seen++ >= count) continue;
    if (is_text) text.places.push_back(std::ssize(text.token_ids));
    text.token_ids.push_back(input.token_ids[t]);
  }
  return text;
}

/// So many text tokens that half of the texts have them.
int64_t common_length(const phasor::Model& model, std::span<const Input> inputs) {
  std::vector<int64_t> lengths;
  for (const Input& input : inputs) {
    lengths.push_back(std::ssize(text_places(model, input.token_ids)));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths.at(lengths.size() / 2);
}

void split_corpus(const Subject& subject, std::span<const Input> inputs, Progress& progress,
                  Observed& corpus) {
  const int64_t length = common_length(subject.model(), inputs);
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int64_t> places;
  for (const Input& input : inputs) {
    phasor::ProbeText text = cut_to(subject.model(), input, std::max<int64_t>(length, 2));
    // Where the special tokens stand may differ for ids that nobody tokenized.
    if (text.token_ids.empty() || (!places.empty() && text.places != places)) continue;
    places = text.places;
    sequences.push_back(std::move(text.token_ids));
  }
  if (sequences.size() < 2) {
    corpus.missing[Measure::kCorpusSplit] = "it takes two texts of two tokens or more";
    return;
  }
  const std::vector<phasor::Split> splits =
      phasor::corpus_split(subject.encoder, sequences, places, subject.options,
                           shown(progress, "texts, for the split of the corpus"));
  for (size_t l = 0; l < splits.size(); ++l) {
    corpus.layers[l].corpus_split = summary_of(splits[l], corpus.d_model);
  }
  corpus.corpus->split_texts = std::ssize(sequences);
  corpus.corpus->split_places = std::ssize(places);
}

void probe_corpus(const Subject& subject, std::span<const Input> inputs, uint64_t seed,
                  Progress& progress, Observed& corpus) {
  std::array<std::vector<phasor::ProbeText>, 2> parts;  // train, held out
  int64_t tokens = 0;
  for (const Input& input : inputs) {
    phasor::ProbeText text{input.token_ids, text_places(subject.model(), input.token_ids)};
    if (text.places.empty()) continue;
    tokens += std::ssize(text.token_ids);
    if (tokens > kMostProbeTokens) break;
    const size_t number = parts[0].size() + parts[1].size();
    parts[number % kHeldOut == 1 ? 1 : 0].push_back(std::move(text));
  }
  if (parts[1].empty()) {
    corpus.missing[Measure::kProbe] = "it takes two texts: to train on, and to hold out";
    return;
  }
  const std::vector<phasor::ProbeReport> reports =
      phasor::probe_positions(subject.encoder, parts[0], parts[1], subject.options, seed,
                              shown(progress, "texts, for the probe"));
  for (size_t l = 0; l < reports.size(); ++l) corpus.layers[l].probe = reports[l];
  corpus.corpus->train_texts = std::ssize(parts[0]);
  corpus.corpus->held_out_texts = std::ssize(parts[1]);
}

}  // namespace

Observed observe_corpus(const Subject& subject, const std::string& file,
                        std::span<const Input> inputs, const Request& request, Progress& progress) {
  ObservedMeans means;
  Request of_texts{.measures = request.measures, .seed = request.seed};
  for (const std::span<const Input> batch : batches_of(inputs)) {
    progress.show("texts", means.texts(), std::ssize(inputs));
    for (const Observed& text : observe_texts(subject, batch, of_texts, progress)) means.add(text);
    of_texts.seed += batch.size();
  }
  Observed corpus = means.result();
  corpus.corpus = CorpusSize{.file = file, .texts = means.texts(), .tokens = means.tokens()};
  if (request.asks(Measure::kCorpusSplit)) split_corpus(subject, inputs, progress, corpus);
  if (request.asks(Measure::kProbe)) probe_corpus(subject, inputs, request.seed, progress, corpus);
  return corpus;
}

}  // namespace infer
