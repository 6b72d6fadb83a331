// The C interface, for every language that can call C, in libphasor_c.so. Its ABI is stable:
// functions keep their parameters, structs only grow, constants keep their values.
//
//     phasor_model *model;
//     phasor_encoder *encoder;
//     phasor_result *result;
//     phasor_array vectors;
//     const char *texts[] = {"Tom bit a dog.", "A dog bit Tom."};
//     if (phasor_model_load("sinusoidal", NULL, &model) != PHASOR_OK ||
//         phasor_encoder_create(model, NULL, &encoder) != PHASOR_OK ||
//         phasor_embed(encoder, &(phasor_texts){texts, NULL, 2}, NULL, &result) != PHASOR_OK ||
//         phasor_result_array(result, "dense", -1, &vectors) != PHASOR_OK) {
//       fprintf(stderr, "%s\n", phasor_error_message());
//     }
//
// Functions that can fail return a status. On failure they write nothing but the message, which
// belongs to the calling thread (and perhaps into the caller's memory for states and vectors), and
// the object is as usable as before.
//
// Options are structs that begin with their size: write {.size = sizeof(phasor_run_options), …}, so
// that a program works with a later phasor, whose structs are longer. Fields that are zero, and a
// NULL instead of the struct, mean the defaults. The structs without a size never change. Choices
// are words ("window", "bf16"), and how texts run is a list of names and values:
//
//     const char *settings[] = {"prompt", "query: ", "max_tokens", "128", NULL};
//     phasor_text_options options = {.size = sizeof options, .settings = settings};
//
// What a function takes is borrowed for the call. What it returns through `phasor_…**` belongs to
// the caller, who frees it; NULL may be freed. Handles may be freed in any order: an encoder keeps
// its model alive. Strings are UTF-8. Bytes of texts that are not UTF-8 are read as U+FFFD and
// counted.
//
// Threads: a model, an encoder and a result may be used by any number of threads at the same time,
// an encoder also by a callback within a call. Calls of an encoder share its threads, and no call
// waits for another. After fork() everything works in the child, whatever other threads did, unless
// a callback forked.
//
// Shape letters: N tokens of all texts, B texts, T tokens of one text, C width of the states, H
// heads, D width of a head, V vocabulary, W width of the vectors of texts.
#ifndef PHASOR_PHASOR_C_H_
#define PHASOR_PHASOR_C_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__GNUC__)
/// Marks what libphasor_c.so exports.
#define PHASOR_API
#else
#define PHASOR_API __attribute__((visibility("default")))
#endif

/// Counts what is added to this interface; phasor_interface_version() is that of the library.
#define PHASOR_INTERFACE_VERSION 1

/// Why a call failed.
typedef enum phasor_status {
  PHASOR_OK = 0,
  PHASOR_INVALID_ARGUMENT = 1,  ///< the caller's input: an id out of range, no texts, …
  PHASOR_EMPTY_TEXT = 2,        ///< a sequence without tokens
  PHASOR_TOO_LONG = 3,          ///< a text longer than the positions, and no policy for it
  PHASOR_CANCELLED = 4,         ///< by a phasor_stop, or by a callback that did not return 0
  PHASOR_NOT_FOUND = 5,         ///< no such model, or the result has no such array
  PHASOR_INVALID_MODEL = 6,     ///< files that are missing, damaged or contradict each other
  PHASOR_UNSUPPORTED = 7,       ///< a valid checkpoint of a kind that phasor does not implement, or
                                ///< without the head that the call needs
  PHASOR_BACKEND = 8,           ///< oneDNN refused to create or run a primitive
  PHASOR_OUT_OF_MEMORY = 9,
  PHASOR_INTERNAL = 10  ///< a defect of phasor; please report the message
} phasor_status;

/// The message of the last call of this thread that failed: one line that says what is wrong, the
/// value, what is allowed, and what to do. Valid until this thread's next call that fails. Never
/// NULL; empty before the first.
PHASOR_API const char* phasor_error_message(void);

