
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lens/study/measures.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostProbeTokens = 20000;  // the probe holds their states of all layers
constexpr size_t kHeldOut = 4;               // every fourth text

/// The first `count` text tokens between the special ones, and where they are; empty where there
/// are fewer.
ProbeText cut_to(const Model& model, std::span<const int32_t> token_ids, int64_t count) {
  const std::vector<int64_t> places = text_places(model, token_ids);
  if (std::ssize(places) < count) return {};
  ProbeText text;
  int64_t seen = 0;
  for (int64_t t = 0; t < std::ssize(token_ids); ++t) {
    const bool is_text = std::binary_search(places.begin(), places.end(), t);
    if (is_text && seen++ >= count) continue;
    if (is_text) text.places.push_back(std::ssize(text.token_ids));
    text.token_ids.push_back(token_ids[t]);
  }
  return text;
}

/// So many text tokens that half of the texts have them.
int64_t common_length(const Model& model, std::span<const std::vector<int32_t>> sequences) {
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& ids : sequences) {
    lengths.push_back(std::ssize(text_places(model, ids)));
  }
  std::sort(lengths.begin(), lengths.end());
  return lengths.at(lengths.size() / 2);
}

/// The columns of loss and accuracy.
void add_score(const MaskedScore& score, Row& row) {
  for (const Estimate& estimate : {score.loss(), score.accuracy()}) {
    add_cell(row, estimate.mean, estimate.interval);
  }
}

}  // namespace

int64_t most_tokens(const lens::Run& subject, const Request& request) {
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
  const lens::Run& subject = many.subject;
  const int64_t length = common_length(subject.model(), many.sequences);
  std::vector<std::vector<int32_t>> sequences;
  std::vector<int64_t> places;
  for (const std::vector<int32_t>& ids : many.sequences) {
    ProbeText text = cut_to(subject.model(), ids, std::max<int64_t>(length, 2));
    // Where the special tokens stand may differ for ids that nobody tokenized.
    if (text.token_ids.empty() || (!places.empty() && text.places != places)) continue;
    places = text.places;
    sequences.push_back(std::move(text.token_ids));
  }
  if (sequences.size() < 2) {
    many.means.missing["corpus"] = "needs at least two texts, each of two tokens or more";
    return;
  }
  int64_t l = 0;
  for (const Split& split : corpus_split(*subject.encoder, sequences, places, subject.options,
                                         many.stages.of("texts, for the split of the corpus"))) {
    add_row(many.means, "corpus",
            {.layer = l++,
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
  for (const std::vector<int32_t>& ids : many.sequences) {
    ProbeText text{ids, text_places(many.subject.model(), ids)};
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
      probe_positions(*many.subject.encoder, parts[0], parts[1], many.subject.options,
                      many.request.seed, many.stages.of("texts, for the probe"));
  const ProbeScore token = probe_token_embeddings(many.subject.model(), parts[0], parts[1]);
  int64_t l = 0;
  for (const ProbeReport& report : reports) {
    add_row(many.means, "probe",
            {.layer = l++,
             .cells = {report.held_out.r2, report.held_out.mean_absolute_error, report.interior.r2,
                       token.r2, report.control.r2, report.shuffled.r2, report.mean.r2,
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
  if (!can_mask(many, {"masked", "masks", "lens"})) return;
  const Corpus corpus = tokenize_corpus(many.subject.model(), many.request.lines);
  const bool lens = many.request.asks("lens");
  std::vector<MaskedScore> layers =
      score_texts(*many.subject.encoder, many.subject.options, corpus,
                  most_tokens(many.subject, many.request), many.request.seed, lens, many.stages);
  MaskedScore& last = layers.back();
  Row row{.label = "all", .cells = {}};
  add_score(last, row);
  add_cell(row, static_cast<double>(last.masks()));
  add_cell(row, static_cast<double>(last.tokens));
  add_row(many.means, "masked", std::move(row));
  for (int64_t l = 0; lens && l < std::ssize(layers); ++l) {
    Row of_layer{.layer = l, .cells = {}};
    add_score(layers[l], of_layer);
    add_row(many.means, "lens", std::move(of_layer));
  }
  int64_t number = 0;
  for (size_t i = 0; i < last.losses.size() && many.request.asks("masks"); ++i) {
    number = i > 0 && last.texts[i] == last.texts[i - 1] ? number + 1 : 1;
    add_row(many.means, "masks",
            {.label = fmt::format("{}.{}", last.texts[i] + 1, number),
             .cells = {last.losses[i], last.hits[i]}});
  }
  many.means.masked = std::move(last);
}

void score_longer(Many& many) {
  if (!can_mask(many, {"longer"})) return;
  const auto trained = trained_length(*many.subject.encoder, many.subject.options);
  if (!trained) {
    many.means.missing["longer"] = "the checkpoint does not say how long its texts were";
    return;
  }
  const Corpus corpus = tokenize_corpus(many.subject.model(), many.request.lines);
  const std::vector<LengthScore> lengths =
      score_lengths(*many.subject.encoder, many.subject.options, corpus, *trained,
                    many.request.seed, many.stages);
  for (const LengthScore& length : lengths) {
    Row row{.label = fmt::format("{}{}{}", length.length, length.overflow ? " " : "",
                                 length.overflow ? to_string(*length.overflow) : ""),
            .cells = {}};
    add_score(length.score, row);
    add_cell(row, length.factor);
    add_cell(row, static_cast<double>(length.score.masks()));
    add_cell(row, static_cast<double>(length.score.tokens));
    add_row(many.means, "longer", std::move(row));
  }
  if (lengths.empty() || lengths.back().factor < 2) {
    many.means.missing["longer"] =
        fmt::format("the file has {} tokens; twice the trained length is {}", corpus.num_tokens(),
                    2 * *trained);
  }
}

}  // namespace phasor::internal
