// The encoder: texts or token ids in, hidden states out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/hooks.h"
#include "phasor/model.h"
#include "phasor/pooling.h"
#include "phasor/positions.h"
#include "phasor/precision.h"

namespace phasor {

struct EncoderOptions {
  int threads = 0;  // worker threads of this Encoder; 0: OMP_NUM_THREADS, or else one for each core
  Precision precision = Precision::kFloat32;  // what linear maps multiply in
  /// For how many row counts each thread keeps its plans; the least recently used go first, and
  /// come back in 30 µs, since oneDNN keeps what it compiled. Whatever the batches, it compiles a
  /// matmul for at most 24 row counts, once for each number of threads that share one. Scratch
  /// memory grows to that of the largest group of a run: about 256 rows and a sequence, or all
  /// sequences where they are fewer than threads.
  int max_plans = 16;
};

/// Removes a block's residual connection: x = f(x) where it was x = x + f(x).
struct ResidualCut {
  enum class Site { kAttention, kMlp, kBoth };
  int64_t layer = 0;
  Site site = Site::kBoth;
};

/// What is special about one run. The model is never touched.
struct RunOptions {
  Observer* observer = nullptr;  // borrowed for the call
  Positions positions = {};
  Overflow overflow = Overflow::kError;
  std::vector<ResidualCut> cut_residuals = {};
  std::optional<Pooling> pooling = {};  // in place of the model's
};

/// A step of the forward pass and which of oneDNN's implementations does it here.
struct PrimitiveInfo {
  std::string name;            // "qkv", "scores", "up", …
  std::string implementation;  // "brg:avx512_core"
};

struct Segment;

/// The result of a run: plain data, owned. Sequence i of the batch has T_i tokens.
class Encoding {
 public:
  int64_t num_sequences() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  /// These throw std::out_of_range where there is no sequence i.
  int64_t num_tokens(int64_t i) const { return offsets_.at(i + 1) - offsets_.at(i); }
  /// After truncation, where that was asked for. [T]
  std::span<const int32_t> token_ids(int64_t i) const { return rows(token_ids_, i, 1); }
  /// The position each token was given: its row of the table, counted from the table's row 0;
  /// fractional under Overflow::kInterpolate, within the first window under Overflow::kWindow. [T]
  std::span<const float> positions(int64_t i) const { return rows(positions_, i, 1); }
  /// The last hidden state. [T, C]
  std::span<const float> hidden(int64_t i) const { return rows(hidden_, i, d_model_); }
  /// The last hidden state pooled as the run or else the model says: [Pooling::width(C)]. Throws
  /// ModelError where neither does (see Model::sentence).
  std::span<const float> embedding(int64_t i) const;

 private:
  friend class Encoder;
  // From the rows of all segments, end to end. No pooling: no embeddings.
  Encoding(const std::vector<Segment>& segments, std::vector<float> hidden, int64_t d_model,
           const Pooling* pooling);
  template <typename T>
  std::span<const T> rows(const std::vector<T>& values, int64_t i, int64_t width) const {
    return std::span(values).subspan(offsets_.at(i) * width, num_tokens(i) * width);
  }

  int64_t d_model_ = 0;
  std::vector<int64_t> offsets_ = {0};  // [B + 1]
  std::vector<int32_t> token_ids_;      // [N]
  std::vector<float> positions_;        // [N]
  std::vector<float> hidden_;           // [N, C]
  int64_t embedding_width_ = 0;         // 0: there are none
  std::vector<float> embeddings_;       // [B, embedding_width_]
};

/// Runs a model. Holds packed weights, primitives and scratch memory, so it belongs to one thread
/// at a time; use one Encoder a thread, made with replica(), which shares the packed weights.
///
/// The bits of a sequence's result do not depend on the batch it came in, on its place there, or on
/// the number of threads: in int8 on every machine, in float32 and bfloat16 with AVX-512. Elsewhere
/// oneDNN sums in an order that depends on the number of rows and threads, which moves float32 by
/// up to 1e-6 of the result's largest value (in BERT-base; less in fewer layers) and emulated
/// bfloat16 by up to 1e-2.
class Encoder {
 public:
  /// Packs the weights for this machine. Throws InvalidArgument (no model, threads < 0,
  /// max_plans < 1), ModelError (NaN or infinite weights) or BackendError.
  explicit Encoder(std::shared_ptr<const Model> model, EncoderOptions options = {});
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  /// Another Encoder over the same packed weights, for another thread.
  Encoder replica() const;

  /// Throws InvalidArgument (empty batch, empty text where there are no special tokens, an id
  /// outside the vocabulary, a text too long and Overflow::kError, positions outside the table, an
  /// unknown layer) and ModelError (no tokenizer; NaN or infinite embeddings).
  Encoding encode(std::string_view text, const RunOptions& options = {});
  Encoding encode(std::span<const std::string> texts, const RunOptions& options = {});
  Encoding encode(std::initializer_list<std::string_view> texts, const RunOptions& options = {});

  /// The same from token ids, which are taken as they are: no special token is added.
  Encoding encode_ids(std::span<const int32_t> token_ids, const RunOptions& options = {});
  Encoding encode_ids(std::span<const std::vector<int32_t>> sequences,
                      const RunOptions& options = {});

  /// The longest sequence that fits without an overflow policy; empty where positions never end.
  std::optional<int64_t> max_tokens(const RunOptions& options = {}) const;

  /// The vectors that such a run adds to the tokens of a sequence of this length (tokens that do
  /// not advance the position counter left aside), [T, E]; zeros where none are added. Throws as
  /// encode().
  std::vector<float> position_vectors(int64_t num_tokens, const RunOptions& options = {}) const;

  /// Scores over the vocabulary for `hidden` [n, C]: [n, V], before the softmax. Throws ModelError
  /// where the checkpoint carries no masked-language-model head.
  std::vector<float> mlm_logits(std::span<const float> hidden);

  /// What the last run was compiled to, in the order of the forward pass; empty before the first.
  /// Attention's steps are those of one of the run's sequences: others depend on their length.
  std::vector<PrimitiveInfo> primitives() const;

  /// What the packed matrices and biases take, in bytes; replicas share them. Those of a
  /// masked-language-model head count once mlm_logits() was called. Embeddings are read where the
  /// Model has them.
  int64_t packed_bytes() const;
  const Model& model() const;
  int threads() const;
  Precision precision() const;  // never kAuto
  /// oneDNN's version, for people: "2.6.3".
  static std::string backend_version();

 private:
  struct Impl;
  explicit Encoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace phasor