/// PHASOR_INTERFACE_VERSION of the library.
PHASOR_API int32_t phasor_interface_version(void);
/// What the library says of itself: "version" ("0.2.0"); "backend_version", oneDNN's ("2.6.3");
/// "faster_than_float32", what other precisions give on machines with this one's instructions, as a
/// sentence for people, empty where nothing was measured; "hooks", their names as TransformerLens
/// has them, a line each ("hook_embed", "blocks.{}.attn.hook_pattern" where every block has one,
/// see phasor/hooks.h); "views", those of phasor_observe() in their order, as JSON: [{"name",
/// "title", "hint", "unit", "needs", "slow", …}], where "needs" is "nothing", "text" (one by
/// itself), "two runs", "texts" (means), "lines" (masked ones) or "two runs of lines". Belongs to
/// the library. NULL for other names, or where memory is out.
PHASOR_API const char* phasor_info(const char* what);

typedef struct phasor_model phasor_model;      ///< configuration, weights and tokenizer
typedef struct phasor_encoder phasor_encoder;  ///< packed weights, threads and scratch memory
typedef struct phasor_result phasor_result;    ///< arrays and strings, by name; never changes
typedef struct phasor_stop phasor_stop;        ///< asks calls to end

// --- Models ---

/// How phasor_model_load() reads a folder.
typedef struct phasor_load_options {
  size_t size;           ///< sizeof(phasor_load_options)
  const char* language;  ///< for tokenizers whose texts carry one ("fr"); NULL: the files' own
  int32_t copy;          ///< not 0: reads the weights into memory instead of mapping their files
  int32_t follow_links;  ///< not 0: links may lead out of the folder; see phasor/tokenizer.h
} phasor_load_options;

/// Loads a model folder, a bundled model by its name ("sinusoidal", "learned", "none"), or one in
/// the hub's cache ("OWNER/MODEL"; see find_model() in phasor/model.h). Weights stay mapped from
/// their files unless `copy` is set; see phasor/model.h for what that allows.
PHASOR_API phasor_status phasor_model_load(const char* folder_or_name,
                                           const phasor_load_options* options,
                                           phasor_model** model);
/// Its encoders keep what they need.
PHASOR_API void phasor_model_free(phasor_model* model);
/// What the model is, as JSON with the keys of `infer info --json`. Belongs to the model.
PHASOR_API const char* phasor_model_info(const phasor_model* model);
/// The weights as they lie in memory or in the mapped file, without copies: `data` may be
/// unaligned. Arrays: every tensor that the model uses, by phasor's name: "token_embedding.weight",
/// "blocks.0.attn.q.bias"; one that is used twice, once. The result keeps the model.
PHASOR_API phasor_status phasor_model_tensors(const phasor_model* model, phasor_result** result);
/// Adds a folder in which phasor_model_load() searches for models by name.
PHASOR_API phasor_status phasor_add_models_folder(const char* folder);

// --- Texts ---

/// Texts of a call.
typedef struct phasor_texts {
  const char* const* data;
  const int64_t* sizes;  ///< in bytes; NULL: each text ends with a NUL
  int64_t count;
} phasor_texts;

/// How phasor_tokenize() reads texts.
typedef struct phasor_tokenize_options {
  size_t size;            ///< sizeof(phasor_tokenize_options)
  int32_t parse_special;  ///< not 0: special tokens written in the text ("[MASK]") count as such
  int32_t no_special_tokens;  ///< not 0: none are added round a text
  int64_t max_tokens;         ///< above 0: texts are cut to this many tokens, special ones included
  int64_t prompt_bytes;       ///< the first bytes of a text in which special tokens always count
  const char* offset_unit;    ///< what "spans" count: "bytes" or "characters"; NULL: there are none
  const char* truncation_side;  ///< "right" or "left"; NULL: as the tokenizer's files say
} phasor_tokenize_options;

/// Arrays: "offsets" int64 [B + 1], "token_ids" int32 [N], "dropped_tokens" and "invalid_bytes"
/// int64 [B], "token_types" int32 [N] for pairs, "spans" int64 [N, 2] where offset_unit asks for
/// them: see Tokens::offsets in phasor/tokenizer.h. Strings: "pieces", N of them, at most 64 times
/// the bytes of their text and a megabyte (otherwise PHASOR_INVALID_MODEL). `second` may be NULL;
/// otherwise each text of `first` makes a pair with the one of the same number in `second`.
PHASOR_API phasor_status phasor_tokenize(const phasor_model* model, const phasor_texts* first,
                                         const phasor_texts* second,
                                         const phasor_tokenize_options* options,
                                         phasor_result** result);

