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
#include "phasor/progress.h"
#include "phasor/run.h"

namespace phasor::internal {
struct EmbeddingsData;
struct ClassificationData;
}  // namespace phasor::internal

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

/// How embed() makes vectors. The defaults are the checkpoint's own.
struct EmbedOptions {
  std::optional<Pooling> pooling = {};     // empty: Model::sentence().pooling
  std::optional<std::string> prompt = {};  // put before every text; empty: Model::text().prompt
  /// The length of a text in tokens, special tokens included. 0: Model::text().max_tokens, or
  /// else ModelConfig::max_positions, or else 2048; never more than the positions reach.
  int64_t max_tokens = 0;
  /// Of a longer text. kTruncate cuts it to that length, kError refuses it, and kWindow runs all of
  /// it in windows of that length. kClamp and kInterpolate run all of it, up to max_tokens where
  /// that is given, and only change positions past the end of the position table.
  Overflow overflow = Overflow::kTruncate;
  Positions positions = {};
  /// The caller's memory for the vectors, [B, W] with W = Encoder::embedding_width(); empty: memory
  /// of the Embeddings.
  std::span<float> output = {};
  Progress progress = {};     // counts texts; must not use the Encoder
  std::stop_token stop = {};  // ends the call with ErrorCode::kCancelled
  /// As in TokenizeOptions. Special tokens in the prompt always count.
  bool parse_special = false;
  TruncationSide truncation_side = TruncationSide::kTokenizer;
  /// A batch ends with the text that brings it to so many tokens; fewer take less memory and, below
  /// about 2000, more time. 0: 8192, or less where states are very wide. Changes no vector.
  int64_t batch_tokens = 0;
};

/// How classify(), score() and rank() run texts. The defaults are the checkpoint's own.
struct ClassifyOptions {
  /// These are as in EmbedOptions. Of a pair the longer text is cut, and both once they are equally
  /// long.
  int64_t max_tokens = 0;
  Overflow overflow = Overflow::kTruncate;
  Progress progress = {};     // counts texts or pairs; must not use the Encoder
  std::stop_token stop = {};  // ends the call with ErrorCode::kCancelled
  bool parse_special = false;
  TruncationSide truncation_side = TruncationSide::kTokenizer;
  /// Put before every text, and before the first of a pair; empty: Model::text().prompt. rank()
  /// with vectors takes the model's prompts for queries and documents.
  std::optional<std::string> prompt = {};
};

/// How embed_sparse() and embed_tokens() run texts. The defaults are the checkpoint's own.
struct RetrievalOptions {
  /// Takes the model's prompt for queries. embed_sparse() looks texts up where the model has
  /// SparseConfig::query_weights: a text that is too long is then cut, or an error under kError.
  /// embed_tokens() takes TokenVectorConfig::query; where the model's files give queries a fixed
  /// length, max_tokens is ignored.
  bool is_query = false;
  OffsetUnit offset_unit = OffsetUnit::kNone;  // of TokenVectors::spans
  /// Put before every text; empty: TextConfig::prompt_for().
  std::optional<std::string> prompt = {};
  /// These are as in EmbedOptions.
  int64_t max_tokens = 0;
  Overflow overflow = Overflow::kTruncate;
  Progress progress = {};     // counts texts; must not use the Encoder
  std::stop_token stop = {};  // ends the call with ErrorCode::kCancelled
  bool parse_special = false;
  TruncationSide truncation_side = TruncationSide::kTokenizer;
};

/// Which vectors embed_all() makes.
struct VectorKinds {
  bool dense = true;   // those of embed()
  bool sparse = true;  // those of embed_sparse()
  bool tokens = true;  // those of embed_tokens()
  bool operator==(const VectorKinds&) const = default;
};

