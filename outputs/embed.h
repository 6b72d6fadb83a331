// The pipeline of Encoder::embed(), around a function that runs a batch of token ids.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/batch.h"
#include "engine/team.h"
#include "phasor/encoder.h"

namespace phasor::internal {

struct EmbeddingsData {
  int64_t width = 0;
  std::vector<float> own_values;    // [B, E]; empty if the caller gave memory
  std::span<float> values;          // [B, E]
  std::vector<TextReport> reports;  // [B]
};

struct ClassificationData {
  std::shared_ptr<const EmbeddingsData> logits;  // [B, labels]
  std::vector<float> probabilities;              // [B, labels]
};

/// Texts, or pairs of them, borrowed.
struct EmbedInput {
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
};

/// What becomes of a text's tokens before they run.
struct TokenEdit {
  std::optional<int32_t> marker = {};  // see TokenVectorConfig
  std::optional<TokenVectorConfig::Expansion> expansion = {};
};

/// Turns pooled vectors [n, C] into [n, width], or takes states.
struct EmbedHead {
  int64_t width = 0;            // without `apply` that of the pooled vectors; 0: none are kept
  bool of_every_token = false;  // turns each token's state, and the results' mean counts
  std::function<std::vector<float>(std::span<const float>)> apply = {};
  TokenEdit edit = {};
  OffsetUnit offset_unit = OffsetUnit::kNone;  // of TextStates::spans
  std::function<void(const TextStates&)> take = {};
  int64_t token_width = 0;  // of what `take` makes of a token: wide ones make smaller batches
};

/// A head's outputs [n, …] for states [n, C].
using HeadOfStates = std::function<std::vector<float>(std::span<const float>)>;

/// `window`: the longest window of Overflow::kWindow, in tokens.
using EncodeBatch =
    std::function<Encoding(const TokenBatch& batch, const RunOptions& options, int64_t window)>;

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

/// Like Encoder::embed(), tokenizing on these threads. With a head, the results are the head's
/// outputs for the pooled vectors, and a text without tokens is an error; a head that takes states
/// does not get such a text.
std::shared_ptr<const EmbeddingsData> embed(const Model& model, const Threads& threads,
                                            const EmbedInput& input, const EmbedOptions& options,
                                            const EncodeBatch& encode,
                                            const EmbedHead* head = nullptr);

/// `tokens`, or fewer where the activations of one run would take more than affordable_bytes(); no
/// known model comes near.
int64_t affordable_tokens(int64_t tokens, const Model& model, int threads);

/// The same for vectors of queries or documents, with the model's prompt for them.
EmbedOptions embed_options(const Model& model, const RetrievalOptions& options);

/// In tokens. As sentence-transformers: the files' length, or else what the model was trained on.
/// 0: no limit.
int64_t longest_text(const EmbedOptions& options, const Model& model, int threads);

/// Like Encoder::embedding_width().
int64_t embedding_width(const Model& model, const EmbedOptions& options);

}  // namespace phasor::internal