/// The string of each token id [n], of "[MASK]" and the like too. Strings: "pieces", n of them.
PHASOR_API phasor_status phasor_pieces(const phasor_model* model, const int32_t* token_ids,
                                       int64_t n, phasor_result** result);

// --- Results ---

/// Element types of arrays. The last three are only those of phasor_model_tensors().
enum {
  PHASOR_FLOAT32 = 0,
  PHASOR_INT32 = 1,
  PHASOR_INT64 = 2,
  PHASOR_FLOAT16 = 3,
  PHASOR_BFLOAT16 = 4,
  PHASOR_FLOAT64 = 5
};

/// A row-major array; `data` belongs to the result or to the caller's own memory that it was
/// written to.
typedef struct phasor_array {
  const void* data;
  int32_t type;      ///< PHASOR_FLOAT32, …
  int32_t num_dims;  ///< 1 to 3
  int64_t shape[4];  ///< [num_dims]; the rest are 0
} phasor_array;

/// An array by name. `text` is −1 for arrays of all texts, and the number of a text for recorded
/// hooks. PHASOR_NOT_FOUND lists the names that there are.
PHASOR_API phasor_status phasor_result_array(const phasor_result* result, const char* name,
                                             int64_t text, phasor_array* array);
/// The name of array i, which phasor_result_array() takes; NULL past the last. Recorded hooks are
/// listed once, for all texts.
PHASOR_API const char* phasor_result_array_name(const phasor_result* result, int64_t i);
/// String i of those called `name` ("pieces", "labels"), ended by a NUL; NULL past the last. Where
/// `size` is not NULL, it gets the number of bytes without that NUL.
PHASOR_API const char* phasor_result_string(const phasor_result* result, const char* name,
                                            int64_t i, int64_t* size);
/// Ends what was borrowed from it.
PHASOR_API void phasor_result_free(phasor_result* result);

// --- Stopping and progress ---

/// A stop may serve any number of calls, on any threads. Must outlive them.
PHASOR_API phasor_status phasor_stop_create(phasor_stop** stop);
/// Ends all calls that were given it with PHASOR_CANCELLED, also later ones. From any thread.
PHASOR_API void phasor_stop_request(phasor_stop* stop);
/// After all calls that were given it.
PHASOR_API void phasor_stop_free(phasor_stop* stop);

/// Called after each batch, on the caller's thread, with how many texts have been run. Returns 0 to
/// go on; anything else ends the call with PHASOR_CANCELLED. No exception may leave it.
typedef int32_t (*phasor_progress)(void* user, int64_t done, int64_t total);

// --- Encoders ---

/// How an encoder runs.
typedef struct phasor_encoder_options {
  size_t size;            ///< sizeof(phasor_encoder_options)
  const char* precision;  ///< of the linear maps: "f32", "bf16", "int8" or "auto", see
                          ///< phasor/precision.h for what they cost; NULL: "f32"
  const char* kernels;    ///< "own", "onednn" (its primitives alone) or "auto"; NULL: "auto"
  int32_t threads;        ///< of a run, the caller's included; 0: all available cores
  int32_t reserved;
} phasor_encoder_options;

/// Packs the weights for this machine.
PHASOR_API phasor_status phasor_encoder_create(const phasor_model* model,
                                               const phasor_encoder_options* options,
                                               phasor_encoder** encoder);
/// How it runs, as JSON: {"threads", "precision", "kernels", "max_tokens"}; the words are never
/// "auto", and "max_tokens" is the length of a text where the setting of that name is not given.
/// Belongs to the encoder; NULL for no encoder.
PHASOR_API const char* phasor_encoder_info(const phasor_encoder* encoder);
/// Ends its threads.
PHASOR_API void phasor_encoder_free(phasor_encoder* encoder);

