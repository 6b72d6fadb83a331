// The encoder: texts or token ids in, hidden states or sentence vectors out.
// Options may grow, so an application is compiled with the library that it runs with; to outlast
// versions, use the C interface (phasor_c.h).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "phasor/model.h"
#include "phasor/options.h"
#include "phasor/results.h"
#include "phasor/run.h"

namespace [[gnu::visibility("default")]] phasor {

/// Texts, borrowed for the call: one, several in braces, or any range of strings or string_views
/// (std::vector<std::string>, std::span<const std::string_view>, …).
class Texts {
 public:
  Texts(const char* text) : texts_{text} {}
  Texts(std::string_view text) : texts_{text} {}
  Texts(const std::string& text) : texts_{text} {}
  Texts(std::initializer_list<std::string_view> texts) : texts_(texts) {}
  template <std::ranges::input_range Range>
  requires(!std::is_convertible_v<const Range&, std::string_view> &&
           std::is_convertible_v<std::ranges::range_reference_t<const Range>, std::string_view> &&
           (std::is_lvalue_reference_v<std::ranges::range_reference_t<const Range>> ||
            std::is_same_v<std::ranges::range_value_t<const Range>, std::string_view>))
      Texts(const Range& texts) {
    for (const std::string_view text : texts) texts_.push_back(text);
  }

  std::span<const std::string_view> get() const { return texts_; }

 private:
  std::vector<std::string_view> texts_;
};

/// Runs a model. Any number of threads may use one Encoder at the same time, also an observer or a
/// progress function within a call. A call begins at once on its caller's thread. The Encoder's
/// other threads help where cores are left: a large batch alone has all of them, and while others
/// call, calls and helpers together are about as many as threads(). No call waits for another, but
/// for a head that is packed; those beyond threads() share the cores as the system shares them.
///
/// Each call that runs takes scratch memory for its largest group, and embed() and its like the
/// states of a batch; of the scratch memory the Encoder keeps as much as threads() calls need.
/// Bound the number of your calls if that is too much.
///
/// After fork() the child can use the Encoder, whatever other threads did; not one that forked
/// within an observer or a progress function. A moved-from Encoder can only be assigned to or
/// destroyed; none is moved or destroyed while a call runs.
///
/// The bits of a sequence's result do not depend on its batch, its place in the batch, the number
/// of threads, or other calls.
class Encoder {
 public:
  /// Packs the weights for this machine. Throws InvalidArgument (no model, threads < 0 or > 1024,
  /// max_plans < 1), ModelError (NaN or infinite weights), BackendError, or what an Executor
  /// throws.
  explicit Encoder(std::shared_ptr<const Model> model, EncoderOptions options = {});
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  /// The hidden states of the texts as they are: no prompt, and no limit on the length other than
  /// that of the positions. Throws InvalidArgument (empty batch, empty text where there are no
  /// special tokens, an id outside the vocabulary, a text too long and Overflow::kError, positions
  /// outside the table, an unknown layer, an output of the wrong size), ModelError (no tokenizer;
  /// NaN or infinite embeddings), and Error with kCancelled.
  Encoding encode(const Texts& texts, const RunOptions& options = {}) const;

  /// The same from token ids; no special token is added. One sequence; several in one array, where
  /// sequence i has the ids offsets[i] … offsets[i + 1] − 1 (offsets [B + 1], from 0 to the number
  /// of ids); or several arrays.
  Encoding encode_ids(std::span<const int32_t> token_ids, const RunOptions& options = {}) const;
  Encoding encode_ids(std::span<const int32_t> token_ids, std::span<const int64_t> offsets,
                      const RunOptions& options = {}) const;
  Encoding encode_ids(std::span<const std::vector<int32_t>> sequences,
                      const RunOptions& options = {}) const;

  /// Vectors of each text, as the checkpoint's own files say: prompt, length, pooling, projections
  /// and normalisation. Texts of similar length run together, in batches and on all threads, so
  /// that any number of texts takes little more memory than their vectors. A text without tokens
  /// has a vector of zeros, and no token. Throws InvalidArgument (a field that is not used or out
  /// of range, an output of the wrong size, a text that is too long under Overflow::kError,
  /// positions that do not suit the model, kinds that need runs of their own), ModelError (no
  /// tokenizer, a kind that the model does not make, a vector that is not finite), and Error with
  /// kCancelled.
  Vectors embed(const Texts& texts, const TextOptions& options = {}) const;
  /// How embed() makes dense vectors with these options, and W, their width. Throw InvalidArgument
  /// for `dimensions` that are too many, and what Model::sentence() throws if it is used.
  Pooling pooling(const TextOptions& options = {}) const;
  int64_t embedding_width(const TextOptions& options = {}) const;

  /// What the checkpoint's classification head says of each text, or of each pair of texts. One
  /// `first` makes a pair with every `second`. Throws as embed() does, and InvalidArgument (another
  /// number of `first` texts, a text without tokens) and ModelError (no head, NaN or infinite
  /// weights in it, a tokenizer that has no pairs).
  Classification classify(const Texts& texts, const TextOptions& options = {}) const;
  Classification classify(const Texts& first, const Texts& second,
                          const TextOptions& options = {}) const;

  /// What the checkpoint's head says of the tokens of each text: spans, such as names, and their
  /// labels. Throws as embed() does, and ModelError for a model without a head that labels tokens.
  Labels label(const Texts& texts, const TextOptions& options = {}) const;

  /// Documents by relevance to a query: by the logit of a reranker, a head with one label; where
  /// the model has no classification head, by the SentenceConfig::similarity of the vectors of
  /// query and document, made with the model's prompts for them; and where it makes no sentence
  /// vectors either, by the maxsim() of their token vectors. Throws as classify() and embed()
  /// do, and ModelError if the head has several labels.
  Ranking rank(std::string_view query, const Texts& documents,
               const TextOptions& options = {}) const;

  /// Scores over the vocabulary for `hidden` [n, C]: [n, V], before the softmax. Throws ModelError
  /// if the checkpoint has no masked-language-model head, or if its scores of finite states are not
  /// finite.
  std::vector<float> mlm_logits(std::span<const float> hidden) const;

  /// Logits of the L labels for `pooled` [n, C], states pooled by ClassifierHead::pooling, or each
  /// token's state where ClassifierHead::mean_of_logits or the head labels tokens: [n, L]. Throws
  /// ModelError if the checkpoint has no classification head.
  std::vector<float> classifier_logits(std::span<const float> pooled) const;

  /// The size of the packed matrices, biases and tables by offset, in bytes. Those of a head
  /// count after its first use. Embeddings are not packed: they are read from the Model.
  int64_t packed_bytes() const;
  const Model& model() const;
  /// To how many tokens embed() and its like cut a text where TextOptions say nothing.
  int64_t max_tokens() const;
  int threads() const;
  Precision precision() const;    // never kAuto
  KernelLibrary kernels() const;  // the same
  /// oneDNN's version, for people: "2.6.3".
  static std::string backend_version();

 private:
  struct [[gnu::visibility("hidden")]] Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace phasor
