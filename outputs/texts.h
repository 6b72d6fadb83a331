// Texts are tokenized and run in batches; what is made of their states is the caller's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/runner.h"
#include "engine/team.h"
#include "phasor/options.h"
#include "phasor/results.h"

namespace phasor::internal {

/// Texts, or pairs of them, borrowed.
struct TextInput {
  std::span<const std::string_view> first;  // of pairs: as many as `second`, or one for all
  std::optional<std::span<const std::string_view>> second = {};

  int64_t size() const { return std::ssize(second.value_or(first)); }
};

/// The last states of some of the texts, each of which has a token at least.
struct TextStates {
  std::vector<size_t> texts;           // their numbers, [B]
  std::vector<const Tokens*> tokens;   // [B]
  std::span<const int64_t> offsets;    // [B + 1]
  std::span<const int32_t> token_ids;  // [N]
  std::span<const TextSpan> spans;     // [N], in the texts as they were given; or empty
  std::span<const float> states;       // [N, C]
  int64_t prompt_tokens = 0;           // the first of each text, where TextTask asks for them

  int64_t size() const { return std::ssize(texts); }
  /// Those of text i of the batch, [T, C].
  std::span<const float> states_of(int64_t i) const {
    const int64_t width = std::ssize(states) / std::ssize(token_ids);
    return states.subspan(offsets[i] * width, (offsets[i + 1] - offsets[i]) * width);
  }
};

/// Which states `take` reads: all of a text's, or one, and the others need not be computed.
enum class ReadStates { kAll, kFirst, kLast };

/// How texts run, and what becomes of their states.
struct TextTask {
  std::string prompt = {};  // put before each text
  int64_t max_tokens = 0;   // as in TextOptions
  Overflow overflow = Overflow::kTruncate;
  std::optional<int32_t> marker = {};  // see TokenVectorConfig
  std::optional<TokenVectorConfig::Expansion> expansion = {};
  OffsetUnit offset_unit = OffsetUnit::kNone;  // of TextStates::spans
  bool needs_tokens = false;                   // a text without any is an error
  bool counts_prompt = false;                  // TextStates::prompt_tokens is read
  ReadStates reads = ReadStates::kAll;
  int64_t token_width = 0;  // of what `take` makes of a token: wide ones make smaller batches
  /// Called after each batch on the caller's thread. Not for texts without tokens.
  std::function<void(const TextStates&)> take = {};
};

/// Runs texts in batches of similar length. Of `options` it reads what TextTask does not have.
TextReports run_texts(const Runner& runner, const TextInput& input, const TextOptions& options,
                      const TextTask& task);

/// Of so many texts.
inline TextReports reports_for(int64_t count) {
  const std::vector<int64_t> zeros(count);
  return {zeros, zeros, zeros};
}
/// Text i has these tokens.
inline void report(const Tokens& tokens, int64_t i, TextReports& reports) {
  reports.num_tokens[i] = std::ssize(tokens.ids);
  reports.dropped_tokens[i] = tokens.dropped;
  reports.invalid_bytes[i] = tokens.invalid_bytes;
}

/// body(i) for i = 0 … count − 1, in tasks of several texts; see Team::run().
template <typename Body>
void for_each_text(const Threads& threads, int64_t count, const Body& body) {
  constexpr int64_t kTaskTexts = 16;  // waking a thread costs as much as tokenizing a few
  threads.run((count + kTaskTexts - 1) / kTaskTexts, [&](int64_t task, int) {
    const int64_t end = std::min(count, (task + 1) * kTaskTexts);
    for (int64_t i = task * kTaskTexts; i < end; ++i) body(i);
  });
}

/// The result of encode(); no tokens where it refuses a text without any.
template <typename Encode>
Tokens tokens_or_none(const Encode& encode) {
  try {
    return encode();
  } catch (const InvalidArgument& error) {
    if (error.code() == ErrorCode::kEmptyText) return {};
    throw;
  }
}

/// `tokens`, or fewer where the activations of one run would take more than affordable_bytes(); no
/// known model comes near.
int64_t affordable_tokens(int64_t tokens, const Model& model, int threads);

/// The length that a text is cut to, or runs in windows of, in tokens: as sentence-transformers,
/// the files' length, or else what the model was trained on. 0: no limit.
int64_t longest_text(int64_t max_tokens, Overflow overflow, const Positions& positions,
                     const Model& model, int threads);

}  // namespace phasor::internal
