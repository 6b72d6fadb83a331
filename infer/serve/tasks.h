// What a server's engines do with texts, and what it takes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"

namespace infer {

class ModelQueue;
struct Work;

/// Texts that run together.
struct Batch {
  std::vector<std::string_view> first = {};  // of pairs; empty: there are none
  std::vector<std::string_view> texts = {};
  phasor::TextOptions options = {};
};

/// The most tokens that a text of so many bytes has, but for odd characters.
int64_t tokens_cut(const ModelQueue& queue, const phasor::TextOptions& options, int64_t bytes);
/// About how many are run, by which the time is guessed.
int64_t about_tokens_cut(const ModelQueue& queue, int64_t bytes);

/// A row of kTasks.
struct Task {
  /// Is given the arrays of results, and of how many of the batch's texts, one after the other.
  using Take = std::function<void(const std::vector<phasor::ResultArray>& made, size_t texts)>;
  void (*run)(phasor::Encoder& encoder, const Batch& batch, const Take& take);
  uint32_t uses = 0;  // of options; 0: nothing runs on the engine, so that its speed is not learnt
  /// The most numbers of 4 bytes that a text of so many tokens takes: its results, also while they
  /// are in the batch and on their way to their request.
  int64_t (*numbers)(const ModelQueue& queue, const phasor::TextOptions& options, int64_t tokens);
  /// To how many tokens a text is cut; null: to ModelQueue::max_tokens().
  int64_t (*longest)(const ModelQueue& queue, const phasor::TextOptions& options) = nullptr;
  int64_t (*most_tokens)(const ModelQueue& queue, const phasor::TextOptions& options,
                         int64_t bytes) = tokens_cut;
  int64_t (*about_tokens)(const ModelQueue& queue, int64_t bytes) = about_tokens_cut;
  /// Numbers that a request takes beside those of its texts.
  int64_t (*beside)(const ModelQueue& queue, const Work& work) = nullptr;
};

/// All.
struct Tasks {
  Task embed, states, sparse, tokens;
  Task classify;  // of texts or pairs
  Task rank_by_tokens;
  Task label;
  Task tokenize;  // waits its turn, and is done with the answer
};
extern const Tasks kTasks;

}  // namespace infer
