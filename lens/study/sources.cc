// Where the position component of the states comes from: by kind of source, and by part.
#include <cmath>

#include "lens/study/measures.h"

namespace phasor::internal {
namespace {

using enum ResidualSource;
using Sources = PositionSources;  // of one state

constexpr int64_t kMostRuns = 128;  // of a text, and as many for its parts; at least two squares
constexpr int64_t kMostSquares = 4;

/// The shares of the parts that are meant, summed; NaN where nothing in the state is position.
template <typename Meant>
double share(const Sources& sources, Meant meant) {
  double sum = 0;
  for (const SourceShare& part : sources.parts) {
    if (std::isnan(part.share)) return part.share;
    if (meant(part)) sum += part.share;
  }
  return sum;
}

void add_sources(std::span<const Sources> states, Observed& text) {
  int64_t l = 0;
  for (const Sources& state : states) {
    add_row(text, "sources",
            {.layer = l++,
             .cells = {state.direct.share, state.attention.share, state.mlp.share,
                       state.other.share, state.direct.length, state.attention.length,
                       state.mlp.length, state.other.length, state.direct.interior,
                       state.attention.interior, state.mlp.interior, state.other.interior}});
  }
}

/// Each part in the state that it is added to, and in the last.
void add_parts(std::span<const Sources> states, Observed& text) {
  const auto add = [&](const std::string& label, int64_t l, auto meant) {
    add_row(text, "parts",
            {.label = label, .cells = {share(states[l], meant), share(states.back(), meant)}});
  };
  add("direct path", 0, [](const SourceShare& part) { return part.source == kPosition; });
  for (const BlockPart& block : block_parts(text.num_layers, text.num_heads)) {
    add(block.label, block.layer + 1, [&](const SourceShare& part) {
      return part.source == block.source && part.layer == block.layer &&
             (block.head < 0 || part.head == block.head);
    });
  }
}

}  // namespace

void measure_sources(Batch& batch) {
  const lens::Run& subject = batch.subject();
  const bool parts = batch.request().asks("parts");
  uint64_t seed = batch.request().seed;
  for (int64_t i = 0; i < std::ssize(batch.texts()); ++i, ++seed) {
    Observed& text = batch.texts()[i];
    if (batch.missed_by_windows(i, "sources")) {
      text.missing["parts"] = text.missing["sources"];
      continue;
    }
    const auto tokens = std::ssize(text.text_tokens);
    if (tokens < 2) {
      text.missing["sources"] = text.missing["parts"] = kOneToken;
      continue;
    }
    const std::vector<Sources> states =
        position_sources(*subject.encoder, text.tokens.ids, text.text_tokens, subject.options,
                         std::clamp<int64_t>(kMostRuns / tokens, 2, kMostSquares), seed,
                         batch.stages().of("orders"), parts);
    add_sources(states, text);
    if (parts) add_parts(states, text);
  }
}

}  // namespace phasor::internal
