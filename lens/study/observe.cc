// observe() and observe_means(): run texts in batches, in each run and in its untrained models.
#include "phasor/lens/observe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "files/spelling.h"
#include "lens/study/means.h"
#include "lens/study/measures.h"
#include "phasor/errors.h"

namespace phasor::internal {
namespace {

using Runs = std::vector<lens::Run>;
constexpr int64_t kMostUntrained = 10;
constexpr const char* kOtherTokens = "the two tokenizers make different tokens";

void name_runs(Runs& runs, const lens::ObserveOptions& options) {
  if (runs.size() == 1 && options.baseline.models > 0 && runs[0].label.empty())
    runs[0].label = "trained";
  if (runs.size() == 1) return;
  for (lens::Run& run : runs) {
    if (run.label.empty()) run.label = short_name(run.name);
  }
  if (runs[0].label != runs[1].label || runs[0].label.empty()) return;
  const bool alike = runs[0].name == runs[1].name;
  for (size_t side = 0; side < 2; ++side)
    runs[side].label = runs[side].name + (alike ? fmt::format(" ({})", side + 1) : "");
}

/// Checks the runs and gives each its label and the call's stop token.
Runs checked(std::span<const lens::Run> runs, const lens::ObserveOptions& options) {
  if (runs.empty() || runs.size() > 2)
    throw InvalidArgument(fmt::format("give one run, or two; there are {}", runs.size()));
  const int64_t untrained = options.baseline.models;
  if (untrained < 0 || untrained > kMostUntrained)
    throw InvalidArgument(
        fmt::format("give 0 to {} untrained models, not {}", kMostUntrained, untrained));
  Runs checked(runs.begin(), runs.end());
  for (lens::Run& run : checked) {
    RunOptions& own = run.options;
    if (run.encoder == nullptr) throw InvalidArgument("a run has no encoder");
    if (own.observer != nullptr || !own.hidden.empty() || !own.token_types.empty() ||
        own.first_block != 0 || own.stop.stop_possible())
      throw InvalidArgument("of a run's options only positions, overflow and cut_residuals count");
    own.positions.edited(options.without);  // throws what it lacks
    own.stop = options.stop;
  }
  name_runs(checked, options);
  return checked;
}

/// The same runs of untrained models; runs that share an encoder share the untrained one, too.
struct Untrained {
  Untrained(const Runs& trained, uint64_t seed, Spread spread) : runs(trained) {
    const std::string name = spread == Spread::kOwn ? "own spread" : "untrained";
    std::map<const Encoder*, Encoder*> of;
    for (lens::Run& run : runs) {
      Encoder*& encoder = of[run.encoder];
      if (encoder == nullptr) {
        encoder = &encoders.emplace_back(run.model().untrained(seed, spread),
                                         EncoderOptions{.threads = run.encoder->threads(),
                                                        .precision = run.encoder->precision(),
                                                        .kernels = run.encoder->kernels()});
      }
      run.encoder = encoder;
      run.label = runs.size() == 1 ? name : fmt::format("{} ({})", run.label, name);
    }
  }

  std::deque<Encoder> encoders;
  Runs runs;
};

/// The texts as each run's model reads them; runs of one model read the same.
std::vector<std::vector<Input>> read_texts(std::span<const lens::Run> runs,
                                           std::span<const lens::Text> texts,
                                           const lens::ObserveOptions& options) {
  std::vector<std::vector<Input>> inputs;
  for (const lens::Run& run : runs) {
    if (&run.model() == &runs[0].model() && !inputs.empty()) {
      inputs.push_back(inputs[0]);
      continue;
    }
    TokenizeOptions how = options.tokenize;
    if (how.max_tokens == 0 && run.options.overflow == Overflow::kTruncate)
      how.max_tokens = run.model().max_tokens(run.options.positions).value_or(0);
    std::vector<Input>& of_run = inputs.emplace_back();
    for (const lens::Text& text : texts) of_run.push_back(read_text(run.model(), text, how));
  }
  return inputs;
}

bool same_tokens(const Input& a, const Input& b) {  // the same ids, meaning the same pieces
  return a.tokens.ids == b.tokens.ids && a.tokens.pieces == b.tokens.pieces;
}

/// One text, or texts, in runs of several seeds as one run: the mean of every number over the
/// seeds, and from the least to the most. Without arrays.
Observed over_seeds(std::vector<Observed> seeds) {
  Observed all = seeds[0];
  all.untrained = std::ssize(seeds);
  all.fillers.clear();
  all.position_vectors.clear();
  all.patterns.clear();
  all.turns.clear();
  all.apart.clear();
  all.heads.clear();
  all.position_means.clear();
  for (auto& [name, table] : all.tables) {
    table.note.clear();
    for (Row& row : table.rows) {
      const Row place = std::exchange(row, {row.layer, row.head, row.label, {}, {}});
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
          add_cell(row, values.empty() ? std::nan("") : values[0]);
          continue;
        }
        const double sum = std::accumulate(values.begin(), values.end(), 0.0);
        const auto [low, high] = std::ranges::minmax(values);
        add_cell(row, sum / static_cast<double>(values.size()), {low, high});
      }
    }
  }
  return all;
}