/// How embed_chunks() cuts texts and runs them.
struct ChunkOptions {
  /// 0: a chunk is a sentence: it ends at ".", "!", "?" or "…" before a space that none of a to z
  /// follows, at "。", "！" or "？", or at a blank line. Above 0: it has so many tokens, and
  /// the last one fewer.
  int64_t chunk_tokens = 0;
  /// Where given, the chunks of each text, in any order; they may overlap. A token is in those in
  /// which it ends. The vector of a chunk without tokens is zeros. [B]
  std::vector<std::vector<TextSpan>> spans = {};
  OffsetUnit offset_unit = OffsetUnit::kBytes;  // of spans, here and in ChunkVectors; not kNone
  /// A text that is too long runs in windows, unless another policy is chosen. `output` must be
  /// empty.
  EmbedOptions embed = {.overflow = Overflow::kWindow};
};

/// How tokens with labels become spans, as in the token-classification pipeline of Transformers.
/// "B-X" begins a span of the kind X, and "I-X" and a label without such a prefix continue one of
/// their kind. kNone: a span is a token. kSimple: tokens in a row of the same kind. The others
/// first give a word one label: its first token's, that of the largest mean of its tokens'
/// probabilities, or that of its token with the largest one. A word of WordPiece is known by its
/// "##"; in other tokenizers it ends at a space. Where labels begin with "E-" or "S-" (BIOES),
/// tokens get the most probable sequence of labels in which B, I and E, or S alone, make up every
/// span, and only kNone differs.
enum class Aggregation : int32_t { kSimple, kNone, kFirst, kAverage, kMax };

/// How label_tokens() runs texts.
struct LabelOptions {
  Aggregation aggregation = Aggregation::kSimple;
  OffsetUnit offset_unit = OffsetUnit::kBytes;  // of LabelledSpan::span; not kNone
  /// Longer texts run in windows of so many tokens, see Overflow::kWindow. 0: as in EmbedOptions.
  int64_t max_tokens = 0;
  bool parse_special = false;  // as in TokenizeOptions
  Progress progress = {};      // counts texts; must not use the Encoder
  std::stop_token stop = {};   // ends the call with ErrorCode::kCancelled
};

/// How a text was run.
struct TextReport {
  int64_t num_tokens = 0;      // run; 0: the text has none, and its vector is zeros
  int64_t dropped_tokens = 0;  // cut off
  int64_t invalid_bytes = 0;   // not UTF-8, replaced by U+FFFD
};

/// The sparse vectors of B texts, in their order.
struct SparseVectors {
  int64_t width = 0;                  // V
  std::vector<SparseVector> vectors;  // [B]
  std::vector<TextReport> reports;    // [B]

  int64_t size() const { return std::ssize(vectors); }
  /// They throw std::out_of_range if there is none.
  const SparseVector& operator[](int64_t i) const& { return vectors.at(static_cast<size_t>(i)); }
  SparseVector operator[](int64_t i) && { return std::move(vectors.at(static_cast<size_t>(i))); }
  const TextReport& report(int64_t i) const& { return reports.at(static_cast<size_t>(i)); }
  const TextReport& report(int64_t i) && = delete;
};

/// The vectors of B texts that have several each, those of one text behind those of the other: N in
/// all.
struct VectorLists {
  int64_t width = 0;                   // W
  std::vector<float> values;           // [N, W]
  std::vector<int64_t> offsets = {0};  // the first of each text, and the end of the last: [B + 1]
  std::vector<TextSpan> spans;         // what each stands for in its text: [N]
  std::vector<TextReport> reports;     // [B]

  int64_t size() const { return offsets.empty() ? 0 : std::ssize(offsets) - 1; }
  /// Text i's, [n, W]. They throw std::out_of_range if there is none.
  std::span<const float> operator[](int64_t i) const& {
    const int64_t begin = offsets.at(static_cast<size_t>(i)) * width;
    return std::span(values).subspan(begin, offsets.at(static_cast<size_t>(i) + 1) * width - begin);
  }
  std::span<const float> operator[](int64_t i) && = delete;
  const TextReport& report(int64_t i) const& { return reports.at(static_cast<size_t>(i)); }
  const TextReport& report(int64_t i) && = delete;
};

