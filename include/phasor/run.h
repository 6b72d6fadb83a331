// A run: token ids in, hidden states out; how an Encoder runs, and the options of one run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "phasor/executor.h"
#include "phasor/hooks.h"
#include "phasor/pooling.h"
#include "phasor/positions.h"
#include "phasor/precision.h"

namespace phasor::internal {
struct EncodingData;
class Runner;
}  // namespace phasor::internal

namespace [[gnu::visibility("default")]] phasor {

/// What computes the steps of a block.
enum class KernelLibrary {
  kAuto,    // the faster one, as far as was measured: kOwn
  kOwn,     // phasor's kernels, and oneDNN's matmuls where they are faster
  kOneDnn,  // oneDNN's primitives alone; see engine/onednn_steps.cc
};

/// How an Encoder runs, chosen when it is made.
struct EncoderOptions {
  /// Threads of a run, the caller's included. 0: all available cores, by the affinity of the thread
  /// that makes the Encoder and the CPU quota of the process's control group. Where the system
  /// refuses to start a thread, the others do its work.
  int threads = 0;
  Precision precision = Precision::kFloat32;  // number format of the linear maps
  /// For how many row counts each thread keeps its plans. The least recently used are dropped first
  /// and rebuilt in 30 µs, because oneDNN keeps what it compiled. For any batches, it compiles a
  /// matmul for at most 24 row counts, once for each number of threads that share it. Scratch
  /// memory grows to that of the largest group of a run: about 256 rows and a sequence, or all
  /// sequences if there are fewer than threads.
  int max_plans = 16;
  /// The application's threads, in place of those that the Encoder starts for itself. Shared with
  /// its replicas.
  std::shared_ptr<Executor> executor = {};
  KernelLibrary kernels = KernelLibrary::kAuto;
};

/// Removes a block's residual connection: x = f(x) where it was x = x + f(x).
struct ResidualCut {
  /// Which residual connections of the block: around attention, around the MLP, or both.
  enum class Site { kAttention, kMlp, kBoth };
  int64_t layer = 0;
  Site site = Site::kBoth;
};

/// Options of one run. The model is never changed.
struct RunOptions {
  Observer* observer = nullptr;  // borrowed for the call
  Positions positions = {};
  Overflow overflow = Overflow::kError;
  std::vector<ResidualCut> cut_residuals = {};
  /// If set, also makes one vector of each sequence, of all its tokens: Encoding::embedding().
  std::optional<Pooling> pooling = {};
  /// The caller's memory for the hidden states, [N, C]; empty: memory of the Encoding.
  std::span<float> hidden = {};
  /// A requested stop ends the run before the next block, with ErrorCode::kCancelled.
  std::stop_token stop = {};
  /// Rows of the model's token type table, such as Tokens::token_types of a pair: [N], borrowed for
  /// the call. Empty: all 0.
  std::span<const int32_t> token_types = {};
  bool parse_special = false;  // as in TokenizeOptions, of encode()
  /// Above 0: the run begins at this block, with what the observer writes at its Hook::kResidPre in
  /// the place of zeros, such as the states of an earlier run of the same batch.
  int64_t first_block = 0;
};

/// A step of the forward pass and the implementation that runs it on this machine, oneDNN's or
/// phasor's own.
struct PrimitiveInfo {
  std::string name;            // "qkv", "scores", "up", …
  std::string implementation;  // "brg:avx512_core"
};

/// The result of a run. Sequence i of the B in the batch has T_i tokens, N in all. A value; copies
/// share the data. Its spans are borrowed from it, so its functions cannot be called on a
/// temporary.
class Encoding {
 public:
  int64_t num_sequences() const;
  /// The start of each sequence in the batch, and the end of the last: [B + 1].
  std::span<const int64_t> offsets() const&;
  /// After truncation, if any. [N]
  std::span<const int32_t> token_ids() const&;
  /// The position each token was given: its row of the table, counted from the table's row 0;
  /// fractional under Overflow::kInterpolate, within the first window under Overflow::kWindow. [N]
  std::span<const float> positions() const&;
  /// The last hidden states. [N, C]
  std::span<const float> hidden() const&;
  /// The hidden states pooled: [B, Pooling::width(C)]. Throws InvalidArgument if
  /// RunOptions::pooling was not set.
  std::span<const float> embeddings() const&;

  /// The same for sequence i. They throw std::out_of_range if there is none.
  int64_t num_tokens(int64_t i) const;
  std::span<const int32_t> token_ids(int64_t i) const&;  // [T]
  std::span<const float> positions(int64_t i) const&;    // [T]
  std::span<const float> hidden(int64_t i) const&;       // [T, C]
  std::span<const float> embedding(int64_t i) const&;    // [Pooling::width(C)]

  std::span<const int64_t> offsets() && = delete;
  std::span<const int32_t> token_ids() && = delete;
  std::span<const float> positions() && = delete;
  std::span<const float> hidden() && = delete;
  std::span<const float> embeddings() && = delete;
  std::span<const int32_t> token_ids(int64_t i) && = delete;
  std::span<const float> positions(int64_t i) && = delete;
  std::span<const float> hidden(int64_t i) && = delete;
  std::span<const float> embedding(int64_t i) && = delete;

 private:
  friend class internal::Runner;
  explicit Encoding(std::shared_ptr<const internal::EncodingData> data);
  std::shared_ptr<const internal::EncodingData> data_;
};

}  // namespace phasor
