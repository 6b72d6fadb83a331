// A model: a checkpoint's configuration, weights and tokenizer, loaded once and shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "phasor/config.h"
#include "phasor/errors.h"
#include "phasor/pooling.h"
#include "phasor/positions.h"
#include "phasor/sparse.h"
#include "phasor/token_vectors.h"
#include "phasor/tokenizer.h"

namespace [[gnu::visibility("default")]] phasor {

/// The formats of numbers in a checkpoint.
enum class DType { kFloat32, kFloat16, kBFloat16, kFloat64 };

/// A borrowed row-major tensor as it lies in the file: `data` may be unaligned and lives as long as
/// the Model it came with. Default-constructed: absent.
struct Tensor {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;

  bool present() const { return data != nullptr; }
  int64_t num_elements() const;
  int64_t num_bytes() const;  // as it lies in the file
  /// Writes elements first … first + count − 1 as float32. Every float16 and bfloat16 is one; a
  /// float64 becomes the nearest, or infinite if it is too large for all.
  void copy_to(float* out, int64_t first, int64_t count) const;
  std::vector<float> to_float() const;
};

/// A linear map: y = W·x + b.
struct LinearWeights {
  Tensor weight;  // [out, in]
  Tensor bias;    // [out]; absent: zeros
};

/// The γ and β of a NormKind.
struct NormWeights {
  Tensor weight;  // [C]
  Tensor bias;    // [C]; absent: zeros
};

/// The weights of one block. attn_norm is absent in block 0 without ModelConfig::first_attn_norm;
/// the norms of q and k and those of branches are there if ModelConfig has qk_norm and
/// branch_norms.
struct BlockWeights {
  LinearWeights q;                       // [H·D, C]
  LinearWeights k, v;                    // each [G·D, C]
  NormWeights q_norm = {}, k_norm = {};  // [D]
  LinearWeights out;                     // [C, H·D]
  NormWeights attn_branch_norm = {};     // [C]
  NormWeights attn_norm;
  LinearWeights gate;                // [F, C]; of a gated MLP
  LinearWeights up;                  // [F, C]
  LinearWeights down;                // [C, F]
  NormWeights mlp_branch_norm = {};  // [C]
  NormWeights mlp_norm;
};

/// Turns a hidden state into scores over the vocabulary: Emb·LN(f(W h + b)) + bias.
struct MlmHead {
  Activation activation = Activation::kGeluErf;  // f
  LinearWeights dense;                           // [E, C]; absent: neither W nor f,
  NormWeights norm;                              // [E]; nor LN
  Tensor decoder;                                // [V, E], often the token embedding itself
  Tensor bias;                                   // [V]
};

/// Turns the states of a text, or of a pair of texts, into a logit for each label:
/// W·LN(f(V·h + c)) + b, where h is the states pooled; or the mean of that over all states h.
struct ClassifierHead {
  /// What turns logits into probabilities or scores: softmax over the labels, sigmoid of each,
  /// nothing, or tanh of each.
  enum class Output { kSoftmax, kSigmoid, kIdentity, kTanh };