/// Which positions a run adds, and to which tokens.
typedef struct phasor_positions {
  size_t size;       ///< sizeof(phasor_positions)
  const char* kind;  ///< "none", "sinusoidal:marian", "learned", "rotary:10000", "alibi"; NULL: own
  const float* table;  ///< [table_rows, table_width], in place of `kind`; NULL: none
  int64_t table_rows;
  int64_t table_width;
  const int32_t* ids;  ///< [num_ids], one for each token of the only text; NULL: none
  int64_t num_ids;
  const char* const* edits;  ///< [num_edits], in order: "reverse", "shift=3", "scale=0.5", …
  int64_t num_edits;
} phasor_positions;

/// A residual connection that a run leaves out: x = f(x) where it was x = x + f(x).
typedef struct phasor_residual_cut {
  int64_t layer;     ///< from 0
  const char* site;  ///< "attn", "mlp" or "both"; NULL: both
} phasor_residual_cut;

/// A tensor that passes a hook, of one text. Valid during the callback.
typedef struct phasor_hook_event {
  size_t size;          ///< sizeof(phasor_hook_event) of the library
  const char* name;     ///< "blocks.3.attn.hook_pattern"
  int64_t text;         ///< its number in the batch
  int64_t first_token;  ///< the text's token in row 0; above 0 in later windows of a long text
  phasor_array array;   ///< float32
  float* changeable;  ///< the same memory, to be written to; NULL unless phasor_hook::change is set
} phasor_hook_event;

/// Returns 0 to go on; anything else ends the run with PHASOR_CANCELLED. Called for one event at a
/// time, from any of the run's threads. No exception may leave it.
typedef int32_t (*phasor_hook_function)(void* user, const phasor_hook_event* event);

/// Who is called where.
typedef struct phasor_hook {
  const char* name;  ///< a path, the end of one in every block ("attn.hook_pattern"), or "all"
  phasor_hook_function function;
  void* user;      ///< handed to the function
  int32_t change;  ///< not 0: the function may change the values, and the run goes on with them
} phasor_hook;

/// How phasor_encode() runs.
typedef struct phasor_run_options {
  size_t size;                        ///< sizeof(phasor_run_options)
  const phasor_positions* positions;  ///< NULL: the model's own
  /// Of texts longer than the positions reach: "error", "truncate", "clamp", "interpolate" or
  /// "window", see phasor/positions.h; NULL: "error".
  const char* overflow;
  const phasor_residual_cut* cut_residuals;  ///< [num_cut_residuals]
  int64_t num_cut_residuals;
  const char* const* record;  ///< [num_record] names as in phasor_hook: kept, as changed
  int64_t num_record;
  const phasor_hook* hooks;  ///< [num_hooks], called in order, those that change first
  int64_t num_hooks;
  float* hidden;               ///< the caller's memory for the states [N, C]; NULL: the result's
  int64_t hidden_size;         ///< in numbers: N·C
  const int32_t* token_types;  ///< [num_token_types], of phasor_encode_ids(); NULL: all 0
  int64_t num_token_types;
  phasor_stop* stop;      ///< may be NULL
  int32_t parse_special;  ///< as in phasor_tokenize_options, of phasor_encode()
  int32_t reserved;
} phasor_run_options;

/// The hidden states of texts as they are. Arrays: "hidden" float32 [N, C], "offsets" int64 [B + 1]
/// (text i has rows offsets[i] … offsets[i + 1] − 1), "token_ids" int32 [N], "positions" float32
/// [N], and each recorded hook, by text.
PHASOR_API phasor_status phasor_encode(phasor_encoder* encoder, const phasor_texts* texts,
                                       const phasor_run_options* options, phasor_result** result);
/// The same from token ids [N], to which no special token is added; offsets [num_texts + 1], from 0
/// to N.
PHASOR_API phasor_status phasor_encode_ids(phasor_encoder* encoder, const int32_t* token_ids,
                                           const int64_t* offsets, int64_t num_texts,
                                           const phasor_run_options* options,
                                           phasor_result** result);

