// Text to token ids and back, with any tokenizer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace [[gnu::visibility("default")]] phasor {

/// How Model::load() and Tokenizer::load() read a folder.
struct LoadOptions {
  /// The language of the texts, for tokenizers whose texts carry one ("fr", "fra_Latn", "fr_XX",
  /// and for Marian the language to translate into, "fra"). Empty: what the folder's files say.
  std::string language = {};
  /// Reads the weights into memory instead of mapping their files; see Model::load().
  bool copy = false;
  /// Follows links in the folder wherever they lead, except through /proc. Otherwise a link that
  /// leads out of the folder is refused: whoever made the folder could have any file read.
  bool follow_links = false;
};

/// Where a text that is too long is cut: where the tokenizer's files say (truncation_side, usually
/// at its end), at its end, or at its beginning.
enum class TruncationSide : int32_t { kTokenizer, kRight, kLeft };

/// What Tokens::offsets count: bytes, or Unicode characters, as Python does. kNone: there are none.
enum class OffsetUnit : uint8_t { kNone, kBytes, kCharacters };

/// From `begin` to before `end`.
struct TextSpan {
  int64_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

/// How Tokenizer::encode() and Tokenizer::encode_pair() read a text.
struct TokenizeOptions {
  /// Special tokens written in the text ("[MASK]", "</s>") count as such instead of as plain text.
  /// Added tokens that are not special always count.
  bool parse_special = false;
  /// Makes no Tokens::pieces; they take ten times the memory of the ids, and some time.
  bool ids_only = false;
  /// If above 0, text tokens are dropped so that at most this many remain, special tokens included.
  /// Of a pair the longer text is cut, and both once they are equally long.
  int64_t max_tokens = 0;
  /// The first bytes of the (first) text that are the maker's own, such as a model's prompt:
  /// special tokens written in them always count.
  int64_t prompt_bytes = 0;
  TruncationSide truncation_side = TruncationSide::kTokenizer;
  /// Adds no special tokens around the text; pairs are then joined without a separator.
  bool no_special_tokens = false;
  OffsetUnit offset_unit = OffsetUnit::kNone;
};

/// The tokens of a text, or of a pair of texts.
struct Tokens {
  std::vector<int32_t> ids;
  /// One for each id, "▁" for a space as SentencePiece writes it. A piece that is not in the
  /// vocabulary appears as in the text, as "<unk>" if ids come from a vocab.json, or as "[UNK]" in
  /// WordPiece. Byte-level BPE writes a character for each byte, "Ġ" for a space.
  std::vector<std::string> pieces;
  int64_t invalid_bytes = 0;  // bytes that were not UTF-8 and became U+FFFD
  int64_t dropped = 0;        // text tokens cut off by max_tokens; of a pair both are sums
  /// One for each id, of a pair whose template has them; otherwise empty, which means 0.
  std::vector<int32_t> token_types = {};
  /// Where each token stands in the text that was given, if TokenizeOptions::offset_unit asks for
  /// it (of texts up to 4 GiB; InvalidArgument); of a pair in its own text. What is added round a
  /// text has {0, 0}. Of a SentencePiece model's file it is the model's own alignment: a token has
  /// the space before it, and of a character's bytes the last has its span. Otherwise it is that of
  /// Hugging Face's tokenizers, where a character's tokens share its span; but behind characters
  /// that a normalizer drops or reorders tokenizers is now and then a place off.
  std::vector<TextSpan> offsets = {};
  /// With them: whether a token was added round the text; and whether it goes on the word of the
  /// token before it, of WordPiece alone, otherwise empty.
  std::vector<bool> special = {}, continues_word = {};
};

/// Turns texts into token ids. Immutable and safe to share between threads.
class Tokenizer {
 public:
  /// Loads a folder's tokenizer files; the weights need not be there. Throws ModelError naming the
  /// files it found and the kinds of tokenizer it reads, and InvalidArgument listing the languages
  /// if options.language is not one of them.
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& folder,
                                               const LoadOptions& options = {});

  virtual ~Tokenizer() = default;
  /// An empty text gives only the special tokens. Throws InvalidArgument if there are none, if
  /// max_tokens is above 0 but below their number, and for a word above 2 GiB; and ModelError if
  /// the normalizer makes the text more than 16 times as long (from 87 KB on, four times and a
  /// megabyte), or the pieces, unless only ids are asked for, take more than 64 times its bytes and
  /// a megabyte.
  virtual Tokens encode(std::string_view text, const TokenizeOptions& options = {}) const = 0;
  /// Two texts as one sequence: [CLS] first [SEP] second [SEP] in BERT. With an empty second text,
  /// WordPiece tokenizers give encode(first), all others the pair's special tokens too. Throws as
  /// encode() does, and InvalidArgument if the tokenizer's files do not say what a pair becomes.
  virtual Tokens encode_pair(std::string_view first, std::string_view second,
                             const TokenizeOptions& options = {}) const;
  /// Ids run from 0 to vocab_size() − 1.
  virtual int64_t vocab_size() const = 0;
  /// Words give ids below this; ids from here to vocab_size() are special tokens, such as
  /// languages, and added ones.
  virtual int64_t text_vocab_size() const { return vocab_size(); }
  /// Throws InvalidArgument for an id out of range.
  virtual std::string piece(int32_t id) const = 0;
  virtual std::optional<int32_t> mask_id() const = 0;
  /// Of the token for what is not in the vocabulary, where there is one.
  virtual std::optional<int32_t> unknown_id() const { return std::nullopt; }
  /// A description for people: "XLM-R (SentencePiece, sentencepiece.bpe.model)".
  virtual std::string description() const = 0;
  /// Notes on its files, one sentence each: what was assumed, what is not read.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace phasor
