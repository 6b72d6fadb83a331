// What parts of a run are for: each is subtracted, and the loss on masked tokens measured.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "infer/experiment/many.h"
#include "infer/experiment/masked.h"
#include "infer/experiment/measures.h"
#include "phasor/lens.h"

namespace infer {
namespace {

using phasor::Hook;
using Vectors = std::vector<float>;  // [T, C]

constexpr int64_t kTokensAtOnce = 1024;  // of recorded runs
constexpr int64_t kSquares = 4;          // for a layer's position component

/// A batch of masked texts that was run unchanged.
struct Run {
  std::span<const MaskedText> texts;
  const phasor::Trace& trace;
};

/// A part of the run at a hook, which is subtracted there.
struct Part {
  std::string label;
  Hook hook;
  int64_t layer;
  std::function<std::vector<Vectors>(const Run&)> of;  // of each text
  MaskedScore without = {}, random = {};
};

/// What attention or an MLP writes.
Part block_part(const std::string& label, Hook hook, int64_t layer) {
  const auto of = [=](const Run& run) {
    std::vector<Vectors> parts;
    for (int64_t i = 0; i < std::ssize(run.texts); ++i)
      parts.push_back(run.trace.at(hook, layer, i).values);
    return parts;
  };
  return {fmt::format("{} {}", label, layer + 1), hook, layer, of};
}

/// The outputs of the heads of one layer after the other.
class HeadOutputs {
 public:
  explicit HeadOutputs(const phasor::Model& model) : model_(model) {}

  std::vector<Vectors> of(int64_t layer, int64_t head, const Run& run) {
    if (run.texts.data() != texts_ || layer != layer_) {
      texts_ = run.texts.data();
      layer_ = layer;
      outputs_.clear();
      for (int64_t i = 0; i < std::ssize(run.texts); ++i)
        outputs_.push_back(phasor::head_outputs(model_, run.trace, layer, i));
    }
    std::vector<Vectors> of_head;
    for (const std::vector<Vectors>& text : outputs_) of_head.push_back(text[head]);
    return of_head;
  }

 private:
  const phasor::Model& model_;
  const MaskedText* texts_ = nullptr;  // the batch, and the layer, of the outputs
  int64_t layer_ = -1;
  std::vector<std::vector<Vectors>> outputs_;  // of each text: [H]
};

Part head_part(HeadOutputs& outputs, int64_t layer, int64_t head) {
  const auto of = [&outputs, layer, head](const Run& run) { return outputs.of(layer, head, run); };
  return {fmt::format("head {}.{}", layer + 1, head + 1), Hook::kAttnOut, layer, of};
}

/// Less the mean row.
void center(Vectors& rows, int64_t d_model) {
  for (int64_t c = 0; c < d_model; ++c) {
    double sum = 0;
    for (size_t i = c; i < rows.size(); i += d_model) sum += rows[i];
    const double mean = sum * static_cast<double>(d_model) / static_cast<double>(rows.size());
    for (size_t i = c; i < rows.size(); i += d_model) rows[i] -= static_cast<float>(mean);
  }
}

/// The added vectors as they leave the embedding, less their mean, which says nothing about a
/// place; subtracted when the first block's attention has read them.
Part direct_part(const phasor::Model& model) {
  const auto of = [&model](const Run& run) {
    std::vector<Vectors> parts(run.texts.size());
    for (int64_t i = 0; i < std::ssize(run.texts); ++i) {
      const auto take = [&](int64_t l, std::span<const phasor::ResidualPart> of_state) {
        if (l != 0) return;
        for (const phasor::ResidualPart& part : of_state) {
          if (part.source == phasor::ResidualSource::kPosition)
            parts[i].assign(part.values.begin(), part.values.end());
        }
        center(parts[i], model.config().d_model);
      };
      phasor::for_each_residual_state(model, run.trace, i, take);
    }
    return parts;
  };
  return {"direct path", Hook::kResidMid, 0, of};
}

/// The position components of hidden_states[l], from random orders of each masked text.
class PositionComponents {
 public:
  PositionComponents(const Subject& subject, uint64_t seed) : subject_(subject), seed_(seed) {}

  std::vector<Vectors> at(int64_t l, const Run& run) {
    if (run.texts.data() != texts_) measure(run);
    std::vector<Vectors> of_layer;
    for (const std::vector<Vectors>& text : components_) of_layer.push_back(text[l]);
    return of_layer;
  }

 private:
  void measure(const Run& run) {
    texts_ = run.texts.data();
    components_.clear();
    for (const MaskedText& text : run.texts) {
      const std::vector<int64_t> places = text_places(subject_.model(), text.token_ids);
      const int64_t C = subject_.model().config().d_model;
      std::vector<Vectors>& layers = components_.emplace_back();
      if (places.size() < 2) {
        layers.assign(subject_.model().config().num_layers + 1, Vectors(text.token_ids.size() * C));
        continue;
      }
      for (const phasor::TokenSplit& split : phasor::latin_square_split(
               subject_.encoder, text.token_ids, places, subject_.options, kSquares, seed_)) {
        Vectors& rows = layers.emplace_back(text.token_ids.size() * C);
        for (int64_t p = 0; p < std::ssize(places); ++p) {
          for (int64_t c = 0; c < C; ++c)
            rows[places[p] * C + c] = static_cast<float>(split.position_means[p * C + c]);
        }
      }
    }
  }