/// How texts run that get vectors, labels or ranks. The defaults are the checkpoint's own.
typedef struct phasor_text_options {
  size_t size;  ///< sizeof(phasor_text_options)
  /// Names and values by turns, ended by a NULL; NULL: none. Names, values, and the calls that use
  /// them are those of TextOptions in phasor/options.h, written as phasor/fields.h says: numbers in
  /// digits, "true" or "false", the words of an enum ("window"), lists with commas between
  /// ("dense,sparse"). A value ends at a NUL, so a prompt holds none. A name that there is not, or
  /// that the call does not use, is refused.
  const char* const* settings;
  const phasor_positions* positions;  ///< of phasor_embed(); NULL: the model's own
  float* output;  ///< of phasor_embed(): the caller's memory for "dense" [B, W]; NULL: the result's
  int64_t output_size;       ///< in numbers: B·W
  phasor_progress progress;  ///< may be NULL
  void* user;                ///< handed to `progress`
  phasor_stop* stop;         ///< may be NULL
} phasor_text_options;

/// Vectors of each text, of the setting "kinds": "dense" (the default), "sparse" (SPLADE's and
/// BGE-M3's), "tokens" (one of each token, for late interaction), "states" (each token's last
/// hidden state), or several from one run of each text. Arrays, of those that were asked for:
///   "dense" float32 [B, W]; of no texts its shape is [0, W];
///   "sparse_offsets" int64 [B + 1], text i has the weights offsets[i] to offsets[i + 1] − 1;
///   "sparse_indices" int32 [S], token ids in rising order, and "sparse_values" float32 [S];
///   "token_offsets" likewise; "token_vectors" float32 [N, E]; "token_ids" int32 [N]; and, where
///   the setting "offset_unit" asks for them, "token_spans" int64 [N, 2], from begin to before end
///   in the text; of states "state_offsets", "state_vectors", "state_ids" and "state_spans";
/// and of every call with phasor_text_options "num_tokens", "dropped_tokens" and "invalid_bytes"
/// int64 [B]. `result` may be NULL where options->output is set. The vectors take 4·B·W bytes, and
/// the run up to 8·B·W more: of wide vectors, give few texts at once.
PHASOR_API phasor_status phasor_embed(phasor_encoder* encoder, const phasor_texts* texts,
                                      const phasor_text_options* options, phasor_result** result);

/// Vectors [count, width] in fewer bytes, those of one behind those of the other, as
/// phasor::quantize() makes them. `type`: "f16", "int8", "uint8", "binary" or "ubinary". `least`
/// and `most` [width] are the ranges of the columns for int8 and uint8, and NULL for the others.
/// `output_size` must be what all take: count times 2 · width bytes, width, or ⌈width / 8⌉.
PHASOR_API phasor_status phasor_quantize(const float* vectors, int64_t count, int64_t width,
                                         const char* type, const float* least, const float* most,
                                         void* output, int64_t output_size);

/// What the checkpoint's classification head says of texts, or of pairs where `second` is not NULL;
/// one text in `first` makes a pair with every one of `second`. Arrays: "logits" and
/// "probabilities" float32 [B, labels]. Strings: "labels". They take 8·B·labels bytes, and the run
/// up to 4·B·labels more: of many labels, give few texts at once.
PHASOR_API phasor_status phasor_classify(phasor_encoder* encoder, const phasor_texts* first,
                                         const phasor_texts* second,
                                         const phasor_text_options* options,
                                         phasor_result** result);
/// What the checkpoint's head says of the tokens of texts: the S spans whose label is not "O".
/// Arrays: "offsets" int64 [B + 1], text i has the spans offsets[i] to offsets[i + 1] − 1; "spans"
/// int64 [S, 2], from where to before where in the text; "tokens" int64 [S, 2], likewise in its
/// tokens; "scores" float32 [S], probabilities. Strings: "labels", S of them.
PHASOR_API phasor_status phasor_label(phasor_encoder* encoder, const phasor_texts* texts,
                                      const phasor_text_options* options, phasor_result** result);
/// Documents by relevance to a query (one text): by the logit of a reranker, or, where the model
/// has no classification head, by the similarity of vectors made with its prompts "query" and
/// "document", "passage" or "corpus", or of its token vectors. Arrays: "order" int64 [B], the
/// documents' numbers, best first; of the documents in their own order "logits" and "scores"
/// float32 [B]: the head's logit and its probability; without a head both are the similarity.
PHASOR_API phasor_status phasor_rank(phasor_encoder* encoder, const phasor_texts* query,
                                     const phasor_texts* documents,
                                     const phasor_text_options* options, phasor_result** result);