  PoolingMode pooling = PoolingMode::kCls;
  bool mean_of_logits = false;                // over all states: `pooling` says nothing
  LinearWeights dense = {};                   // [C, C]; absent: neither V nor f
  Activation activation = Activation::kTanh;  // f
  NormWeights norm = {};                      // [C]; may be absent
  LinearWeights out = {};                     // [labels, C]
  std::vector<std::string> labels = {};       // their names
  Output output = Output::kSoftmax;
};

/// Every tensor of a model; those that its configuration does not use are absent.
struct Weights {
  Tensor token_embedding;       // [V, E]
  Tensor position_table;        // [rows, E], row 0 for position 0; learned, or a stored sinusoid
  Tensor token_type_embedding;  // [types, E]; a token's row is added to it, row 0 by default
  NormWeights embedding_norm;   // [E]
  LinearWeights embedding_map;  // [C, E]; where ModelConfig::d_embedding is set
  Tensor relative_bias;         // [buckets, H]; where the bias is kBuckets
  Tensor relative_table;        // [2·num_buckets, C]; of disentangled attention,
  NormWeights relative_norm;    // [C]; and its norm
  std::vector<BlockWeights> blocks;  // [ModelConfig::num_blocks()]
  NormWeights final_norm;
  std::optional<MlmHead> mlm_head;
  std::optional<ClassifierHead> classifier;
  /// Labels each token's state, whatever its pooling; a checkpoint has at most one of the two.
  std::optional<ClassifierHead> token_classifier;
};

/// How large the weights of an untrained model are.
enum class Spread {
  /// As before training: linear maps are uniform in ±√(6/(in + out)) (Glorot & Bengio 2010); tables
  /// (tokens, learned positions, token types, relative positions) are normal with their own mean
  /// square, so that positions are added as strong as after training.
  kInitial,
  /// As after training: each linear map is normal with its own mean square, and tables are the
  /// trained ones.
  kOwn,
};

/// A checkpoint. Immutable and safe to share between threads; Encoders hold it by shared_ptr.
class Model {
 public:
  /// Loads a folder with config.json, model.safetensors and tokenizer files, or one of the bundled
  /// models by its name ("sinusoidal", "rotary"). Weights stay mapped from the file, and
  /// embeddings are read from it at every run: overwriting the file in place changes them, and
  /// truncating it ends the process (SIGBUS). Replacing it by renaming, as hub clients do, is safe;
  /// LoadOptions::copy reads everything into memory instead. Throws ModelError naming the file, the
  /// key or tensor, and what was expected, and InvalidArgument for a language that the tokenizer
  /// lacks.
  static std::shared_ptr<const Model> load(const std::filesystem::path& folder_or_name,
                                           const LoadOptions& options = {});

  /// For weights from another source. `storage` keeps the tensors' memory alive. Throws
  /// InvalidArgument (config) or ModelError (a tensor is missing or its shape differs from config).
  static std::shared_ptr<const Model> create(ModelConfig config, Weights weights,
                                             std::shared_ptr<const void> storage,
                                             std::shared_ptr<const Tokenizer> tokenizer = nullptr);

  /// The same architecture, tokenizer and files with random weights, drawn from `seed`: what it
  /// computes follows from the architecture and, with Spread::kOwn, from the sizes of the trained
  /// weights. Biases are 0, and norms have γ = 1 and β = 0. A sinusoid stays. Float32, in memory of
  /// its own.
  std::shared_ptr<const Model> untrained(uint64_t seed, Spread spread = Spread::kInitial) const;

