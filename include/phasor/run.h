// A run: token ids in, hidden states out; how an Encoder runs, and the options of one run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "phasor/executor.h"
#include "phasor/hooks.h"
#include "phasor/positions.h"
#include "phasor/precision.h"

namespace [[gnu::visibility("default")]] phasor {

/// What computes the steps of a block.
enum class KernelLibrary {
  kAuto,    // the faster one, as far as was measured: kOwn
  kOwn,     // phasor's kernels, and oneDNN's matmuls where they are faster
  kOneDnn,  // oneDNN's primitives alone; see engine/onednn_steps.cc
};

/// How an Encoder runs, chosen when it is made.
struct EncoderOptions {
  /// Threads of a run, the caller's included; while several calls run, about as many in all. 0: all
  /// available cores, by the affinity of the thread that makes the Encoder and the CPU quota of the
  /// process's control group. Where the system refuses to start a thread, the others do its work.
  int threads = 0;
  Precision precision = Precision::kFloat32;  // number format of the linear maps
  /// For how many row counts each thread keeps its plans. The least recently used are dropped first
  /// and rebuilt in 30 µs, because oneDNN keeps what it compiled. For any batches, it compiles a
  /// matmul for at most 24 row counts, once for each number of threads that share it. Scratch
  /// memory grows to that of the largest group of a run: about 256 rows and a sequence, or all
  /// sequences if there are fewer than threads.
  int max_plans = 16;
  /// Threads in place of those that the Encoder starts for itself: the application's, or those of
  /// make_executor(), which several Encoders share.
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

/// A step of the forward pass and the implementation that runs it on this machine, oneDNN's or
/// phasor's own.
struct PrimitiveInfo {
  std::string name;            // "qkv", "scores", "up", …
  std::string implementation;  // "brg:avx512_core"
};

/// Options of one run. The model is never changed.
struct RunOptions {
  Observer* observer = nullptr;  // borrowed for the call
  Positions positions = {};
  Overflow overflow = Overflow::kError;
  std::vector<ResidualCut> cut_residuals = {};
  /// The caller's memory for the hidden states, [N, C]; empty: Encoding::hidden.
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
  /// If set, gets the implementations that the run used, in the order of the forward pass; of
  /// attention those of one sequence: others depend on their length. Borrowed for the call.
  std::vector<PrimitiveInfo>* primitives = nullptr;
};

/// The last hidden states of B sequences, N tokens in all: of sequence i those offsets[i] to
/// offsets[i + 1] − 1.
struct Encoding {
  /// What it holds of a sequence of T tokens, borrowed from it.
  struct Sequence {
    std::span<const int32_t> token_ids;  // [T]
    std::span<const float> positions;    // [T]
    std::span<const float> hidden;       // [T, C]; empty where RunOptions::hidden has them

    int64_t num_tokens() const { return std::ssize(token_ids); }
  };

  int64_t d_model = 0;                 // C
  std::vector<int64_t> offsets = {0};  // [B + 1]
  std::vector<int32_t> token_ids;      // after truncation, if any [N]
  /// The position each token was given: its row of the table, counted from the table's row 0;
  /// fractional under Overflow::kInterpolate, within the first window under Overflow::kWindow. [N]
  std::vector<float> positions;
  std::vector<float> hidden;  // [N, C]; empty where RunOptions::hidden has them

  int64_t size() const { return std::ssize(offsets) - 1; }
  /// Throws std::out_of_range if there is none.
  Sequence operator[](int64_t i) const&;
  Sequence operator[](int64_t i) && = delete;
};

}  // namespace phasor
