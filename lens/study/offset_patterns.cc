// What attention patterns are worth that depend on the offset alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lens/study/measures.h"
#include "lens/study/rise.h"
#include "lens/study/run.h"
#include "lens/study/text.h"
#include "phasor/trace.h"

namespace phasor::internal {
namespace {

constexpr int64_t kMostWeights = 100'000'000;  // of a batch

/// Σ of the weights that words give to words, and their number, for each layer, head and offset
/// key less query from −reach to reach.
class OffsetPatterns {
 public:
  OffsetPatterns(const ModelConfig& config, int64_t reach)
      : num_heads_(config.num_heads),
        reach_(reach),
        sums_(config.num_layers * num_heads_ * (2 * reach + 1)),
        counts_(sums_.size()) {}

  /// Adds a layer's pattern [H, T, T].
  void add(int64_t layer, std::span<const float> pattern, std::span<const int64_t> words) {
    const auto T = std::lround(std::sqrt(std::ssize(pattern) / num_heads_));
    for (int64_t h = 0; h < num_heads_; ++h) {
      for (const int64_t q : words) {
        for (const int64_t k : words) {
          sums_[index(layer, h, k - q)] += pattern[(h * T + q) * T + k];
          ++counts_[index(layer, h, k - q)];
        }
      }
    }
  }
  /// The mean weight without the texts of `own`; 0 where no other text has the offset.
  double mean_without(const OffsetPatterns& own, int64_t layer, int64_t head,
                      int64_t offset) const {
    const int64_t i = index(layer, head, offset), k = own.index(layer, head, offset);
    const double count = counts_[i] - own.counts_[k];
    return count > 0 ? std::max(sums_[i] - own.sums_[k], 0.0) / count : 0;
  }

 private:
  int64_t index(int64_t layer, int64_t head, int64_t offset) const {
    return (layer * num_heads_ + head) * (2 * reach_ + 1) + reach_ + offset;
  }

  int64_t num_heads_, reach_;
  std::vector<double> sums_, counts_;
};

/// What takes the place of the patterns of the first layers.
enum class By { kByOffset, kMirrored, kClean };

/// The patterns of a batch of texts in the run with positions, where the words are, and each text's
/// sums.
struct Patterns {
  Trace trace = Trace({Hook::kPattern});
  std::vector<std::vector<int64_t>> words = {};
  std::vector<OffsetPatterns> own = {};

  Patterns(const lens::Run& run, std::span<const MaskedText> texts) {
    const std::vector<std::vector<int32_t>> ids = ids_of(texts);
    encode(run, ids, trace);
    for (int64_t i = 0; i < std::ssize(ids); ++i) {
      words.push_back(text_places(run.model(), ids[i]));
      own.emplace_back(run.model().config(), std::ssize(ids[i]));
      add_to(own.back(), i);
    }
  }
  /// Adds those of text i.
  void add_to(OffsetPatterns& sums, int64_t i) const {
    for (int64_t l = 0; l < trace.num_layers(); ++l)
      sums.add(l, trace.at(Hook::kPattern, l, i).values, words[i]);
  }
};

/// Replaces the patterns of a recorded batch's texts: the words' rows by offset patterns, whose
/// weights keep the row's sum over the words, or all rows by those of the run with positions.
class Replaced : public Observer {
 public:
  By by = By::kByOffset;
  int64_t num_layers = 0;  // that are replaced

  Replaced(const MaskedRun& run, const OffsetPatterns& all, const Patterns& patterns)
      : run_(run), all_(all), patterns_(patterns) {}

