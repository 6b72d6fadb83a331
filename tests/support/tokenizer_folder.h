// Tokenizers of files that a test writes, SentencePiece models among them.
#pragma once

#include "tests/support/tiny_model.h"

namespace phasor {

using Ids = std::vector<int32_t>;
using Pieces = std::vector<std::string>;

/// A copy whose value at a JSON pointer is this.
inline json with(json root, const std::string& pointer, const json& value) {
  root[json::json_pointer(pointer)] = value;
  return root;
}

/// A value at a place in a test's files, and words of the refusal that it leads to.
struct Refusal {
  const char* pointer;
  json value;
  Pieces words;
};

/// Each text that has `literal` in place of one value of `root` that holds no others is read, or
/// refused by a message with the file's name, the literal and its line. How many were refused.
inline int64_t expect_literals_named(const json& root, const std::string& file,
                                     const std::string& literal,
                                     const std::function<void(const std::string& text)>& read) {
  int64_t refused = 0;
  const json leaves = root.flatten();
  for (const auto& [pointer, value] : leaves.items()) {
    json changed = root;
    changed[json::json_pointer(pointer)] = "@@";
    std::string text = changed.dump(1);
    text.replace(text.find("\"@@\""), 4, literal);
    const auto line = 1 + std::ranges::count(text.substr(0, text.find(literal)), '\n');
    SCOPED_TRACE(text);
    try {
      read(text);
    } catch (const ModelError& error) {
      const std::string_view what = error.what();
      EXPECT_NE(what.find(fmt::format("{} (line {})", literal, line)), what.npos) << what;
      EXPECT_NE(what.find(file), what.npos) << what;
      ++refused;
    }
  }
  return refused;
}

/// BERT's tokenizer.json of these pieces and their ids.
inline json bert_json(const json& vocab) {
  return {{"normalizer", {{"type", "BertNormalizer"}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor",
           {{"type", "BertProcessing"},
            {"cls", {"[CLS]", vocab.at("[CLS]")}},
            {"sep", {"[SEP]", vocab.at("[SEP]")}}}},
          {"model", {{"type", "WordPiece"}, {"vocab", vocab}, {"unk_token", "[UNK]"}}}};
}

/// The tokenizer of a folder with these files.
inline std::shared_ptr<const Tokenizer> tokenizer_of(const json& files) {
  return Tokenizer::load(TinyModel("", files).path());
}

/// There is no tokenizer in a folder with these files, and the message has `words`.
inline void expect_no_tokenizer(const json& files, const std::vector<std::string>& words) {
  EXPECT_REFUSED(tokenizer_of(files), words);
}

/// The pieces of a text that may name special tokens.
inline std::vector<std::string> parsed(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.parse_special = true}).pieces;
}

/// The pieces of a text, without the special tokens around it.
inline std::vector<std::string> pieces_of(const Tokenizer& tokenizer, std::string_view text,
                                          bool parse_special = false) {
  const auto pieces = tokenizer.encode(text, {.parse_special = parse_special}).pieces;
  return {pieces.begin() + 1, pieces.end() - 1};
}

// SentencePiece models written byte by byte, good ones and bad ones.

/// The types of sentencepiece_model.proto.
enum class PieceType : uint64_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct TestPiece {
  std::string text;
  PieceType type = PieceType::kNormal;
  float score = -1;
};

/// A field of a protocol buffer.
std::string varint_field(uint64_t number, uint64_t value);
std::string bytes_field(uint64_t number, std::string_view bytes);

/// A model of these pieces, after "<unk>" and "▁"; its type is unigram.
std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces);

/// The same with a table of normalization rules.
std::string sentencepiece_bytes(const std::vector<TestPiece>& pieces, std::string_view charsmap);

/// A table of normalization rules, whose parts can be changed before it is written.
struct TestCharsmap {
  std::vector<uint32_t> units;  // darts-clone's double array
  std::string table;            // the replacements

  std::string bytes() const;
};
TestCharsmap make_charsmap(const std::vector<std::pair<std::string, std::string>>& rules);

}  // namespace phasor
