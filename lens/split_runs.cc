// The runs of a split: all rotations of one text, or many texts.

#include "lens/batched_states.h"
#include "lens/rows.h"
#include "phasor/lens/split.h"

namespace phasor {
using namespace internal;

namespace {

void check_places(std::span<const int64_t> places, int64_t num_tokens) {
  if (places.empty()) {
    throw InvalidArgument("there are no places to split; give at least one");
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

// The split of `count` sequences, where the token at places[p] of sequence s is in group(s, p).
template <typename Group>
std::vector<Split> split(Encoder& encoder, int64_t count, const SequenceMaker& make, Group group,
                         std::span<const int64_t> places, const RunOptions& options,
                         const Progress& progress) {
  const ModelConfig& config = encoder.model().config();
  std::vector<TwoWaySplit> splits(config.num_layers + 1,
                                  TwoWaySplit(std::ssize(places), count, config.d_model));
  const auto add = [&](int64_t l, int64_t s, std::span<const float> states) {
    for (int64_t p = 0; p < std::ssize(places); ++p) {
      splits[l].add(p, group(s, p), states.subspan(places[p] * config.d_model, config.d_model));
    }
  };
  for_each_state(encoder, count, make, options, progress, add);
  std::vector<Split> results;
  for (const TwoWaySplit& split : splits) results.push_back(split.result());
  return results;
}

}  // namespace

std::vector<Split> latin_square_split(Encoder& encoder, std::span<const int32_t> token_ids,
                                      std::span<const int64_t> movable, const RunOptions& options,
                                      const Progress& progress) {
  check_places(movable, std::ssize(token_ids));
  const auto n = std::ssize(movable);
  const auto group = [&](int64_t rotation, int64_t position) { return (position + rotation) % n; };
  const auto rotated = [&](int64_t rotation) {
    std::vector<int32_t> ids(token_ids.begin(), token_ids.end());
    for (int64_t p = 0; p < n; ++p) ids[movable[p]] = token_ids[movable[group(rotation, p)]];
    return ids;
  };
  return split(encoder, n, rotated, group, movable, options, progress);
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
  check_places(places, num_tokens);
  const auto ids = [&](int64_t text) { return sequences[text]; };
  const auto group = [](int64_t text, int64_t) { return text; };
  return split(encoder, count, ids, group, places, options, progress);
}

}  // namespace phasor
