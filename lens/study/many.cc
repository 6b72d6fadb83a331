#include "lens/study/many.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "lens/study/masked.h"
#include "lens/study/means.h"
#include "lens/study/measures.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostProbeTokens = 20000;  // the probe holds their states of all layers
constexpr size_t kHeldOut = 4;               // every fourth text

/// The first `count` text tokens between the special ones, and where they are; empty where there
/// are fewer.
ProbeText cut_to(const Model& model, const Input& input, int64_t count) {
  const std::vector<int64_t> places = text_places(model, input.token_ids);
  if (std::ssize(places) < count) return {};
  ProbeText text;
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
int64_t common_length(const Model& model, std::span<const Input> inputs) {
  std::vector<int64_t> lengths;
  for (const Input& input : inputs) {
    lengths.push_back(std::ssize(text_places(model, input.token_ids)));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths.at(lengths.size() / 2);
}

/// The columns of loss and accuracy.
void add_score(const MaskedScore& score, Row& row) {
  for (const Estimate& estimate : {score.loss(), score.accuracy()}) {
    row.add(estimate.mean, estimate.interval);
  }
}

/// Means over the texts, in which every token counts as much as any other.
Observed observe_many(const Subject& subject, const std::string& file,
                      std::span<const Input> inputs, Request request, const Stages& stages,
                      size_t with_patterns,
                      const std::function<void(size_t number, Observed&&)>& each) {
  Means means(described(subject));
  size_t number = 0;
  const Request whole = request;
  request.states = request.arrays = false;
  for (const std::span<const Input> batch : batches_of(inputs, with_patterns)) {
    stages.show("texts", means.texts(), std::ssize(inputs));
    request.patterns = static_cast<size_t>(means.texts()) < with_patterns;
    for (Observed& text : observe_texts(subject, batch, request, stages)) {
      means.add(text);
      each(number++, std::move(text));
    }
    request.seed += batch.size();
  }
  Observed observed = means.result();
  observed.many = {.file = file, .texts = means.texts(), .tokens = means.tokens()};
  Many many{subject, inputs, whole, stages, observed};
  std::set<void (*)(Many&)> done;
  for (const View* view : request.views) {
    if (view->of_many != nullptr && done.insert(view->of_many).second) view->of_many(many);
  }
  return observed;
}

}  // namespace

int64_t most_tokens(const Subject& subject, const Request& request) {
  const RunOptions& options = subject.options;
  const auto limit = subject.model().max_tokens(options.positions);
  const int64_t most = request.max_tokens;
  if (options.overflow != Overflow::kTruncate || !limit) return most;
  return most == 0 ? *limit : std::min(most, *limit);
}

bool can_mask(Many& many, std::initializer_list<const char*> views) {
  const Model& model = many.subject.model();
  const char* const why =
      !model.weights().mlm_head ? "the checkpoint has no masked-language-model head"
      : !model.has_tokenizer()  ? "the checkpoint has no tokenizer that phasor reads"
      : !mask_to_fill(model)    ? "the tokenizer has no mask token"
                                : nullptr;
  if (why == nullptr) return true;
  for (const char* const view : views) many.means.missing[view] = why;
  return false;
}

void split_many(Many& many) {
  const Subject& subject = many.subject;
  const int64_t length = common_length(subject.model(), many.inputs);
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int64_t> places;
  for (const Input& input : many.inputs) {
    ProbeText text = cut_to(subject.model(), input, std::max<int64_t>(length, 2));
    // Where the special tokens stand may differ for ids that nobody tokenized.
    if (text.token_ids.empty() || (!places.empty() && text.places != places)) continue;
    places = text.places;
    sequences.push_back(std::move(text.token_ids));
  }
  if (sequences.size() < 2) {
    many.means.missing["corpus"] = "needs at least two texts of two tokens";
    return;
  }
  int64_t l = 0;
  for (const Split& split : corpus_split(subject.encoder, sequences, places, subject.options,
                                         many.stages.of("texts, for the split of the corpus"))) {
    many.means.add("corpus", {.layer = l++,
                              .cells = {split.position, split.group, split.rest,
                                        stable_rank(split.position_means, many.means.d_model),
                                        smoothness(split.position_means, many.means.d_model)}});
  }
  many.means.tables["corpus"].note = fmt::format(
      "The first {} tokens of the {} texts that have as many.", places.size(), sequences.size());
}

void probe_many(Many& many) {
  std::array<std::vector<ProbeText>, 2> parts;  // train, held out
  int64_t tokens = 0;
  for (const Input& input : many.inputs) {
    ProbeText text{input.token_ids, text_places(many.subject.model(), input.token_ids)};
    if (text.places.empty()) continue;
    tokens += std::ssize(text.token_ids);
    if (tokens > kMostProbeTokens) break;
    const size_t number = parts[0].size() + parts[1].size();
    parts[number % kHeldOut == 1 ? 1 : 0].push_back(std::move(text));
  }
  if (parts[1].empty()) {
    many.means.missing["probe"] = "needs at least two texts: to train on, and to hold out";
    return;
  }
  const std::vector<ProbeReport> reports =
      probe_positions(many.subject.encoder, parts[0], parts[1], many.subject.options,
                      many.request.seed, many.stages.of("texts, for the probe"));
  const ProbeScore token = probe_token_embeddings(many.subject.model(), parts[0], parts[1]);
  int64_t l = 0;
  for (const ProbeReport& report : reports) {
    many.means.add("probe", {.layer = l++,
                             .cells = {report.held_out.r2, report.held_out.mean_absolute_error,
                                       token.r2, report.shuffled.r2, report.mean.r2,
                                       report.mean.mean_absolute_error, report.train.r2}});
  }
  const ProbeReport& last = reports.back();
  many.means.tables["probe"].note = fmt::format(
      "Trained on {} tokens of {} texts, scored on {} tokens of {} others. Always predicting the "
      "mean position: R² {:.3f}, error {:.2f}.",
      last.num_train, parts[0].size(), last.num_held_out, parts[1].size(), last.mean.r2,
      last.mean.mean_absolute_error);
}

void score_masked(Many& many) {
  if (!can_mask(many, {"masked", "lens"})) return;
  const Corpus corpus = tokenize_corpus(many.subject.model(), many.request.lines);
  const bool lens = many.request.asks("lens");
  std::vector<MaskedScore> layers =
      score_texts(many.subject.encoder, many.subject.options, corpus,
                  most_tokens(many.subject, many.request), many.request.seed, lens, many.stages);
  MaskedScore& last = layers.back();
  Row row{.label = "all", .cells = {}};
  add_score(last, row);
  row.add(static_cast<double>(last.masks()));
  row.add(static_cast<double>(last.tokens));
  many.means.add("masked", std::move(row));
  for (int64_t l = 0; lens && l < std::ssize(layers); ++l) {
    Row of_layer{.layer = l, .cells = {}};
    add_score(layers[l], of_layer);
    many.means.add("lens", std::move(of_layer));
  }
  many.means.masked = std::move(last);
}

void score_longer(Many& many) {
  if (!can_mask(many, {"longer"})) return;
  const auto trained = trained_length(many.subject.encoder, many.subject.options);
  if (!trained) {
    many.means.missing["longer"] = "the checkpoint does not say how long its texts were";
    return;
  }
  const Corpus corpus = tokenize_corpus(many.subject.model(), many.request.lines);
  const std::vector<LengthScore> lengths = score_lengths(
      many.subject.encoder, many.subject.options, corpus, *trained, many.request.seed, many.stages);
  for (const LengthScore& length : lengths) {
    Row row{.label = fmt::format("{}{}{}", length.length, length.overflow ? " " : "",
                                 length.overflow ? to_string(*length.overflow) : ""),
            .cells = {}};
    add_score(length.score, row);
    row.add(length.factor);
    row.add(static_cast<double>(length.score.masks()));
    row.add(static_cast<double>(length.score.tokens));
    many.means.add("longer", std::move(row));
  }
  if (lengths.empty() || lengths.back().factor < 2) {
    many.means.missing["longer"] =
        fmt::format("the file has {} tokens; twice the trained length is {}", corpus.num_tokens(),
                    2 * *trained);
  }
}

std::vector<Observed> observe_runs(
    std::span<const Subject> subjects, const std::string& file,
    std::span<const std::vector<Input>> inputs, const Request& request, const Stages& stages,
    size_t with_patterns, const std::function<void(size_t side, size_t number, Observed&&)>& each) {
  std::vector<Observed> runs;
  for (size_t side = 0; side < subjects.size(); ++side) {
    const auto take = [&](size_t number, Observed&& text) {
      if (each) each(side, number, std::move(text));
    };
    runs.push_back(
        observe_many(subjects[side], file, inputs[side], request, stages, with_patterns, take));
  }
  if (runs.size() < 2) return runs;
  const bool same = same_tokens(inputs[0], inputs[1]);
  if (same) compare_losses(runs[0], runs[1]);
  if (request.asks("moved") && same) {
    measure_moved(subjects[0], subjects[1], inputs[0], runs[1], stages);
  } else if (request.asks("moved")) {
    runs[1].missing["moved"] = "the two tokenizers make different tokens";
  }
  if (request.asks("patched")) {
    Many second{subjects[1], inputs[1], request, stages, runs[1]};
    score_patched(subjects[0], second);
  }
  return runs;
}

void add_baseline(const Baseline& baseline, const std::string& file,
                  std::span<const std::vector<Input>> inputs, const Request& request,
                  const Stages& stages, std::vector<Observed>& runs) {
  std::vector<std::vector<Observed>> sides(runs.size());  // of [seeds]
  for (const std::vector<Subject>& subjects : baseline.subjects()) {
    std::vector<Observed> seed = observe_runs(subjects, file, inputs, request, stages);
    for (size_t side = 0; side < seed.size(); ++side) sides[side].push_back(std::move(seed[side]));
  }
  for (const std::vector<Observed>& seeds : sides) {
    if (!seeds.empty()) runs.push_back(over_seeds(seeds));
  }
}

bool same_tokens(std::span<const Input> a, std::span<const Input> b) {
  return std::ranges::equal(a, b, [](const Input& x, const Input& y) {
    return x.token_ids == y.token_ids && x.pieces == y.pieces;
  });
}

}  // namespace phasor::internal
