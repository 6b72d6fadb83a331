// Parts of one run in the place of the same parts of another, and the loss on masked tokens.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lens/study/masked_run.h"
#include "lens/study/measures.h"

namespace phasor::internal {
namespace {

/// Adds those of block_parts().
void add_block_parts(const ModelConfig& config, std::vector<RunPart>& parts) {
  for (const BlockPart& part : block_parts(config.num_layers, config.num_heads)) {
    const bool mlp = part.source == ResidualSource::kMlp;
    const Hook hook = mlp ? Hook::kMlpOut : Hook::kAttnOut;
    parts.push_back(
        {part.label, hook, part.layer, [hook, l = part.layer, h = part.head](MaskedRun& run) {
           return h < 0 ? run.at(hook, l) : run.head(l, h);
         }});
  }
}

/// States, attentions, MLPs and heads; after each state and attention its position component, and
/// the rest of it.
std::vector<RunPart> parts_of(const ModelConfig& config) {
  std::vector<RunPart> whole, parts;
  for (int64_t l = 0; l < config.num_layers; ++l) {
    whole.push_back({fmt::format("state {}", l), Hook::kResidPre, l,
                     [l](MaskedRun& run) { return run.state(l); }});
  }
  add_block_parts(config, whole);
  for (int64_t k = 0; k < std::ssize(whole); ++k) {
    const RunPart& part = whole[k];
    parts.push_back(part);
    if (k >= 2 * config.num_layers) continue;
    const auto position = [hook = part.hook, l = part.layer](MaskedRun& run) {
      return run.position(hook, l);
    };
    const auto rest = [of = part.of, position](MaskedRun& run) {
      return less(of(run), position(run));
    };
    parts.push_back({part.label + " position", part.hook, part.layer, position});
    parts.push_back({part.label + " rest", part.hook, part.layer, rest});
  }
  return parts;
}

/// The losses of each run with a part of the other.
struct Patched {
  MaskedScore first, second;
};

void score(MaskedRun& first, MaskedRun& second, const RunPart& part, Patched& patched) {
  const TextRows of_first = part.of(first), of_second = part.of(second);
  first.score_without(part.hook, part.layer, less(of_first, of_second), patched.first);
  second.score_without(part.hook, part.layer, less(of_second, of_first), patched.second);
}

}  // namespace

void score_patched(const lens::Run& first, Many& second) {
  if (&first.model() != &second.subject.model()) {
    second.means.missing["patched"] = "the two runs are of different models";
    return;
  }
  const std::vector<MaskedText> texts =
      recordable_texts(second, "patched", {&first, &second.subject});
  if (texts.empty()) return;
  const uint64_t seed = second.request.seed;
  const std::vector<RunPart> parts = parts_of(first.model().config());
  MaskedScore unpatched_first, unpatched_second;
  std::vector<Patched> patched(parts.size());
  int64_t number = 0;  // of the batch's first text
  for (const std::span<const MaskedText> batch : recordable_batches(texts)) {
    MaskedRun run_first(first, batch, seed, unpatched_first, {.heads = true});
    MaskedRun run_second(second.subject, batch, seed, unpatched_second, {.heads = true});
    for (size_t k = 0; k < parts.size(); ++k) {
      second.stages.show("patches of masked texts",
                         number * std::ssize(parts) + static_cast<int64_t>(k * batch.size()),
                         std::ssize(texts) * std::ssize(parts));
      score(run_first, run_second, parts[k], patched[k]);
    }
    number += std::ssize(batch);
  }
  Intervals intervals;
  const std::vector<double> whole = differences(unpatched_second, unpatched_first);
  const bool differ = is_above_zero(unpatched_second, unpatched_first);
  const auto add_share = [&](const std::vector<double>& part, Row& row) {
    if (differ)
      add_cell(row, ratio(part, whole), intervals.of(part, whole));
    else
      add_cell(row, std::nan(""));
  };
  const auto add = [&](const std::string& label, const Patched& losses) {
    Row row{.label = label, .cells = {}};
    add_difference(unpatched_second, losses.second, row);
    add_difference(losses.first, unpatched_first, row);
    add_share(differences(unpatched_second, losses.second), row);
    add_share(differences(losses.first, unpatched_first), row);
    add_row(second.means, "patched", std::move(row));
  };
  add("all", {.first = unpatched_second, .second = unpatched_first});
  for (size_t k = 0; k < parts.size(); ++k) add(parts[k].label, patched[k]);
}

}  // namespace phasor::internal
