// The runs that a split is made from, batch after batch, so that few states are in memory at once.

#include <algorithm>
#include <variant>

#include "lens/rows.h"
#include "phasor/lens/split.h"
#include "phasor/trace.h"

namespace phasor {
namespace {

constexpr int64_t kBatchTokens = 4096;
constexpr int64_t kBatchBytes = int64_t{128} << 20;  // of recorded states

// Sequences of equal length, and the group of each of their places.
struct Design {
  int64_t num_sequences;
  int64_t num_groups;
  std::function<std::vector<int32_t>(int64_t sequence)> token_ids;
  std::function<int64_t(int64_t sequence, int64_t position)> group;
};

Trace hidden_states_of(const ModelConfig& config) {
  const bool post_norm = config.norm_order == NormOrder::kPostNorm;
  return Trace{Hook::kFullEmbed, post_norm ? Hook::kNormalizedResidPost : Hook::kResidPost,
               Hook::kFinalNorm};
}

bool given_token_by_token(const Positions& positions) {
  return std::any_of(positions.edits().begin(), positions.edits().end(),
                     [](const auto& edit) { return std::holds_alternative<Positions::At>(edit); });
}

int64_t batch_size(const ModelConfig& config, int64_t num_tokens, const RunOptions& options) {
  if (given_token_by_token(options.positions)) return 1;
  const int64_t token_bytes =
      (config.num_layers + 1) * config.d_model * static_cast<int64_t>(sizeof(float));
  const int64_t tokens = std::min(kBatchTokens, kBatchBytes / token_bytes);
  return std::max<int64_t>(1, tokens / num_tokens);
}

void check_places(std::span<const int64_t> places, int64_t num_tokens) {
  if (places.empty()) {
    throw InvalidArgument("no token of the text is movable; a split needs at least one");
  }
  for (size_t i = 0; i < places.size(); ++i) {
    check_place(places[i], num_tokens);
    if (i > 0 && places[i] <= places[i - 1]) {
      throw InvalidArgument(
          fmt::format("place {} comes after place {}; give each place once, in ascending order",
                      places[i], places[i - 1]));
    }
  }
}

std::vector<Split> split(Encoder& encoder, const Design& design, std::span<const int64_t> places,
                         int64_t num_tokens, const RunOptions& options, const Progress& progress) {
  check_places(places, num_tokens);
  const ModelConfig& config = encoder.model().config();
  std::vector<TwoWaySplit> splits(
      config.num_layers + 1, TwoWaySplit(std::ssize(places), design.num_groups, config.d_model));
  Trace trace = hidden_states_of(config);
  RunOptions run = options;
  run.observer = &trace;
  run.pooling = Pooling();  // not used: the cheapest
  const int64_t size = batch_size(config, num_tokens, options);
  for (int64_t first = 0; first < design.num_sequences; first += size) {
    const int64_t last = std::min(first + size, design.num_sequences);
    std::vector<std::vector<int32_t>> batch;
    for (int64_t s = first; s < last; ++s) batch.push_back(design.token_ids(s));
    trace.clear();
    const Encoding encoding = encoder.encode_ids(batch, run);
    if (encoding.num_tokens(0) != num_tokens) {
      throw InvalidArgument(fmt::format(
          "the run cut {} tokens to {}; give no more, or choose another overflow policy",
          num_tokens, encoding.num_tokens(0)));
    }
    // In order, whatever the order in which the sequences were done: the same bits every time.
    for (int64_t l = 0; l <= config.num_layers; ++l) {
      for (int64_t s = first; s < last; ++s) {
        const std::span<const float> states = trace.hidden_state(l, s - first).values;  // [T, C]
        for (int64_t p = 0; p < std::ssize(places); ++p) {
          splits[l].add(p, design.group(s, p),
                        states.subspan(places[p] * config.d_model, config.d_model));
        }
      }
    }
    if (progress) progress(last, design.num_sequences);
  }
  std::vector<Split> results;
  for (const TwoWaySplit& split : splits) results.push_back(split.result());
  return results;
}

}  // namespace

std::vector<Split> latin_square_split(Encoder& encoder, std::span<const int32_t> token_ids,
                                      std::span<const int64_t> movable, const RunOptions& options,
                                      const Progress& progress) {
  const auto n = std::ssize(movable);
  const auto group = [&](int64_t rotation, int64_t position) { return (position + rotation) % n; };
  const auto rotated = [&](int64_t rotation) {
    std::vector<int32_t> ids(token_ids.begin(), token_ids.end());
    for (int64_t p = 0; p < n; ++p) ids[movable[p]] = token_ids[movable[group(rotation, p)]];
    return ids;
  };
  return split(encoder, {n, n, rotated, group}, movable, std::ssize(token_ids), options, progress);
}

std::vector<Split> corpus_split(Encoder& encoder, std::span<const std::vector<int32_t>> sequences,
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
  const auto ids = [&](int64_t text) { return sequences[text]; };
  const auto group = [](int64_t text, int64_t) { return text; };
  return split(encoder, {count, count, ids, group}, places, num_tokens, options, progress);
}

}  // namespace phasor