/// Texts in every run, one batch in each: [texts] of [runs]. Adds the differences to `moved`, where
/// given; the table "moved" to each text, where it is not, and where the texts are shown with their
/// patterns.
std::vector<std::vector<Observed>> observe_batch(std::span<const lens::Run> runs,
                                                 std::span<const std::vector<Input>> inputs,
                                                 const Request& request, const Stages& stages,
                                                 Moved* moved = nullptr) {
  const bool asks_moved = runs.size() == 2 && request.asks("moved");
  std::vector<std::vector<Observed>> texts(inputs[0].size());
  std::deque<Batch> batches;
  for (size_t side = 0; side < runs.size(); ++side) {
    Batch& batch = batches.emplace_back(runs[side], inputs[side], request, stages);
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      const auto add_to = [&](Moved& to) {
        if (!same_tokens(inputs[0][i], inputs[1][i])) to.miss(kOtherTokens);
        to.add(batches[0], batch, i);
      };
      if (asks_moved && side == 1 && moved != nullptr) add_to(*moved);
      if (asks_moved && side == 1 && (moved == nullptr || request.patterns)) {
        Moved of_text;
        add_to(of_text);
        of_text.write(batch.texts()[i]);
      }
      texts[i].push_back(std::move(batch.texts()[i]));
    }
    if (!asks_moved) batches.clear();
  }
  return texts;
}

}  // namespace

std::vector<Measured> means_of(std::span<const lens::Run> runs, std::span<const lens::Text> texts,
                               const lens::ObserveOptions& options, const Stages& stages,
                               const lens::TakeText& take) {
  const Request whole = request_of(runs, options, true);
  Request request = whole;
  Moved moved;
  bool same = true, takes = take != nullptr && options.arrays_of > 0;
  std::vector<Means> means;
  for (const lens::Run& run : runs) means.emplace_back(described(run));
  std::vector<std::vector<std::vector<int32_t>>> sequences(runs.size());  // of the texts
  int64_t number = 0;
  for (const std::span<const lens::Text> part : batches_of(texts, takes ? options.arrays_of : 0)) {
    stages.show("texts", number, std::ssize(texts));
    request.patterns = takes;
    const std::vector<std::vector<Input>> inputs = read_texts(runs, part, options);
    for (std::vector<Observed>& text : observe_batch(runs, inputs, request, stages, &moved)) {
      for (size_t side = 0; side < runs.size(); ++side) means[side].add(text[side]);
      ++number;
      if (takes) takes = take(std::move(text)) && number < options.arrays_of;
    }
    for (size_t side = 0; side < runs.size(); ++side) {
      for (const Input& input : inputs[side]) sequences[side].push_back(input.tokens.ids);
      same = same && std::ranges::equal(inputs[0], inputs[side], same_tokens);
    }
    request.seed += part.size();
  }

  std::vector<Measured> measured;
  for (size_t side = 0; side < runs.size(); ++side) {
    Many many{runs[side], sequences[side], whole, stages, measured.emplace_back()};
    static_cast<Observed&>(many.means) = means[side].result();
    std::set<Measure> done;
    for (const View* view : whole.views) {
      stages.check();
      const Measure measure = measure_of(*view);
      const auto* const run = std::get_if<void (*)(Many&)>(&measure);
      if (done.insert(measure).second && run != nullptr) (*run)(many);
    }
  }
  if (runs.size() == 2) {
    if (same) compare_losses(measured[0], measured[1]);
    measured[1].other_tokens = !same;
    measured[1].tables.erase("moved");  // of taken texts alone
    if (whole.asks("moved")) moved.write(measured[1]);
    Many second{runs[1], sequences[1], whole, stages, measured[1]};
    if (whole.asks("patched")) score_patched(runs[0], second);
  }
  return measured;
}

}  // namespace phasor::internal