/// Vectors of tokens. Their spans are there if RetrievalOptions::offset_unit asks for them; see
/// Tokens::offsets. Tokens of a prompt, a marker and an expansion have {0, 0}.
struct TokenVectors : VectorLists {
  std::vector<int32_t> token_ids;  // [N]
};

/// Vectors of chunks.
struct ChunkVectors : VectorLists {};

/// Part of a text, and what it is.
struct LabelledSpan {
  std::string label;  // its kind; of kNone the label itself
  float score = 0;    // the mean of the probabilities of its tokens, or of its words
  TextSpan span;      // in LabelOptions::offset_unit
  TextSpan tokens;    // its first token's number, and that behind its last's
};

/// The spans of a text whose label is not "O", in order.
struct LabelledText {
  std::vector<LabelledSpan> spans;
  TextReport report;
};

/// Those of B texts, in their order.
struct LabelledTexts {
  std::vector<LabelledText> texts;  // [B]

  int64_t size() const { return std::ssize(texts); }
  /// They throw std::out_of_range if there is none.
  const LabelledText& operator[](int64_t i) const& { return texts.at(static_cast<size_t>(i)); }
  LabelledText operator[](int64_t i) && { return std::move(texts.at(static_cast<size_t>(i))); }
  const TextReport& report(int64_t i) const& { return (*this)[i].report; }
  const TextReport& report(int64_t i) && = delete;
};

/// The vectors of B texts, in their order. A value; copies share the data.
class Embeddings {
 public:
  int64_t size() const;   // B
  int64_t width() const;  // W
  /// [B, W]; EmbedOptions::output if that was given.
  std::span<const float> values() const&;
  std::span<const float> values() && = delete;
  /// Vector i, [W]. Throws std::out_of_range if there is none, as does report().
  std::span<const float> operator[](int64_t i) const&;
  std::span<const float> operator[](int64_t i) && = delete;
  const TextReport& report(int64_t i) const&;
  const TextReport& report(int64_t i) && = delete;

 private:
  friend class Encoder;
  explicit Embeddings(std::shared_ptr<const internal::EmbeddingsData> data);
  std::shared_ptr<const internal::EmbeddingsData> data_;
};

/// Vectors of B texts, of the kinds that were asked for.
struct AllVectors {
  std::optional<Embeddings> dense;
  std::optional<SparseVectors> sparse;
  std::optional<TokenVectors> tokens;

  int64_t size() const {
    return dense ? dense->size() : sparse ? sparse->size() : tokens ? tokens->size() : 0;
  }
  /// Throws std::out_of_range if there is no text i.
  const TextReport& report(int64_t i) const& {
    return dense ? dense->report(i) : sparse ? sparse->report(i) : tokens.value().report(i);
  }
  const TextReport& report(int64_t i) && = delete;
};

/// What a classification head says of B texts or pairs, in their order, for each of the labels in
/// ClassifierHead::labels. A value; copies share the data.
class Classification {
 public:
  int64_t size() const;                    // B
  int64_t num_labels() const;              // C
  std::span<const float> logits() const&;  // [B, C]
  std::span<const float> logits() && = delete;
  /// By ClassifierHead::output; the logits where that is kIdentity. [B, C]
  std::span<const float> probabilities() const&;
  std::span<const float> probabilities() && = delete;
  /// Those of text or pair i, [C]. They throw std::out_of_range if there is none.
  std::span<const float> logits(int64_t i) const&;
  std::span<const float> logits(int64_t i) && = delete;
  std::span<const float> probabilities(int64_t i) const&;
  std::span<const float> probabilities(int64_t i) && = delete;
  const TextReport& report(int64_t i) const&;
  const TextReport& report(int64_t i) && = delete;

 private:
  friend class Encoder;
  explicit Classification(std::shared_ptr<const internal::ClassificationData> data);
  std::shared_ptr<const internal::ClassificationData> data_;
};

/// B documents by relevance to a query.
struct Ranking {
  std::vector<int64_t> order;  // the documents' numbers, best first, [B]
  /// Of the documents in their own order: the head's probability, or the similarity. [B]
  std::vector<float> scores;
  std::vector<TextReport> reports;  // of the documents, [B]

