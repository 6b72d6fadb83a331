// What is known about one text, or about many by means, in one run of a model.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lens/study/fill_in.h"
#include "lens/study/masked.h"
#include "lens/study/text.h"
#include "phasor/lens.h"

namespace phasor::internal {

/// A cell that is NaN has no number.
struct Row {
  int64_t layer = -1;         // 0 … L; −1: of no layer
  int64_t head = 0;           // from 1; 0: of no head
  std::string label = {};     // of a row that is neither
  std::vector<double> cells;  // one for each column
  /// The ends of each cell's interval: 95 % over texts, or the least and the most over seeds. NaN:
  /// it has none; empty: none has.
  std::vector<double> low = {}, high = {};

  void add(double cell, Interval interval = {std::nan(""), std::nan("")});

  bool same_place(const Row& other) const {
    return layer == other.layer && head == other.head && label == other.label;
  }
};

struct Table {
  std::vector<std::string> columns;  // keys
  std::vector<Row> rows;
  std::string note = {};  // how the numbers came about, as a sentence

  /// The row at the same place, or null.
  const Row* find(const Row& place) const;
  /// The index of a column, or −1.
  int64_t column(std::string_view key) const;
};

/// Every cell, and the ends of its interval where it has one: "loss", "loss_low", "loss_high".
template <typename Take>
void for_each_number(const Table& table, const Row& row, Take take) {
  for (size_t c = 0; c < row.cells.size(); ++c) {
    take(table.columns[c], row.cells[c]);
    if (row.low.empty() || std::isnan(row.low[c])) continue;
    take(table.columns[c] + "_low", row.low[c]);
    take(table.columns[c] + "_high", row.high[c]);
  }
}

/// Letters: T tokens, L layers, C d_model, E embedding width, H heads.
struct Observed {
  // The run.
  std::string label = {};                       // "before", "learned"; empty: it is the only one
  std::string model = {};                       // as the user named it
  std::string positions = {};                   // "sinusoidal (paper)"
  std::string precision = {};                   // "f32"
  std::vector<std::string> edits = {};          // of the positions, as the user wrote them
  std::vector<std::string> cut_residuals = {};  // "1.attn": the attention's of the first layer
  int64_t untrained = 0;  // models of which the numbers are means: see Baseline; 0: a trained one
  int64_t num_layers = 0, num_heads = 0, d_model = 0;

  // The text; or the texts, whose numbers are means: then `input` and the arrays are empty.
  struct Texts {
    std::string file;  // empty: they stood on the command line
    int64_t texts = 0, tokens = 0;
  };
  std::optional<Texts> many = {};
  Input input = {};                       // as it was run
  std::vector<float> position_ids = {};   // [T], fractional where a table was interpolated
  std::vector<int64_t> text_tokens = {};  // which of the T are no special tokens

  // What was measured, by the names of views.
  std::map<std::string, Table, std::less<>> tables = {};
  std::map<std::string, std::string, std::less<>> missing = {};  // why there is no table
  std::vector<MaskReport> masks = {};

  // Arrays, where asked for.
  std::vector<float> position_vectors = {};              // [T, E]; empty: none, or windows
  std::vector<std::vector<float>> states = {};           // [L + 1] of [T, C]
  std::vector<std::vector<float>> patterns = {};         // [L] of [H, T, T]
  std::vector<std::vector<HeadProfile>> heads = {};      // [L] of [H]; empty: windows
  std::vector<std::vector<double>> position_means = {};  // [L + 1] of the split, [places, C]
  MaskedScore masked = {};                               // of each masked token

  int64_t num_tokens() const { return many ? many->tokens : std::ssize(input.token_ids); }
  /// Adds a row to a view's table.
  void add(std::string_view view, Row row);
  /// Its table, or null.
  const Table* table(std::string_view view) const;
};

/// The farthest offset j − i of which the report and tables by offset show anything.
constexpr int64_t kFarthestOffset = 32;

/// What an attention, an MLP or a head writes.
struct BlockPart {
  std::string label;      // "attention 1", "MLP 1", "head 1.1"
  ResidualSource source;  // kAttention or kMlp
  int64_t layer;          // from 0
  int64_t head = -1;      // from 0; −1: all of the attention, or an MLP
};
/// Attentions, MLPs and heads, each in the order of their layers.
std::vector<BlockPart> block_parts(int64_t num_layers, int64_t num_heads);

/// A head, both numbers counted from 1.
struct HeadNumber {
  int64_t layer = 0, head = 0;
};
/// "2.1 (L1H0)": as phasor counts, and as TransformerLens does.
std::string name_of(HeadNumber head);
/// The head with the largest mean weight on the token before or after; empty where none is known.
std::optional<HeadNumber> most_positional_head(const Observed& text);

}  // namespace phasor::internal