  const Subject& subject_;
  uint64_t seed_;
  const MaskedText* texts_ = nullptr;             // the batch of the components
  std::vector<std::vector<Vectors>> components_;  // of each text: [L + 1]
};

std::vector<Part> parts_of(const Subject& subject, PositionComponents& positions,
                           HeadOutputs& heads) {
  const phasor::Model& model = subject.model();
  const phasor::ModelConfig& config = model.config();
  std::vector<Part> parts;
  if (adds_vectors(subject) && subject.options.cut_residuals.empty())
    parts.push_back(direct_part(model));
  for (int64_t l = 0; l < config.num_layers; ++l) {
    const auto of = [l, &positions](const Run& run) { return positions.at(l, run); };
    parts.push_back({fmt::format("position {}", l), Hook::kResidPre, l, of});
  }
  for (int64_t l = 0; l < config.num_layers; ++l)
    parts.push_back(block_part("attention", Hook::kAttnOut, l));
  for (int64_t l = 0; l < config.num_layers; ++l)
    parts.push_back(block_part("MLP", Hook::kMlpOut, l));
  for (int64_t l = 0; l < config.num_layers; ++l) {
    for (int64_t h = 0; h < config.num_heads; ++h) parts.push_back(head_part(heads, l, h));
  }
  return parts;
}

/// Batches of few tokens, because whole runs of them are recorded.
std::vector<std::span<const MaskedText>> batches(std::span<const MaskedText> texts) {
  std::vector<std::span<const MaskedText>> batches;
  size_t first = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto more = std::ssize(texts[i].token_ids);
    if (i > first && tokens + more > kTokensAtOnce) {
      batches.push_back(texts.subspan(first, i - first));
      first = i;
      tokens = 0;
    }
    tokens += more;
  }
  if (first < texts.size()) batches.push_back(texts.subspan(first));
  return batches;
}

std::vector<Vectors> random_like(const std::vector<Vectors>& parts, int64_t d_model,
                                 uint64_t seed) {
  std::vector<Vectors> random;
  for (const Vectors& part : parts) random.push_back(phasor::random_rows(part, d_model, seed++));
  return random;
}

/// By how much losses are above others, mask by mask.
void add_difference(const MaskedScore& losses, const MaskedScore& others, Row& row) {
  std::vector<double> differences;
  for (size_t i = 0; i < losses.losses.size(); ++i)
    differences.push_back(losses.losses[i] - others.losses[i]);
  const Estimate difference = estimate(differences, losses.texts);
  row.add(difference.mean, difference.interval);
}

}  // namespace

void score_causes(Many& many) {
  if (!can_mask(many, {"causes"})) return;
  const Subject& subject = many.subject;
  const uint64_t seed = many.request.seed;
  const Corpus corpus = tokenize_corpus(subject.model(), many.request.lines);
  const std::vector<MaskedText> texts =
      masked_texts(subject.model(), corpus, most_tokens(many), seed);
  const auto limit = subject.model().max_tokens(subject.options.positions);
  if (limit && subject.options.overflow == phasor::Overflow::kWindow &&
      std::ranges::any_of(
          texts, [&](const MaskedText& text) { return std::ssize(text.token_ids) > *limit; })) {
    many.means.missing["causes"] = "a text was run in overlapping windows";
    return;
  }
  PositionComponents positions(subject, seed);
  HeadOutputs heads(subject.model());
  std::vector<Part> parts = parts_of(subject, positions, heads);
  MaskedScore unchanged, without_positions;
  phasor::RunOptions averaged = subject.options;
  averaged.positions = subject.options.positions.edited(many.request.without);
  int64_t number = 0;  // of the batch's first text
  for (const std::span<const MaskedText> batch : batches(texts)) {
    const auto score = [&](phasor::RunOptions options, phasor::Observer* observer,
                           MaskedScore& result) {
      options.observer = observer;
      add_scores(subject.encoder, options, batch, number, std::span(&result, 1));
    };
    phasor::Trace trace{
        Hook::kTokenEmbed, Hook::kPosEmbed,  Hook::kTokenTypeEmbed,     Hook::kFullEmbed,
        Hook::kZ,          Hook::kAttnOut,   Hook::kResidMid,           Hook::kMlpOut,
        Hook::kResidPost,  Hook::kFinalNorm, Hook::kNormalizedResidPost};
    score(subject.options, &trace, unchanged);
    score(averaged, nullptr, without_positions);
    const Run run{batch, trace};
    for (size_t k = 0; k < parts.size(); ++k) {
      many.progress.show("parts of masked texts",
                         number * std::ssize(parts) + static_cast<int64_t>(k * batch.size()),
                         std::ssize(texts) * std::ssize(parts));
      Part& part = parts[k];
      std::vector<Vectors> rows = part.of(run);
      phasor::Subtraction control(
          part.hook, part.layer,
          random_like(rows, subject.model().config().d_model,
                      seed + (k * texts.size() + static_cast<size_t>(number))));
      phasor::Subtraction removal(part.hook, part.layer, std::move(rows));
      score(subject.options, &removal, part.without);
      score(subject.options, &control, part.random);
    }
    number += std::ssize(batch);
  }
  Row row{.label = "positions", .cells = {}};
  add_difference(without_positions, unchanged, row);
  row.add(std::nan(""));
  row.add(std::nan(""));
  many.means.add("causes", std::move(row));
  for (const Part& part : parts) {
    Row of_part{.label = part.label, .cells = {}};
    add_difference(part.without, unchanged, of_part);
    add_difference(part.random, unchanged, of_part);
    add_difference(part.without, part.random, of_part);
    many.means.add("causes", std::move(of_part));
  }
}

}  // namespace infer