  int64_t size() const { return std::ssize(reports); }
  /// Throws std::out_of_range if there is none.
  const TextReport& report(int64_t i) const& { return reports.at(static_cast<size_t>(i)); }
  const TextReport& report(int64_t i) && = delete;
};

/// Runs a model. Holds packed weights, primitives and scratch memory, so it belongs to one thread
/// at a time: a call that runs it, or primitives(), throws InvalidArgument (ErrorCode::kBusy) while
/// another runs. Use one Encoder per thread, made with replica(), which shares the packed weights.
/// A moved-from Encoder can only be assigned to or destroyed.
///
/// The bits of a sequence's result do not depend on its batch, its place in the batch, or the
/// number of threads.
class Encoder {
 public:
  /// Packs the weights for this machine. Throws InvalidArgument (no model, threads < 0 or > 1024,
  /// max_plans < 1), ModelError (NaN or infinite weights), BackendError, or what an Executor
  /// throws.
  explicit Encoder(std::shared_ptr<const Model> model, EncoderOptions options = {});
  Encoder(Encoder&&) noexcept;
  Encoder& operator=(Encoder&&) noexcept;
  ~Encoder();

  /// Another Encoder over the same packed weights, for another thread.
  Encoder replica() const;

  /// One vector of each text, made as the checkpoint's own files say: prompt, length, pooling,
  /// projections and normalisation. Texts of similar length are run together, in batches and on all
  /// threads, so that any number of texts takes little more memory than their vectors. Throws
  /// InvalidArgument (an output of the wrong size, a text that is too long under Overflow::kError,
  /// positions that do not suit the model), ModelError (no tokenizer, what Model::sentence()
  /// throws if it is used, or a vector that is not finite), and Error with kCancelled.
  Embeddings embed(const Texts& texts, const EmbedOptions& options = {});
  /// W, the width of embed()'s vectors with these options: that of the pooled vector, not of the
  /// token embedding. Throws what Model::sentence() throws if it is used.
  int64_t embedding_width(const EmbedOptions& options = {}) const;

  /// The hidden states of the texts as they are: no prompt, and no limit on the length other than
  /// that of the positions. Throws InvalidArgument (empty batch, empty text where there are no
  /// special tokens, an id outside the vocabulary, a text too long and Overflow::kError, positions
  /// outside the table, an unknown layer, an output of the wrong size), ModelError (no tokenizer;
  /// NaN or infinite embeddings), and Error with kCancelled.
  Encoding encode(const Texts& texts, const RunOptions& options = {});

  /// The same from token ids; no special token is added. One sequence; several in one array, where
  /// sequence i has the ids offsets[i] … offsets[i + 1] − 1 (offsets [B + 1], from 0 to the number
  /// of ids); or several arrays.
  Encoding encode_ids(std::span<const int32_t> token_ids, const RunOptions& options = {});
  Encoding encode_ids(std::span<const int32_t> token_ids, std::span<const int64_t> offsets,
                      const RunOptions& options = {});
  Encoding encode_ids(std::span<const std::vector<int32_t>> sequences,
                      const RunOptions& options = {});

  /// Scores over the vocabulary for `hidden` [n, C]: [n, V], before the softmax. Throws ModelError
  /// if the checkpoint has no masked-language-model head, or if its scores of finite states are not
  /// finite.
  std::vector<float> mlm_logits(std::span<const float> hidden);

  /// Logits of the labels for `pooled` [n, C], states pooled by ClassifierHead::pooling, or each
  /// token's state where ClassifierHead::mean_of_logits or the head labels tokens: [n, labels].
  /// Throws ModelError if the checkpoint has no classification head.
  std::vector<float> classifier_logits(std::span<const float> pooled);

