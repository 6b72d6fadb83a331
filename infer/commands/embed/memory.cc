#include "infer/commands/embed/memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/embed.h"
#include "engine/workspace.h"
#include "infer/cli/peak_memory.h"
#include "infer/cli/usage.h"
#include "phasor/errors.h"

namespace infer {
namespace {

/// What runs of texts take, in batches of about `batch_tokens`: hidden states, also while their
/// memory grows, and activations. The longest text runs alone, and the threads share it; of other
/// texts each thread has a share, and one text more than that.
int64_t run_bytes(const Embedder& embedder, int64_t batch_tokens) {
  const phasor::ModelConfig& config = embedder.model->config();
  const int threads = embedder.encoder.threads();
  const int64_t longest =
      phasor::internal::longest_text(embedder.options, *embedder.model, threads);
  const int64_t rows = longest + 2 * batch_tokens + threads * std::min(batch_tokens, longest);
  const int64_t floats = rows * phasor::internal::floats_per_token(config, threads) +
                         3 * (longest + batch_tokens) * config.d_model;
  return floats * int64_t{sizeof(float)};
}

}  // namespace

void limit_memory(int64_t limit, int64_t row_bytes, int64_t kept_bytes, Embedder& embedder) {
  constexpr int64_t kBatchTokens = 8192;
  constexpr int64_t kLibraries = 14'000'000;                    // pages of code
  constexpr int64_t kTokenizing = 48 * int64_t{kMaxLineBytes};  // of a line without words
  const phasor::Overflow overflow = embedder.options.overflow;
  if (overflow != phasor::Overflow::kTruncate && overflow != phasor::Overflow::kError) {
    throw UsageError("--max-memory needs --overflow truncate or error; others run whole texts");
  }
  if (embedder.encoder.kernels() == phasor::KernelLibrary::kOneDnn) {
    throw UsageError("--max-memory: what oneDNN takes is not known; choose --kernels own");
  }
  // The table of embeddings is read where it is in the file.
  const int64_t model =
      peak_memory() + kLibraries + embedder.model->weights().token_embedding.num_bytes();
  const int64_t results = embedder.stream.most_lines() * (embedder.stream.line_bytes + row_bytes);
  const int64_t fixed = model + kTokenizing + results + kept_bytes;
  int64_t tokens = kBatchTokens;
  while (tokens > 1 && fixed + run_bytes(embedder, tokens) > limit) tokens /= 2;
  if (const int64_t least = fixed + run_bytes(embedder, tokens); least > limit) {
    throw phasor::InvalidArgument(fmt::format(
        "--max-memory: {} bytes are too few: the model takes {}, and texts and vectors up to {}; "
        "give at least {}",
        limit, model, least - model, least));
  }
  embedder.options.batch_tokens = tokens;
}

}  // namespace infer
