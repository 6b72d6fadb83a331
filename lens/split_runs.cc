// The runs of a split: the orders of one text, or many texts.

#include <algorithm>
#include <random>

#include "lens/batched_states.h"
#include "lens/latin_squares.h"
#include "lens/matrix.h"
#include "lens/rows.h"
#include "phasor/lens/split.h"

namespace phasor {
using namespace internal;

namespace {

// At most, for the cells' sums of all layers; see latin_square_split().
constexpr int64_t kCellBytes = int64_t{64} << 20;

// For splits of one text whose n tokens move.
std::vector<int64_t> kept_diagonals(int64_t n, const ModelConfig& config, std::mt19937_64& random) {
  const int64_t bytes =
      n * config.d_model * (config.num_layers + 1) * static_cast<int64_t>(sizeof(double));
  std::vector<int64_t> diagonals = permutation(n, random);
  diagonals.resize(std::clamp<int64_t>(kCellBytes / bytes, 1, n));
  return diagonals;
}

}  // namespace

std::vector<TokenSplit> latin_square_split(const Encoder& encoder,
                                           std::span<const int32_t> token_ids,
                                           std::span<const int64_t> movable,
                                           const RunOptions& options, int64_t num_squares,
                                           uint64_t seed, const Progress& progress) {
  std::mt19937_64 random(seed);
  const LatinSquares squares(token_ids, movable, num_squares, random);
  const ModelConfig& config = encoder.model().config();
  std::vector<LatinSquareSplit> splits(
      config.num_layers + 1,
      LatinSquareSplit(squares.n(), config.d_model, kept_diagonals(squares.n(), config, random)));
  const auto add = [&](int64_t l, int64_t run, std::span<const float> states) {
    for (int64_t p = 0; p < squares.n(); ++p) {
      splits[l].add(p, squares.token(run, p),
                    states.subspan(squares.place(p) * config.d_model, config.d_model));
    }
  };
  const auto ids = [&](int64_t run) { return squares.ids(run); };
  for_each_state(encoder, squares.num_runs(), ids, options, progress, add);
  std::vector<TokenSplit> results;
  for (const LatinSquareSplit& split : splits) results.push_back(split.result());
  return results;
}

std::vector<std::vector<std::vector<double>>> position_components(
    const Encoder& encoder, std::span<const int32_t> token_ids, std::span<const int64_t> movable,
    std::span<const Hook> hooks, const RunOptions& options, int64_t num_squares, uint64_t seed) {
  std::mt19937_64 random(seed);
  const LatinSquares squares(token_ids, movable, num_squares, random);
  const int64_t C = encoder.model().config().d_model, L = encoder.model().config().num_layers;
  std::vector<Hook> recorded = {Hook::kFullEmbed};
  for (const Hook hook : hooks) {
    if (!is_block_hook(hook))
      throw InvalidArgument(
          fmt::format("{} is not a block's; give a hook that is", hook_path(hook, -1)));
    recorded.push_back(hook);
  }
  std::vector<Matrix> sums(std::ssize(hooks) * L, Matrix::Zero(squares.n(), C));  // [hooks, L]
  const auto add = [&](const Trace& trace, int64_t, int64_t count) {
    for (int64_t k = 0; k < std::ssize(sums); ++k) {
      for (int64_t i = 0; i < count; ++i) {
        const std::vector<float>& values = trace.at(hooks[k / L], k % L, i).values;
        if (std::ssize(values) != squares.num_tokens() * C) {
          throw InvalidArgument(
              fmt::format("{} has no rows of d_model {}", hook_path(hooks[k / L], k % L), C));
        }
        for (int64_t p = 0; p < squares.n(); ++p) {
          const float* const row = &values[squares.place(p) * C];
          sums[k].row(p) += Eigen::Map<const Eigen::RowVectorXf>(row, C).cast<double>();
        }
      }
    }
  };
  for_each_batch(
      encoder, squares.num_runs(), [&](int64_t run) { return squares.ids(run); }, options, {},
      Trace(std::move(recorded)), add);
  std::vector<std::vector<std::vector<double>>> components(hooks.size());
  for (int64_t k = 0; k < std::ssize(sums); ++k) {
    sums[k] /= static_cast<double>(squares.num_runs());
    sums[k].rowwise() -= sums[k].colwise().mean().eval();
    components[k / L].push_back(to_vector(sums[k]));
  }
  return components;
}

std::vector<Split> corpus_split(const Encoder& encoder,
                                std::span<const std::vector<int32_t>> sequences,
                                std::span<const int64_t> places, const RunOptions& options,
                                const Progress& progress) {
  const auto count = std::ssize(sequences);
  if (count == 0) throw InvalidArgument("there are no texts to split; give at least one");
  const auto num_tokens = std::ssize(sequences.front());
  for (int64_t s = 0; s < count; ++s) {
    if (std::ssize(sequences[s]) == num_tokens) continue;
    throw InvalidArgument(
        fmt::format("text {} has {} tokens, the first {}; a split over texts needs equal lengths, "
                    "so cut the longer and leave out the shorter",
                    s, sequences[s].size(), num_tokens));
  }
  check_places(places, num_tokens);
  const ModelConfig& config = encoder.model().config();
  std::vector<TwoWaySplit> splits(config.num_layers + 1,
                                  TwoWaySplit(std::ssize(places), count, config.d_model));
  const auto add = [&](int64_t l, int64_t text, std::span<const float> states) {
    for (int64_t p = 0; p < std::ssize(places); ++p) {
      splits[l].add(p, text, states.subspan(places[p] * config.d_model, config.d_model));
    }
  };
  const auto ids = [&](int64_t text) { return sequences[text]; };
  for_each_state(encoder, count, ids, options, progress, add);
  std::vector<Split> results;
  for (const TwoWaySplit& split : splits) results.push_back(split.result());
  return results;
}

}  // namespace phasor