  bool wants(Hook, int64_t) const override { return false; }
  void observe(const HookEvent&) override {}
  bool changes(Hook hook, int64_t layer) const override {
    return (hook == Hook::kPattern && layer < num_layers) ||
           (hook == Hook::kResidPre && layer == 0);
  }
  void change(const HookEvent& event, std::span<float> values) override {
    if (event.hook == Hook::kResidPre) {
      std::ranges::copy(run_.trace().hidden_state(0, event.sequence).values, values.begin());
      return;
    }
    if (by == By::kClean) {
      std::ranges::copy(patterns_.trace.at(Hook::kPattern, event.layer, event.sequence).values,
                        values.begin());
      return;
    }
    const std::vector<int64_t>& words = patterns_.words[event.sequence];
    const OffsetPatterns& own = patterns_.own[event.sequence];
    const int64_t T = event.shape[1], sign = by == By::kMirrored ? -1 : 1;
    std::vector<double> pattern(words.size());
    for (int64_t row = 0; row < event.shape[0] * T; ++row) {
      const int64_t head = row / T, q = row % T;
      if (!std::ranges::binary_search(words, q)) continue;
      const std::span<float> weights = values.subspan(row * T, T);
      double old_sum = 0, sum = 0;
      for (size_t k = 0; k < words.size(); ++k) {
        pattern[k] = all_.mean_without(own, event.layer, head, sign * (words[k] - q));
        sum += pattern[k];
        old_sum += weights[words[k]];
      }
      for (size_t k = 0; k < words.size() && sum > 0; ++k)
        weights[words[k]] = static_cast<float>(pattern[k] * old_sum / sum);
    }
  }

 private:
  const MaskedRun& run_;
  const OffsetPatterns& all_;
  const Patterns& patterns_;
};

/// Why there are no offset patterns of these texts; empty where there are.
std::string why_none(std::span<const MaskedText> texts, const ModelConfig& config) {
  if (texts.size() == 1) return "offset patterns are means over other texts; give two or more";
  for (const std::span<const MaskedText> batch : recordable_batches(texts)) {
    int64_t weights = 0;
    for (const MaskedText& text : batch) {
      const auto tokens = std::ssize(text.token_ids);
      weights += tokens * tokens * config.num_heads * config.num_layers;
    }
    if (weights <= kMostWeights) continue;
    return fmt::format(
        "the attention patterns of a text of {} tokens take too much memory; cut it (--max-tokens)",
        batch[0].token_ids.size());
  }
  return "";
}

}  // namespace

void score_offset_patterns(Many& many) {
  const ModelConfig& config = many.subject.model().config();
  Rise rise(many, "offset_patterns");
  if (const std::string why = why_none(rise.texts(), config); !why.empty()) {
    many.means.missing["offset_patterns"] = why;
    return;
  }
  int64_t longest = 0;
  for (const MaskedText& text : rise.texts())
    longest = std::max<int64_t>(longest, std::ssize(text.token_ids));
  OffsetPatterns all(config, longest);
  for (const std::span<const MaskedText> batch : recordable_batches(rise.texts())) {
    const Patterns patterns(many.subject, batch);
    for (int64_t i = 0; i < std::ssize(batch); ++i) patterns.add_to(all, i);
  }
  constexpr By kBy[] = {By::kByOffset, By::kMirrored, By::kClean};
  std::vector<std::array<MaskedScore, std::size(kBy)>> layers(config.num_layers);
  rise.run([&](MaskedRun& with, MaskedRun& without, const TextRows&) {
    const Patterns patterns(many.subject, with.texts());
    Replaced replaced(without, all, patterns);
    RunOptions options = rise.without();
    options.observer = &replaced;
    for (auto& layer : layers) {
      ++replaced.num_layers;
      for (const By by : kBy) {
        replaced.by = by;
        without.score_again(options, layer[static_cast<size_t>(by)]);
      }
    }
  });
  if (!rise.is_there()) return;
  for (int64_t l = 1; l <= config.num_layers; ++l) {
    Row row{.layer = l, .cells = {}};
    for (const MaskedScore& score : layers[l - 1]) rise.add(rise.undone(score), row);
    add_row(many.means, "offset_patterns", std::move(row));
  }
  many.means.tables["offset_patterns"].note =
      fmt::format("Without word positions {} are lost.", rise.lost());
}

}  // namespace phasor::internal
