// How the views come about: each function measures every text of a batch, or many texts as one, and
// adds the tables that it names.
#pragma once

#include "lens/study/batch.h"
#include "lens/study/many.h"

namespace phasor::internal {

/// Why a text has no views of its orders.
constexpr const char* kOneToken = "the text has no two tokens that could change places";

void measure_split(Batch& batch);      // split, rank
void measure_direct(Batch& batch);     // direct
void measure_sources(Batch& batch);    // sources, parts
void measure_effect(Batch& batch);     // effect, pooled
void measure_order(Batch& batch);      // order
void measure_attention(Batch& batch);  // attention, entropy, offsets, rollout, heads
void measure_scores(Batch& batch);     // scores
void measure_relative(Batch& batch);   // relative

void split_many(Many& many);    // corpus
void probe_many(Many& many);    // probe
void score_masked(Many& many);  // masked, lens
void score_longer(Many& many);  // longer
void score_causes(Many& many);  // causes

/// "moved" of `after`: how far its states are from those of `before`, of one text with
/// Request::states. Models of different shapes have none, nor do runs of different lengths.
void measure_moved(const Observed& before, Observed& after);
/// The same of many texts, which are run again.
void measure_moved(const Subject& before, const Subject& after, std::span<const Input> inputs,
                   Observed& observed_after, const Stages& stages);
/// "patched" of the second run, of texts with masks.
void score_patched(const Subject& first, Many& second);
/// Adds to the table "masked" of b how much its losses differ from those of a, mask by mask.
void compare_losses(const Observed& a, Observed& b);

}  // namespace phasor::internal