namespace phasor::lens {

using namespace internal;

Baseline baseline_of(std::string_view name) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string_view kind = name.substr(0, colon);
  const auto models = colon == name.size() ? 3 : parse_number<int64_t>(name.substr(colon + 1));
  if ((kind != "random" && kind != "own") || !models || *models < 1 || *models > kMostUntrained)
    throw InvalidArgument(fmt::format(
        "'{}' is not random, own, random:N or own:N with N from 1 to {}", name, kMostUntrained));
  return {.models = *models, .spread = kind == "own" ? Spread::kOwn : Spread::kInitial};
}

void observe(std::span<const Run> runs, std::span<const Text> texts, const ObserveOptions& options,
             const TakeText& take) {
  const Runs trained = checked(runs, options);
  const Stages stages{options.progress, options.stop};
  Request request = request_of(trained, options, false);
  const bool patterns = request.patterns;
  FirstText first;
  std::deque<Untrained> untrained;
  const Baseline& baseline = options.baseline;
  for (int64_t seed = 1; seed <= baseline.models; ++seed)
    untrained.emplace_back(trained, seed, baseline.spread);
  int64_t number = 0;
  for (const std::span<const Text> part : batches_of(texts, options.arrays_of)) {
    request.arrays = number < options.arrays_of;
    request.patterns = patterns || request.arrays;
    request.first = trained.size() == 1 && texts.size() == 2 ? &first : nullptr;
    const std::vector<std::vector<Input>> inputs = read_texts(trained, part, options);
    std::vector<std::vector<Observed>> observed = observe_batch(trained, inputs, request, stages);
    request.patterns = request.arrays = false;
    request.first = nullptr;
    std::vector<std::vector<std::vector<Observed>>> seeds;  // of [texts] of [runs]
    for (const Untrained& seed : untrained)
      seeds.push_back(observe_batch(seed.runs, inputs, request, stages));
    for (size_t i = 0; i < observed.size(); ++i) {
      for (size_t side = 0; side < trained.size() && !seeds.empty(); ++side) {
        std::vector<Observed> of_run;
        for (auto& seed : seeds) of_run.push_back(std::move(seed[i][side]));
        observed[i].push_back(over_seeds(std::move(of_run)));
      }
      if (!take(std::move(observed[i]))) return;
    }
    number += std::ssize(part);
    request.seed += part.size();
  }
}

std::vector<Observed> observe_means(std::span<const Run> runs, std::span<const Text> texts,
                                    const ObserveOptions& options, const TakeText& take) {
  const Runs trained = checked(runs, options);
  const Stages stages{options.progress, options.stop};
  if (texts.empty()) throw InvalidArgument("give texts; there are none to observe");
  std::vector<Measured> measured = means_of(trained, texts, options, stages, take);
  std::vector<Observed> means(std::make_move_iterator(measured.begin()),
                              std::make_move_iterator(measured.end()));
  std::vector<std::vector<Observed>> sides(trained.size());  // of [seeds]
  for (int64_t seed = 1; seed <= options.baseline.models; ++seed) {
    const Untrained untrained(trained, seed,
                              options.baseline.spread);  // one at a time is in memory
    std::vector<Measured> of_seed = means_of(untrained.runs, texts, options, stages, {});
    for (size_t side = 0; side < sides.size(); ++side)
      sides[side].push_back(std::move(of_seed[side]));
  }
  for (std::vector<Observed>& seeds : sides) {
    if (!seeds.empty()) means.push_back(over_seeds(std::move(seeds)));
  }
  return means;
}

}  // namespace phasor::lens
