// In which layers positions are read: runs that show them to the first l attentions alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "lens/residual_stream.h"
#include "lens/study/masked_run.h"
#include "lens/study/measures.h"
#include "lens/study/text.h"

namespace phasor::internal {
namespace {

/// The vectors that are added to words, less their mean over the words; 0 at special tokens. Empty
/// where none are added. [T, E]
std::vector<float> centered_vectors(const Model& model, const Trace& trace, int64_t sequence,
                                    std::span<const int64_t> words) {
  if (!trace.has(Hook::kPosEmbed, -1, sequence)) return {};
  const std::vector<float>& added = trace.at(Hook::kPosEmbed, -1, sequence).values;
  const int64_t width = model.config().embedding_width();
  std::vector<float> centered(added.size());
  for (int64_t c = 0; c < width && !words.empty(); ++c) {
    double mean = 0;
    for (const int64_t t : words) mean += added[t * width + c];
    mean /= static_cast<double>(words.size());
    for (const int64_t t : words)
      centered[t * width + c] = static_cast<float>(added[t * width + c] - mean);
  }
  return centered;
}

/// What is left of them in the states after l = 0 … L − 1 layers, through frozen norms: [L] of [T,
/// C].
std::vector<std::vector<float>> path(const Model& model, const Trace& trace, int64_t sequence,
                                     std::span<const int64_t> words) {
  const ModelConfig& config = model.config();
  const std::vector<float> vectors = centered_vectors(model, trace, sequence, words);
  ResidualStream stream(model, trace, sequence);
  stream.embed(vectors);
  std::vector<std::vector<float>> states;
  for (int64_t l = 0; l < config.num_layers; ++l) {
    std::vector<float>& state = states.emplace_back(stream.num_tokens() * config.d_model);
    for (const ResidualPart& part : stream.parts()) {
      if (part.source == ResidualSource::kPosition && part.head == 0)
        state.assign(part.values.begin(), part.values.end());
    }
    if (config.norm_order != NormOrder::kPostNorm) continue;
    const BlockWeights& block = model.weights().blocks[config.block_of(l)];
    stream.normalize(block.attn_norm, stream.values(Hook::kResidMid, l));
    stream.normalize(block.mlp_norm, stream.values(Hook::kResidPost, l));
  }
  return states;
}

/// 1 − cosine of each word's last state with that of the run as it is, both less the mean of that
/// run's over all words.
class Distances {
 public:
  explicit Distances(int64_t d_model) : d_model_(d_model), mean_(d_model) {}

  void keep(const Encoding& encoding, std::span<const MaskedText> texts) {
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      for (const int64_t t : texts[i].places) {
        const auto row = encoding.hidden(i).subspan(t * d_model_, d_model_);
        states_.insert(states_.end(), row.begin(), row.end());
        for (int64_t c = 0; c < d_model_; ++c) mean_[c] += row[c];
      }
    }
  }
  void kept_all() {
    const auto count = static_cast<double>(std::max<size_t>(states_.size() / d_model_, 1));
    for (double& sum : mean_) sum /= count;
  }
  /// Of texts in the order in which they were kept, the first of which has the number `first_text`.
  void add(const Encoding& encoding, std::span<const MaskedText> texts, int64_t first_text,
           MaskedScore& score) const {
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      for (const int64_t t : texts[i].places) {
        const auto number = std::ssize(score.losses);
        const auto row = encoding.hidden(i).subspan(t * d_model_, d_model_);
        double ab = 0, aa = 0, bb = 0;
        for (int64_t c = 0; c < d_model_; ++c) {
          const double a = states_[number * d_model_ + c] - mean_[c], b = row[c] - mean_[c];
          ab += a * b, aa += a * a, bb += b * b;
        }
        score.losses.push_back(aa * bb > 0 ? 1 - ab / std::sqrt(aa * bb) : 0);
        score.texts.push_back(first_text + i);
      }
    }
  }

 private:
  int64_t d_model_;
  std::vector<double> mean_;
  std::vector<float> states_;  // of all words
};

/// Σ (a − c) and Σ (b − c) of each block of texts: what is left, and the whole.
struct Shares {
  std::vector<double> left, whole;

  Shares(const MaskedScore& some, const MaskedScore& without, const MaskedScore& with) {
    const int64_t most = with.texts.empty() ? -1 : std::ranges::max(with.texts);
    left.resize(std::min(most + 1, kMostBlocks));
    whole.resize(left.size());
    for (size_t i = 0; i < with.losses.size(); ++i) {
      left[with.texts[i] % kMostBlocks] += some.losses[i] - with.losses[i];
      whole[with.texts[i] % kMostBlocks] += without.losses[i] - with.losses[i];
    }
  }
  double ratio() const {
    return std::accumulate(left.begin(), left.end(), 0.0) /
           std::accumulate(whole.begin(), whole.end(), 0.0);
  }
};