  const ModelConfig& config() const;
  const Weights& weights() const;
  bool has_tokenizer() const;
  /// Throws ModelError with the reason if the folder has no tokenizer that phasor reads.
  const Tokenizer& tokenizer() const;
  /// How its texts are prepared: length, prompts. Throws ModelError with the reason if the folder's
  /// files ask for something that phasor does not do.
  const TextConfig& text() const;
  /// How it makes one vector of a text; the mean for create(). Throws ModelError with the reason if
  /// the folder's sentence-transformers files ask for something that phasor does not do.
  const SentenceConfig& sentence() const;
  bool has_sentence() const;
  /// How it makes sparse vectors. Throws ModelError with the reason if its files do not say it, or
  /// ask for something that phasor does not do.
  const SparseConfig& sparse() const;
  bool has_sparse() const;
  /// The same for a vector of each token.
  const TokenVectorConfig& token_vectors() const;
  bool has_token_vectors() const;
  /// The longest sequence that needs no overflow policy; empty if there is no limit. Throws
  /// InvalidArgument if `positions` do not suit the model.
  std::optional<int64_t> max_tokens(const Positions& positions = {}) const;
  /// The vectors that a run adds to the tokens of a sequence of this length (without tokens that do
  /// not advance the position counter), [num_tokens, E]; zeros if none are added. Throws
  /// InvalidArgument as a run does, and under kTruncate and kWindow for more tokens than there are
  /// positions.
  std::vector<float> position_vectors(int64_t num_tokens, const Positions& positions = {},
                                      Overflow overflow = Overflow::kError) const;
  /// The folder it was loaded from; empty for create().
  const std::filesystem::path& folder() const;
  /// Name–value pairs of the safetensors file's `__metadata__`.
  const std::map<std::string, std::string>& metadata() const;
  /// Tensors of the file that the encoder does not use (decoders, other heads), by name.
  const std::vector<std::string>& unused_tensors() const;
  /// Keys of the folder's JSON files that phasor does not read because they do not change the
  /// result: "config.json: hidden_dropout_prob".
  const std::vector<std::string>& unused_keys() const;
  /// Notes on the files, one sentence each: a stored sinusoidal table that differs from the
  /// formula, the tokenizer's notes, …
  const std::vector<std::string>& notes() const;
  /// The tensors in weights() by phasor's names ("blocks.3.attn.q.bias"), in the order of the
  /// forward pass; one that is used twice (a tied decoder) appears once.
  std::vector<std::pair<std::string, Tensor>> parameters() const;
  int64_t num_parameters() const;  // numbers in them
  /// Releases the memory of the mapped files. Pages that are read again come from the system's
  /// cache or the disk. An Encoder does this while it packs.
  void release_pages() const;

 private:
  Model() = default;

  ModelConfig config_;
  Weights weights_;
  std::shared_ptr<const void> storage_;
  std::function<void()> release_pages_;  // of storage_, where that is files
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ModelError> tokenizer_problem_;  // why tokenizer_ is null
  SentenceConfig sentence_;
  std::optional<ModelError> text_problem_;      // what text() throws
  std::optional<ModelError> sentence_problem_;  // what sentence() throws
  std::optional<SparseConfig> sparse_;
  std::optional<ModelError> sparse_problem_;  // what sparse() throws where the files say how
  std::optional<TokenVectorConfig> token_vectors_;
  std::optional<ModelError> token_vectors_problem_;  // the same of token_vectors()
  std::filesystem::path folder_;
  std::map<std::string, std::string> metadata_;
  std::vector<std::string> unused_tensors_;
  std::vector<std::string> unused_keys_;
  std::vector<std::string> notes_;
};

/// The folder of `folder_or_name`: itself if it is a folder, otherwise the bundled model of that
/// name, searched in $PHASOR_MODELS, beside a shared phasor and beside the running program
/// (../share/phasor/models, in wheels ../../../phasor_models), in the folders of
/// add_models_folder(), and in phasor's installation. For OWNER/MODEL, what huggingface_hub has
/// downloaded of it ($HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub,
/// $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub). Throws ModelError listing the
/// folders searched and the models found. Reads the environment, on the caller's thread; all else
/// in the library does not, and Model::load() does this first.
std::filesystem::path find_model(const std::filesystem::path& folder_or_name);

/// Adds a folder in which find_model() searches for models by name. Any thread. Returns true.
bool add_models_folder(const std::filesystem::path& folder);

// The folder of the bundled models: from the CMake target, or with pkg-config, which cannot quote a
// path, relative to the installed headers. Hidden: each library and program of a process adds its
// own.
#if defined(PHASOR_MODELS_DIR)
[[gnu::visibility("hidden")]] inline const bool kModelsFolderAdded =
    add_models_folder(PHASOR_MODELS_DIR);
#elif defined(PHASOR_INSTALLED)
[[gnu::visibility("hidden")]] inline const bool kModelsFolderAdded =
    add_models_folder(std::filesystem::path(__FILE__).parent_path() / "../../share/phasor/models");
#endif

}  // namespace phasor