  /// What the checkpoint's classification head says of each text, or of each pair of texts. One
  /// `first` makes a pair with every `second`. Batches and memory are those of embed(). Throws
  /// InvalidArgument (another number of `first` texts, a text without tokens or that is too long
  /// under Overflow::kError), ModelError (no head, NaN or infinite weights in it, no tokenizer, or
  /// one that has no pairs), and Error with kCancelled.
  Classification classify(const Texts& texts, const ClassifyOptions& options = {});
  Classification classify(const Texts& first, const Texts& second,
                          const ClassifyOptions& options = {});
  /// A sparse vector of each text, as SparseConfig says. Batches are those of embed(); memory is
  /// that of one batch's states and of a block of scores over the vocabulary. Throws what embed()
  /// throws, and ModelError if the model makes no sparse vectors.
  SparseVectors embed_sparse(const Texts& texts, const RetrievalOptions& options = {});
  /// A vector of each token, as TokenVectorConfig says; compare texts by maxsim(). Batches are
  /// those of embed(). Throws what embed() throws, and ModelError if the model makes no such
  /// vectors.
  TokenVectors embed_tokens(const Texts& texts, const RetrievalOptions& options = {});
  /// Vectors of one or several kinds, from one run of each text (BGE-M3), which is a query or a
  /// document, with the model's prompt for these. Throws what embed(), embed_sparse() and
  /// embed_tokens() throw, and InvalidArgument where no kind is asked for, or several of which one
  /// needs another run: with a marker, an expansion or another length, or queries that are looked
  /// up.
  AllVectors embed_all(const Texts& texts, VectorKinds kinds = {},
                       const RetrievalOptions& options = {});
  /// A vector of each chunk of a text, pooled from the states of its tokens in a run of the whole
  /// text, which they therefore depend on (late chunking; Günther et al. 2024). Tokens without a
  /// place in the text, such as special ones, are in no chunk, and a chunk without tokens has no
  /// vector, unless ChunkOptions::spans gives it. Throws what embed() throws, and InvalidArgument
  /// for the pooling cls and for spans outside a text.
  ChunkVectors embed_chunks(const Texts& texts, const ChunkOptions& options = {});
  /// How similar documents are to a query [n, E], on all threads: maxsim() of each, divided by n
  /// where TokenVectorConfig::mean. Throws InvalidArgument for vectors of another width, and what
  /// Model::token_vectors() throws.
  std::vector<float> similarities(std::span<const float> query, const TokenVectors& documents);
  /// What the checkpoint's head says of the tokens of each text; memory is that of one text's
  /// states, or of about 8192 tokens'. Throws ModelError (no head that labels tokens, no tokenizer,
  /// NaN or infinite weights), InvalidArgument (offset_unit kNone), and Error with kCancelled.
  LabelledTexts label_tokens(const Texts& texts, const LabelOptions& options = {});
  /// Relevance by a reranker: the logit of each pair, by which to rank, since a sigmoid near 1
  /// makes ties. Throws what classify() throws, and ModelError if the head has several labels.
  std::vector<float> score(const Texts& first, const Texts& second,
                           const ClassifyOptions& options = {});
  /// Documents by relevance to a query: by the logit of a reranker; where the model has no
  /// classification head, by the SentenceConfig::similarity of the vectors of query and document,
  /// made with the model's prompts for them; and where it makes no sentence vectors either, by
  /// maxsim() of their token vectors. Throws what classify(), embed() or embed_tokens() throws, and
  /// ModelError if the head has several labels.
  Ranking rank(std::string_view query, const Texts& documents, const ClassifyOptions& options = {});

  /// The implementations that the last run used, in the order of the forward pass; empty before the
  /// first run. Attention's steps are those of one of the run's sequences: others depend on their
  /// length.
  std::vector<PrimitiveInfo> primitives() const;

  /// The size of the packed matrices, biases and tables by offset, in bytes; replicas share them.
  /// Those of a head count after its first use. Embeddings are not packed: they are read from the
  /// Model.
  int64_t packed_bytes() const;
  const Model& model() const;
  int threads() const;
  Precision precision() const;    // never kAuto
  KernelLibrary kernels() const;  // the same
  /// oneDNN's version, for people: "2.6.3".
  static std::string backend_version();

 private:
  struct [[gnu::visibility("hidden")]] Impl;
  explicit Encoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace phasor
