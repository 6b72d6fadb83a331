// What calls that read texts make: plain structs of arrays, which each lists by name.
//
// B texts, or pairs, have one row each, or several: then those of text i are the rows offsets[i] to
// offsets[i + 1] − 1 of N. result[i] is what it holds of text i, borrowed from it; it throws
// std::out_of_range where there is no such text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "phasor/sparse.h"
#include "phasor/token_vectors.h"
#include "phasor/tokenizer.h"

namespace [[gnu::visibility("default")]] phasor {

/// An array of a result, borrowed from it.
struct ResultArray {
  /// Whose the rows are.
  enum class Rows {
    kTexts,    // one of each text
    kItems,    // some of each text; `offsets` says which
    kOffsets,  // those offsets: [B + 1]
    kCall,     // of the whole call, such as the names of labels
  };
  /// Row-major.
  using Values = std::variant<std::span<const float>, std::span<const int32_t>,
                              std::span<const int64_t>, std::span<const std::string>>;

  std::string_view name;  // "token_vectors"; no other array of the result has it
  Values values;
  int64_t columns = 0;  // 0: the array has one dimension
  Rows rows = Rows::kTexts;
  std::span<const int64_t> offsets = {};  // of kItems
};

/// How a text was run.
struct TextReport {
  int64_t num_tokens = 0;      // run; 0: the text has none, and its vector is zeros
  int64_t dropped_tokens = 0;  // cut off
  int64_t invalid_bytes = 0;   // not UTF-8, replaced by U+FFFD
};

/// The same of B texts. Arrays: "num_tokens", "dropped_tokens", "invalid_bytes".
struct TextReports {
  std::vector<int64_t> num_tokens, dropped_tokens, invalid_bytes;  // [B]

  int64_t size() const { return std::ssize(num_tokens); }
  TextReport operator[](int64_t i) const;
};

/// Vectors [V] without their zeros, as the rows of a CSR matrix. Arrays: "sparse_offsets",
/// "sparse_indices", "sparse_values".
struct SparseRows {
  int64_t width = 0;                   // V
  std::vector<int64_t> offsets = {0};  // [B + 1]
  std::vector<int32_t> indices;        // token ids, in rising order within a text [N]
  std::vector<float> values;           // [N]

  int64_t size() const { return std::ssize(offsets) - 1; }
  SparseVector operator[](int64_t i) const&;
  SparseVector operator[](int64_t i) && = delete;
};

/// A vector of each token of B texts. Arrays: "token_offsets", "token_vectors", "token_ids",
/// "token_spans" [N, 2]; of states they begin with "state".
struct TokenRows {
  int64_t width = 0;                   // E
  std::vector<int64_t> offsets = {0};  // [B + 1]
  std::vector<float> values;           // [N, E]
  std::vector<int32_t> ids;            // [N]
  /// Where each token stands in its text, see Tokens::offsets; {0, 0} of a prompt, a marker and an
  /// expansion. Empty unless TextOptions::offset_unit asks for it. [N]
  std::vector<TextSpan> spans;

  int64_t size() const { return std::ssize(offsets) - 1; }
  /// [n, E]
  std::span<const float> operator[](int64_t i) const&;
  std::span<const float> operator[](int64_t i) && = delete;
};

/// maxsim() of a query's token vectors [n, E] with those of each document, on so many threads
/// (0: all cores); divided by n where `mean` is set, as TokenVectorConfig::mean says. Throws as
/// maxsim() does.
std::vector<float> maxsim(std::span<const float> query, const TokenRows& documents,
                          bool mean = false, int threads = 1);

/// What embed() makes of a text.
enum class VectorKind : int32_t {
  kDense,   // one vector, as SentenceConfig says
  kSparse,  // a weight for each piece of the vocabulary that has one, as SparseConfig says
  kTokens,  // a vector of each token, as TokenVectorConfig says; compare texts by maxsim()
  kStates,  // each token's last hidden state
};

/// Of embed(): the kinds that were asked for; the others are empty.
struct Vectors {
  int64_t width = 0;         // W
  std::vector<float> dense;  // [B, W]; empty where TextOptions::output has them. Array: "dense"
  SparseRows sparse;
  TokenRows tokens, states;
  TextReports reports;

  int64_t size() const { return reports.size(); }
  /// The dense vector, [W].
  std::span<const float> operator[](int64_t i) const&;
  std::span<const float> operator[](int64_t i) && = delete;
  std::vector<ResultArray> arrays() const;
};

/// Of classify(): what a classification head says of each text or pair, for each of the L labels of
/// ClassifierHead::labels.
struct Classification {
  /// A row of both, [L].
  struct Row {
    std::span<const float> logits, probabilities;
  };

  std::vector<std::string> labels;   // [L]
  std::vector<float> logits;         // [B, L]
  std::vector<float> probabilities;  // as ClassifierHead::output says, [B, L]
  TextReports reports;

  int64_t size() const { return reports.size(); }
  Row operator[](int64_t i) const&;
  Row operator[](int64_t i) && = delete;
  std::vector<ResultArray> arrays() const;
};

/// Part of a text, and what it is.
struct LabelledSpan {
  std::string_view label;
  float score = 0;
  TextSpan span, tokens;
};

/// Of label(): the spans of texts whose label is not "O", in order.
struct Labels {
  std::vector<int64_t> offsets = {0};  // [B + 1]
  std::vector<std::string> labels;     // their kinds; of Aggregation::kNone the labels [N]
  std::vector<float> scores;           // the mean probability of its tokens, or of its words [N]
  std::vector<TextSpan> spans;         // in TextOptions::offset_unit [N]
  std::vector<TextSpan> tokens;        // its first token's number, and that behind its last's [N]
  TextReports reports;

  int64_t size() const { return reports.size(); }
  std::vector<LabelledSpan> operator[](int64_t i) const&;
  std::vector<LabelledSpan> operator[](int64_t i) && = delete;
  std::vector<ResultArray> arrays() const;
};

/// Of rank(): documents by relevance to a query.
struct Ranking {
  std::vector<int64_t> order;  // the documents' numbers, best first [B]
  /// Of the documents in their own order: by which they are ranked, and the head's probability.
  /// Without a head both are the similarity. [B]
  std::vector<float> logits, scores;
  TextReports reports;

  int64_t size() const { return reports.size(); }
  std::vector<ResultArray> arrays() const;
};

}  // namespace phasor
