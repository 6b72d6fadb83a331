// In which layers positions are read: runs that show them to some layers' attentions alone.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lens/residual_stream.h"
#include "lens/study/measures.h"
#include "lens/study/rise.h"
#include "lens/study/run.h"
#include "lens/study/text.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMaskDraws = 5;  // of each text, where masked tokens are scored

/// What is left of vectors that are added to the tokens in the states after l = 0 … L − 1 layers,
/// through the norms of a recorded run: [L] of [T, C].
TextRows path(const Model& model, const Trace& trace, int64_t sequence, const TextRows& vectors) {
  const ModelConfig& config = model.config();
  ResidualStream stream(model, trace, sequence);
  stream.embed(vectors.empty() ? std::span<const float>() : vectors[sequence]);
  TextRows states;
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

/// A run, how the layers above go on, and the paths [L] through its own norms of what it has and
/// they do not: the vectors, or these with their signs changed.
struct Side {
  const MaskedRun& run;
  const RunOptions& above;
  std::vector<TextRows> paths = {};

  Side(const MaskedRun& its_run, const RunOptions& its_above, const TextRows& vectors)
      : run(its_run), above(its_above) {
    const Model& model = run.subject().model();
    paths.resize(model.config().num_layers);
    for (int64_t i = 0; i < std::ssize(run.texts()); ++i) {
      TextRows states = path(model, run.trace(), i, vectors);
      for (size_t l = 0; l < paths.size(); ++l) paths[l].push_back(std::move(states[l]));
    }
  }
};

/// Adds the losses of a run of which the first l attentions are this one's, and the others the
/// other one's.
void score_up_to(const Side& side, int64_t l, MaskedScore& score) {
  const TextRows& path = side.paths[l - 1];
  const bool adds = adds_vectors(side.run.subject()), acts = acts_in_attention(side.run.subject());
  if (!acts || l == std::ssize(side.paths))
    return side.run.score_without(Hook::kResidMid, l - 1, path, score);
  const TextRows below =
      adds ? side.run.state_without(Hook::kResidMid, l - 1, path) : side.run.state(l);
  side.run.score_from(l, below, side.above, score);
}

/// Squares of the words' states where an attention has been added, and of the path in them.
struct Energy {
  double path = 0, states = 0;

  void add(const MaskedRun& run, int64_t l, const TextRows& paths) {
    const int64_t width = run.subject().model().config().d_model;
    const TextRows rows = l == 0 ? run.state(0) : run.at(Hook::kResidMid, l - 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      for (const int64_t t : text_places(run.subject().model(), run.texts()[i].token_ids)) {
        for (int64_t c = t * width; c < (t + 1) * width; ++c) {
          path += static_cast<double>(paths[i][c]) * paths[i][c];
          states += static_cast<double>(rows[i][c]) * rows[i][c];
        }
      }
    }
  }
};

/// What is measured of a layer's attention and those before it.
struct LayerScores {
  MaskedScore first, later;     // positions are visible to attentions up to it, or behind it
  MaskedScore undoing, undone;  // its output with positions in the run without, and the reverse
  Draws random, shuffled;       // controls of `first`: other vectors are subtracted
  Energy energy;

  /// `with` and `without` are the two runs as they were recorded.
  void add(int64_t l, const Side& with, const Side& without, uint64_t seed) {
    const TextRows& path = with.paths[std::max<int64_t>(l - 1, 0)];
    energy.add(with.run, l, path);
    if (l == 0) return;
    score_up_to(with, l, first);
    score_up_to(without, l, later);
    const TextRows a = with.run.at(Hook::kAttnOut, l - 1),
                   b = without.run.at(Hook::kAttnOut, l - 1);
    without.run.score_without(Hook::kAttnOut, l - 1, less(b, a), undoing);
    with.run.score_without(Hook::kAttnOut, l - 1, less(a, b), undone);
    const int64_t width = with.run.subject().model().config().d_model;
    for (size_t draw = 0; draw < random.size(); ++draw, seed += path.size()) {
      with.run.score_without(Hook::kResidMid, l - 1, random_like(path, width, seed), random[draw]);
      with.run.score_without(Hook::kResidMid, l - 1, at_other_places(path, with.run, seed),
                             shuffled[draw]);
    }
  }
};

/// The mean over draws.
Rise::Share left_of(const Rise& rise, const Draws& draws) {
  Rise::Share mean = rise.left(draws[0]);
  for (size_t draw = 1; draw < draws.size(); ++draw) {
    const Rise::Share share = rise.left(draws[draw]);
    for (size_t i = 0; i < mean.part.size(); ++i) mean.part[i] += share.part[i];
  }
  for (double& part : mean.part) part /= static_cast<double>(draws.size());
  return mean;
}

/// A row of the view after layer 0, without its last cell, *present*.
Row row_of(int64_t l, const LayerScores& layer, Rise& rise) {
  Row row{.layer = l, .cells = {}};
  const Rise::Share left = rise.left(layer.first);
  rise.add(left, row);
  if (layer.random.empty()) {
    for (int column = 0; column < 3; ++column) add_cell(row, std::nan(""));
  } else {
    const Rise::Share random = left_of(rise, layer.random);
    Rise::Share read = left;
    for (size_t i = 0; i < read.part.size(); ++i) read.part[i] -= random.part[i];
    for (const Rise::Share& share : {random, read, left_of(rise, layer.shuffled)})
      rise.add(share, row);
  }
  for (const Rise::Share& share :
       {rise.undone(layer.later), rise.undone(layer.undoing), rise.left(layer.undone)})
    rise.add(share, row);
  return row;
}

TextRows negative(TextRows rows) {
  for (std::vector<float>& text : rows)
    for (float& x : text) x = -x;
  return rows;
}

/// Runs the texts of a rise with positions in some layers.
std::vector<LayerScores> scores_of(Rise& rise, const Many& many) {
  std::vector<LayerScores> layers(many.subject.model().config().num_layers + 1);
  if (adds_vectors(many.subject)) {
    for (LayerScores& layer : layers)
      layer.random = layer.shuffled = Draws(rise.by_loss() ? 1 : kDraws);
  }
  uint64_t seed = many.request.seed;
  rise.run([&](MaskedRun& with, MaskedRun& without, const TextRows& vectors) {
    const Side first(with, rise.without(), vectors), later(without, rise.with(), negative(vectors));
    for (int64_t l = 0; l < std::ssize(layers); ++l) layers[l].add(l, first, later, seed);
    seed += kDraws * with.texts().size();
  });
  return layers;
}

void add_table(const char* view, const std::vector<LayerScores>& layers, Rise& rise, Many& many) {
  if (!rise.is_there()) return;
  const bool adds = adds_vectors(many.subject);
  Rise::Share depth = rise.all();  // before the first attention, all is left
  for (size_t l = 0; l < layers.size(); ++l) {
    Row row{.layer = 0, .cells = {}};
    const double none = std::nan("");
    for (const double cell : {1.0, none, none, none, 1.0, none, none}) add_cell(row, cell);
    if (l > 0) row = row_of(static_cast<int64_t>(l), layers[l], rise);
    const Energy& energy = layers[l].energy;
    add_cell(row, adds ? energy.path / energy.states : std::nan(""));
    add_row(many.means, view, std::move(row));
    if (l == 0 || l + 1 == layers.size()) continue;
    const Rise::Share left = rise.left(layers[l].first);
    for (size_t i = 0; i < depth.part.size(); ++i) depth.part[i] += left.part[i];
  }
  many.means.tables[view].note =
      fmt::format("Mean depth {} of {} layers; without word positions {} are lost.",
                  with_bounds(ratio(depth.part, depth.whole), rise.interval(depth), 2),
                  layers.size() - 1, rise.lost());
}

}  // namespace

void score_reading(Many& many) {
  constexpr const char *kView = "reading", *kByAngle = "reading_angle";
  const bool asks_angle = many.request.asks(kByAngle);
  Rise rise(many, many.request.asks(kView) ? kView : kByAngle, Rise::By::kLossOrStates, kMaskDraws);
  if (many.request.asks(kView) || !rise.by_loss()) {
    const std::vector<LayerScores> layers = scores_of(rise, many);
    if (many.request.asks(kView)) add_table(kView, layers, rise, many);
    if (!rise.by_loss() && asks_angle) {
      rise.use_angles(kByAngle);
      add_table(kByAngle, layers, rise, many);
    }
  }
  if (!rise.by_loss() || !asks_angle) return;
  Rise by_states(many, kByAngle, Rise::By::kStates);
  by_states.use_angles(kByAngle);
  add_table(kByAngle, scores_of(by_states, many), by_states, many);
}

}  // namespace phasor::internal
