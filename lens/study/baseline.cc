#include "lens/study/baseline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

namespace phasor::internal {

Baseline::Baseline(std::span<const Subject> subjects, int64_t seeds, int threads) {
  for (int64_t seed = 1; seed <= seeds; ++seed) {
    std::vector<Subject>& of_seed = subjects_.emplace_back();
    std::map<const Encoder*, Encoder*> untrained;
    for (const Subject& subject : subjects) {
      Encoder*& encoder = untrained[&subject.encoder];
      if (encoder == nullptr) {
        encoder = &encoders_.emplace_back(
            subject.model().untrained(static_cast<uint64_t>(seed)),
            EncoderOptions{.threads = threads, .precision = subject.encoder.precision()});
      }
      const bool alone = subjects.size() == 1;
      of_seed.push_back({.label = alone ? "untrained" : subject.label + " (untrained)",
                         .name = subject.name,
                         .encoder = *encoder,
                         .options = subject.options,
                         .edits = subject.edits});
    }
  }
}

Observed over_seeds(std::span<const Observed> seeds) {
  Observed all = seeds[0];
  all.untrained = std::ssize(seeds);
  all.masks.clear();
  all.masked = {};
  all.position_vectors.clear();
  all.patterns.clear();
  all.heads.clear();
  all.position_means.clear();
  for (auto& [name, table] : all.tables) {
    table.note.clear();
    for (Row& row : table.rows) {
      const Row place = std::exchange(row, {row.layer, row.head, row.label, {}});
      std::vector<const Row*> found;  // of the seeds
      for (const Observed& seed : seeds) {
        const Table* const of_seed = seed.table(name);
        const Row* const same = of_seed == nullptr ? nullptr : of_seed->find(place);
        if (same != nullptr) found.push_back(same);
      }
      for (size_t c = 0; c < place.cells.size(); ++c) {
        std::vector<double> values;
        for (const Row* same : found) {
          if (!std::isnan(same->cells[c])) values.push_back(same->cells[c]);
        }
        if (values.size() < 2) {
          row.add(values.empty() ? std::nan("") : values[0]);
          continue;
        }
        const double sum = std::accumulate(values.begin(), values.end(), 0.0);
        const auto [low, high] = std::ranges::minmax(values);
        row.add(sum / static_cast<double>(values.size()), {low, high});
      }
    }
  }
  return all;
}

}  // namespace phasor::internal
