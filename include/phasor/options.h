// How calls that read texts run them: one struct for embed(), classify(), label() and rank().
//
//     encoder.embed(texts, {.prompt = "query: ", .max_tokens = 128});
//
// A default means what the checkpoint's files say. Each field begins with the calls that use it;
// the others throw InvalidArgument, naming the field, if it is set. phasor/fields.h lists the
// fields by name and type, for programs that read them from text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "phasor/model.h"
#include "phasor/pooling.h"
#include "phasor/positions.h"
#include "phasor/progress.h"
#include "phasor/results.h"
#include "phasor/tokenizer.h"

namespace [[gnu::visibility("default")]] phasor {

/// What a text is in retrieval. Queries and documents get the model's prompts for them. Queries may
/// also run otherwise: see SparseConfig::query_weights and TokenVectorConfig::query.
enum class TextRole : int32_t {
  kAny,  // the default prompt; for sparse and token vectors a document
  kQuery,
  kDocument,
};

/// How tokens with labels become spans, as in the token-classification pipeline of Transformers.
/// "B-X" begins a span of the kind "X"; "I-X", or a label without such a prefix, continues one. A
/// word of WordPiece is known by its "##"; with other tokenizers it ends at a space. Where labels
/// begin with "E-" or "S-" (BIOES), tokens get the most probable sequence of labels in which B, I
/// and E, or S alone, make up every span, and only kNone differs.
enum class Aggregation : int32_t {
  kSimple,   // tokens in a row of the same kind
  kNone,     // a span is a token
  kFirst,    // a word has the label of its first token
  kAverage,  // a word has the label with the largest mean probability
  kMax,      // a word has the label of its most probable token
};

/// Options of one call. Fields of the type int64_t are 0 or more.
struct TextOptions {
  /// embed. Empty: kDense. Several kinds come from one run of each text (BGE-M3); InvalidArgument
  /// where one of them needs another run: with a marker, an expansion or another length, or of
  /// queries that are looked up.
  std::vector<VectorKind> kinds = {};

  /// embed.
  TextRole role = TextRole::kAny;

  /// embed, dense: in place of the modes of Model::sentence(), whose Dense layers and the like are
  /// then left out.
  std::vector<PoolingMode> pooling = {};

  /// embed, dense: whether vectors are divided by their lengths.
  std::optional<bool> normalize = {};

  /// embed, dense: above 0, only so many numbers of each vector, from its first; of length 1 again
  /// where the whole vector is.
  int64_t dimensions = 0;

  /// embed, classify, rank with a classification head: put before every text, and before the first
  /// of a pair. Special tokens in it always count. Without it: TextConfig::prompt, or that of the
  /// role.
  std::optional<std::string> prompt = {};

  /// embed, classify: one of TextConfig::prompts, by its name. Not together with `prompt`.
  std::string prompt_name = {};

  /// All: the length of a text in tokens, special tokens included; of label() that of a window. 0:
  /// TextConfig::max_tokens, or else ModelConfig::max_positions, or else 2048. Never more than the
  /// positions reach. Where the model's files give queries a fixed length, kTokens has that.
  int64_t max_tokens = 0;

  /// embed, classify, rank: what becomes of a longer text. kTruncate, the default, cuts it, of a
  /// pair the longer text, and both once they are equally long. kError refuses it. kWindow runs it
  /// in windows of that length. kClamp and kInterpolate run all of it, up to max_tokens where that
  /// is given, and only change positions past the end of the position table. label() runs windows.
  std::optional<Overflow> overflow = {};

  /// embed.
  Positions positions = {};

  /// embed, dense: the caller's memory for the vectors, [B, W] with W = Encoder::embedding_width().
  /// The result then has none.
  std::span<float> output = {};

  /// All: counts texts; called on the caller's thread.
  Progress progress = {};

  /// All: ends the call with ErrorCode::kCancelled before the next batch, or block.
  std::stop_token stop = {};

  /// All: special tokens written in a text ("[SEP]") count as such.
  bool parse_special = false;

  /// embed, classify, rank.
  TruncationSide truncation_side = TruncationSide::kTokenizer;

  /// embed, tokens and states: what TokenRows::spans count; the default: there are none. label:
  /// what Labels::spans count; the default: bytes.
  std::optional<OffsetUnit> offset_unit = {};

  /// label.
  Aggregation aggregation = Aggregation::kSimple;

  /// embed: a batch ends with the text that brings it to so many tokens. Fewer take less memory
  /// and, below about 2000, more time. 0: 8192, or fewer where states are very wide. Changes no
  /// vector.
  int64_t batch_tokens = 0;
};

/// The prompt that a call with these options puts before a text: its own, or the model's of the
/// name, or of the role. Throws InvalidArgument for a name that there is not.
std::string prompt_of(const TextOptions& options, const TextConfig& text);

}  // namespace phasor