/// Scores over the vocabulary for states `hidden` [n, C], before the softmax, into `logits` [n, V];
/// `logits_size` is n·V. For checkpoints with a masked-language-model head.
PHASOR_API phasor_status phasor_mlm_logits(phasor_encoder* encoder, const float* hidden, int64_t n,
                                           float* logits, int64_t logits_size);
/// The vectors that a run adds to the tokens of a text of this length; only the policies "clamp"
/// and "interpolate" allow more tokens than there are positions; NULL: "error". Arrays: "vectors"
/// float32 [num_tokens, width of the embedding].
PHASOR_API phasor_status phasor_position_vectors(const phasor_model* model, int64_t num_tokens,
                                                 const phasor_positions* positions,
                                                 const char* overflow, phasor_result** result);

// --- What layers do with positions ---

/// Called from the caller's thread, now and then, with the stage of a measurement ("masked
/// tokens"), how much of it is done, and how much there is. Returns 0 to go on; anything else ends
/// the call with PHASOR_CANCELLED. No exception may leave it.
typedef int32_t (*phasor_stage_progress)(void* user, const char* stage, int64_t done,
                                         int64_t total);

/// What phasor_observe() and phasor_compare() measure, and of which runs.
typedef struct phasor_observe_options {
  size_t size;  ///< sizeof(phasor_observe_options)
  /// Positions, overflow, cut residual connections and parse_special; the rest must be zero.
  /// NULL: as the model is run by itself.
  const phasor_run_options* run;
  /// Of phasor_observe(): a second run, "after" beside "before"; NULL: none. Of phasor_compare():
  /// the second encoder's run. Texts are read as `run` says.
  const phasor_run_options* second;
  /// [num_views] names; "all": all that the runs and texts allow; none: all but slow ones. The JSON
  /// holds no others.
  const char* const* views;
  int64_t num_views;
  const char* without;  ///< the edit that makes a run one without positions; NULL: "mean"
  uint64_t seed;        ///< of what is drawn for the first text; 0: 1
  int64_t top_k;        ///< likely tokens for each mask; 0: 5
  int64_t max_tokens;   ///< above 0: texts are cut to this many tokens, special ones included. 0:
                        ///< means are over what the models were trained on
  const phasor_texts* masked;  ///< of means: lines some of whose tokens are masked; NULL: none
  const char* name;            ///< the model's, in the JSON; NULL: ""
  const char* second_name;
  const char* label;  ///< the run's, in the JSON; NULL: "before", or of two encoders the name's end
  const char* second_label;  ///< NULL: "after", or likewise
  /// "random", "own", or with a number as in "random:5": beside each run the mean over three
  /// models with random weights, or over N; NULL: none.
  const char* baseline;
  int32_t means;  ///< of phasor_observe(): not 0: all texts as one
  /// Not 0: texts come with patterns, profiles and vectors, as the page draws them; and before
  /// means come the first 16 texts by themselves.
  int32_t figures;
  int32_t allowed_only;  ///< not 0: leaves out views that lack something, refuses none
  int32_t reserved;
  phasor_stage_progress progress;  ///< may be NULL
  void* user;                      ///< handed to `progress`
  phasor_stop* stop;               ///< may be NULL; ends the call before the next block or stage
} phasor_observe_options;

/// Every measure of what the layers of a model do with positions, as `infer observe --json` prints
/// it. Strings: "observed", one for each text, or one for the means of all: a run, or {"runs":
/// [run, …]}; docs/reading-in-python.md documents the keys. PHASOR_INVALID_ARGUMENT names a view
/// that there is not, or says what one lacks. Where `figures` is set, give few texts: each takes up
/// to a megabyte for each run.
PHASOR_API phasor_status phasor_observe(phasor_encoder* encoder, const phasor_texts* texts,
                                        const phasor_observe_options* options,
                                        phasor_result** result);
/// Two encoders side by side, or one in two runs: means over the texts, as `infer compare --json`
/// prints them. Strings: "observed", one.
PHASOR_API phasor_status phasor_compare(phasor_encoder* first, phasor_encoder* second,
                                        const phasor_texts* texts,
                                        const phasor_observe_options* options,
                                        phasor_result** result);
#ifdef __cplusplus
}
#endif

#endif  // PHASOR_PHASOR_C_H_
