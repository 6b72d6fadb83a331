// The hidden states of many sequences, batch by batch, so that few are in memory at once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/progress.h"
#include "phasor/trace.h"

namespace phasor::internal {

/// Returns sequence i.
using SequenceMaker = std::function<std::vector<int32_t>(int64_t sequence)>;
/// hidden_states[l] of a sequence, [T, C]. Borrowed.
using StateVisitor =
    std::function<void(int64_t l, int64_t sequence, std::span<const float> states)>;

/// What a batch of sequences left in a trace: `first` is the number of its first sequence.
using BatchVisitor = std::function<void(const Trace& trace, int64_t first, int64_t count)>;

/// As many tokens as for_each_batch() runs at once; a longer sequence is run by itself.
int64_t tokens_at_once(const Trace& trace, const ModelConfig& config, const RunOptions& options);

/// Runs `count` sequences in batches of about 4096 tokens and 128 MiB of what `trace` records,
/// which includes every hidden state. Throws as for_each_state().
void for_each_batch(const Encoder& encoder, int64_t count, const SequenceMaker& make,
                    const RunOptions& options, const Progress& progress, Trace trace,
                    const BatchVisitor& visit);

/// Runs `count` sequences in batches of about 4096 tokens and 128 MiB of states. Each batch is
/// visited layer by layer, sequences in order, independent of the order in which threads finish.
/// `options.observer` is not used. Throws InvalidArgument if the run truncates a sequence, and what
/// Encoder::encode_ids() throws.
void for_each_state(const Encoder& encoder, int64_t count, const SequenceMaker& make,
                    const RunOptions& options, const Progress& progress, const StateVisitor& visit);

}  // namespace phasor::internal