/// The texts whose words are compared, cut to what the run takes; none, and why is noted, where
/// they cannot be.
std::vector<MaskedText> texts_without_masks(Many& many) {
  const Model& model = many.subject.model();
  if (!model.has_tokenizer()) {
    many.means.missing["reading"] = "the checkpoint has no tokenizer that phasor reads";
    return {};
  }
  const Corpus corpus = tokenize_corpus(model, many.request.lines);
  const int64_t most = most_tokens(many.subject, many.request);
  const auto room =
      std::max<int64_t>(most - std::ssize(corpus.prefix) - std::ssize(corpus.suffix), 1);
  std::vector<MaskedText> texts;
  for (std::span<const int32_t> words : corpus.texts) {
    if (most > 0 && std::ssize(words) > room) words = words.first(room);
    MaskedText text{.token_ids = corpus.prefix, .places = {}, .hidden = {}};
    for (const int32_t word : words) {
      text.places.push_back(std::ssize(text.token_ids));
      text.token_ids.push_back(word);
    }
    text.token_ids.insert(text.token_ids.end(), corpus.suffix.begin(), corpus.suffix.end());
    texts.push_back(std::move(text));
  }
  if (are_in_windows(many, "reading", many.subject, texts)) return {};
  return texts;
}

}  // namespace

void score_reading(Many& many) {
  const lens::Run& subject = many.subject;
  const Model& model = subject.model();
  const int64_t num_layers = model.config().num_layers;
  if (!subject.options.cut_residuals.empty()) {
    many.means.missing["reading"] = "a residual connection is cut";
    return;
  }
  const bool by_loss = model.weights().mlm_head && mask_to_fill(model);
  const std::vector<MaskedText> texts =
      by_loss ? recordable_texts(many, "reading", {&subject}) : texts_without_masks(many);
  if (texts.empty()) {
    many.means.missing.try_emplace("reading", "no text has a word");
    return;
  }
  RunOptions without = subject.options;
  without.positions = subject.options.positions.edited(many.request.without);
  Distances distances(model.config().d_model);
  const auto batches = recordable_batches(texts);
  if (!by_loss) {
    for (const std::span<const MaskedText> batch : batches) {
      std::vector<std::vector<int32_t>> ids;
      for (const MaskedText& text : batch) ids.push_back(text.token_ids);
      distances.keep(subject.encoder->encode_ids(ids, subject.options), batch);
    }
    distances.kept_all();
  }
  const Scorer scorer =
      by_loss ? Scorer()
              : [&](const Encoding& encoding, std::span<const MaskedText> batch, int64_t first,
                    MaskedScore& score) { distances.add(encoding, batch, first, score); };
  MaskedScore with;
  std::vector<MaskedScore> visible(num_layers + 1);  // to the first l attentions
  int64_t number = 0;                                // of the batch's first text
  for (const std::span<const MaskedText> batch : batches) {
    MaskedRun run(subject, batch, number, many.request.seed, with, scorer);
    std::vector<TextRows> paths(num_layers);
    for (int64_t i = 0; i < std::ssize(batch); ++i) {
      std::vector<std::vector<float>> states =
          path(model, run.trace(), i, text_places(model, batch[i].token_ids));
      for (int64_t l = 0; l < num_layers; ++l) paths[l].push_back(std::move(states[l]));
    }
    TextRows first = run.state(0);
    for (size_t i = 0; i < first.size(); ++i)
      for (size_t k = 0; k < first[i].size(); ++k) first[i][k] -= paths[0][i][k];
    run.score_from(0, first, without, visible[0]);
    for (int64_t l = 1; l <= num_layers; ++l) {
      many.stages.show("layers of texts", number * num_layers + l * std::ssize(batch),
                       std::ssize(texts) * num_layers);
      if (l == num_layers) {
        run.score_without(Hook::kResidMid, l - 1, paths[l - 1], visible[l]);
      } else {
        const TextRows states = run.state_without(Hook::kResidMid, l - 1, paths[l - 1]);
        run.score_from(l, states, without, visible[l]);
      }
    }
    number += std::ssize(batch);
  }
  const double rise = visible[0].loss().mean - with.loss().mean;
  if (!(rise > 1e-6)) {
    many.means.missing["reading"] = "without positions nothing is lost";
    return;
  }
  Intervals intervals;
  std::vector<double> depth, whole;
  for (int64_t l = 0; l <= num_layers; ++l) {
    const Shares shares(visible[l], visible[0], with);
    Row row{.layer = l, .cells = {}};
    add_cell(row, shares.ratio(), intervals.of(shares.left, shares.whole));
    add_difference(visible[l], with, row);
    add_row(many.means, "reading", std::move(row));
    if (l == num_layers) break;
    depth.resize(shares.left.size());
    for (size_t i = 0; i < depth.size(); ++i) depth[i] += shares.left[i];
    whole = shares.whole;
  }
  const double mean = std::accumulate(depth.begin(), depth.end(), 0.0) /
                      std::accumulate(whole.begin(), whole.end(), 0.0);
  const Interval interval = intervals.of(depth, whole);
  const std::string bounds =
      std::isnan(interval.low) ? "" : fmt::format(" [{:.2f}, {:.2f}]", interval.low, interval.high);
  many.means.tables["reading"].note =
      fmt::format("Mean depth {:.2f}{} of {} layers, by {}.", mean, bounds, num_layers,
                  by_loss ? "the loss on masked tokens" : "1 − cosine of the words' last states");
}

}  // namespace phasor::internal
