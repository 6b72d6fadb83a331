// Texts observed: every measure of the lens for a text, or for many as one, in one run of a model
// or in two.
//
//     Encoder encoder(Model::load("sinusoidal"));
//     const lens::Run runs[] = {
//         {.encoder = &encoder, .label = "before"},
//         {.encoder = &encoder, .label = "after", .options = {.positions = Positions::none()}}};
//     const lens::Text texts[] = {{.text = "Tom bit a dog."}};
//     const auto take = [](std::vector<lens::Observed> text) {
//       const lens::Table& moved = text[1].tables.at("moved");
//       std::printf("%.3f\n", moved.rows.back().cells[0]);
//       return true;
//     };
//     lens::observe(runs, texts, {.views = {"effect", "moved"}}, take);
//
// A view is a table that was measured; views() says what each holds. Layers count from 0, the
// embedding, to L; heads count from 1. Numbers depend on the number of threads no more than the
// encoder's states do, and not at all on how many texts there are beside one.
//
// Everything here runs on the caller's thread and on the encoders' own: what is called back is
// called from the thread that called. Several threads may call at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "phasor/encoder.h"
#include "phasor/lens/attention.h"
#include "phasor/progress.h"
#include "phasor/tokenizer.h"

namespace [[gnu::visibility("default")]] phasor {

/// Where a mean over texts lies: the middle 95 % of means over texts that were drawn anew. With
/// fewer than about 20 texts it is too narrow.
struct Interval {
  double low = 0, high = 0;
};

namespace lens {

/// A model, and how it is run.
struct Run {
  const Encoder* encoder = nullptr;  // borrowed; two runs may share it
  /// "before", "learned". Empty: it is the only one, or the call names it: "trained" beside
  /// untrained models; of two runs the end of the model's name, and where these are equal the
  /// names.
  std::string label = {};
  std::string name = {};  // of the model, for people
  /// Positions, overflow and cut residual connections. InvalidArgument where another field is set.
  RunOptions options = {};
  std::vector<std::string> edits = {};  // of options.positions, as the user wrote them

  const Model& model() const { return encoder->model(); }
};

/// A text, which each run tokenizes with its own model; or its ids, which are taken as they are.
struct Text {
  std::string text = {};
  std::optional<std::vector<int32_t>> token_ids = {};  // then there is no text
};

/// What the rows of a view are.
enum class Rows { kLayers, kHeads, kNamed };
/// How a view is drawn: lines and stacked bars over the rows; curves over the columns, whose keys
/// are numbers, of the rows of one head; a dot plot with a line for each row.
enum class Chart { kNone, kLines, kStacked, kCurves, kDots };
/// What a view cannot do without: a text by itself, two runs, several texts seen as one, lines
/// whose tokens are masked, or two runs of such lines.
enum class Needs { kNothing, kOneText, kTwoRuns, kManyTexts, kFile, kTwoRunsOfFile };

/// A row of a table. Layers and heads have numbers, all other rows a label.
struct Row {
  int64_t layer = -1;              // 0 … L; −1: of no layer
  int64_t head = 0;                // from 1; 0: of no head
  std::string label = {};          // of a row that is neither
  std::vector<double> cells = {};  // one for each column; NaN: there is no number
  /// Of each cell, or empty; NaN: it has none. 95 % over texts, or the least and the most over
  /// untrained models.
  std::vector<Interval> intervals = {};

  bool same_place(const Row& other) const {
    return layer == other.layer && head == other.head && label == other.label;
  }
};

/// What was measured of a view.
struct Table {
  std::vector<std::string> columns = {};  // keys
  std::vector<Row> rows = {};
  std::string note = {};  // how the numbers came about, as a sentence

  /// The row at the same place, or null.
  const Row* find(const Row& place) const;
  /// The index of a column, or −1.
  int64_t column(std::string_view key) const;
};

/// A likely token for a mask.
struct Filler {
  int64_t token = 0;  // where the mask is, from 0
  int32_t id = 0;
  std::string piece = {};  // empty where the tokenizer does not know it
  double probability = 0;
};

/// What is known of a text in one run; or of many texts, as means, and then there are no tokens and
/// arrays. A value that owns all it holds. Letters: T tokens, L layers, C d_model, E embedding
/// width, H heads.
struct Observed {
  // The run.
  std::string label = {}, model = {};           // Run::label and name
  std::string positions = {};                   // "sinusoidal (paper)"
  std::string precision = {};                   // "f32"
  std::vector<std::string> edits = {};          // Run::edits
  std::vector<std::string> cut_residuals = {};  // "1.attn": the attention's of the first layer
  int64_t untrained = 0;  // models of which the numbers are means; 0: they are of the run's own
  int64_t num_layers = 0, num_heads = 0, d_model = 0;

  // The text, as it was run; or the texts.
  bool means = false;
  std::string file = {};  // where the texts come from, for whoever shows this; not set here
  int64_t num_texts = 1, num_tokens = 0;
  int64_t num_cut = 0;                    // texts that were cut
  std::optional<std::string> text = {};   // empty for ids
  Tokens tokens = {};                     // of means only the sums of invalid_bytes and dropped
  bool mask_as_text = false;              // a mask was read as plain text: the model cannot fill it
  bool other_tokens = false;              // of a second run's means: its tokens are not the first's
  std::vector<float> position_ids = {};   // [T], fractional where a table was interpolated
  std::vector<int64_t> text_tokens = {};  // which of the T are no special tokens

  // What was measured, by the names of views.
  std::map<std::string, Table, std::less<>> tables = {};
  std::map<std::string, std::string, std::less<>> missing = {};  // why there is no table
  std::vector<Filler> fillers = {};  // mask by mask, the likeliest first

  // Arrays.
  std::vector<float> position_vectors = {};          // [T, E]; empty: none, or windows
  std::vector<std::vector<HeadProfile>> heads = {};  // [L] of [H]; empty: windows
  std::vector<std::vector<float>> patterns = {};     // [L] of [H, T, T]
  // Of "effect", with patterns: [L + 1, T], degrees by which positions turn a state.
  std::vector<float> turns = {};
  /// Of "effect": [2, L + 1], of the second of two texts: mean degrees from the same tokens' states
  /// in the first, with positions and without. Empty where that one is not these tokens in another
  /// order, and of two runs.
  std::vector<float> apart = {};
  std::vector<std::vector<double>> position_means = {};  // [L + 1] of the split, [places, C]

  /// A view's table, or null.
  const Table* table(std::string_view view) const;
};

/// Untrained models beside each run: up to 10, of the seeds 1, 2, ….
struct Baseline {
  int64_t models = 0;
  Spread spread = Spread::kInitial;
};

/// By name: "random", "random:N", "own" or "own:N"; without N three. Throws InvalidArgument.
Baseline baseline_of(std::string_view name);

/// What is measured, and how.
struct ObserveOptions {
  /// Names of views; "all" is all that these runs and texts allow, and no name all but slow ones.
  /// "norm" is always there.
  std::vector<std::string> views = {};
  /// The edit that makes a run one without positions: "mean", the table's mean row for every token,
  /// or "zero".
  std::string without = "mean";
  uint64_t seed = 1;       // of what is drawn for the first text; the next one has the next number
  int64_t top_k = 5;       // fillers of each mask
  Baseline baseline = {};  // beside each run, the mean of so many untrained models
  /// How texts become tokens; ids are cut to max_tokens, too. Masks that the model can fill count
  /// as such. Without max_tokens, Overflow::kTruncate cuts texts where the positions end. Two runs
  /// of one model get the same tokens, those of the first.
  TokenizeOptions tokenize = {};
  /// The first so many texts keep Observed::patterns, 4·H·T² bytes a layer, and position_means;
  /// each is run by itself. The view "pattern" keeps those of every text.
  int64_t arrays_of = 0;
  /// Of observe_means(): lines some of whose tokens are masked. Borrowed.
  std::span<const std::string> masked = {};
  StageProgress progress = {};  // an exception from it ends the call
  std::stop_token stop = {};  // ends it before the next block or stage, with ErrorCode::kCancelled
  bool allowed_only = false;  // leaves out named views that lack something, and refuses none
};

/// Receives one text in all its runs: those given, in their order, then the untrained ones. Returns
/// whether more are wanted. An exception from it ends the call.
using TakeText = std::function<bool(std::vector<Observed>&& runs)>;

/// Observes each text by itself, in order, and hands it over. One run or two. Texts run in batches
/// of 32, whose states are in memory at once.
///
/// Throws InvalidArgument for no run or more than two, for a view that there is not, and for one
/// that lacks what it needs; where observing a text would take more than 400 MB and eight bytes for
/// each of the model's parameters; and what Encoder::encode_ids() throws.
void observe(std::span<const Run> runs, std::span<const Text> texts, const ObserveOptions& options,
             const TakeText& take);

/// Observes many texts as one: the means of each run, in which every token counts as much as any
/// other, with intervals over texts; and what only many texts can tell. The untrained runs follow.
/// `take`, where given, also gets the first ObserveOptions::arrays_of texts in the given runs.
/// Throws what observe() throws.
std::vector<Observed> observe_means(std::span<const Run> runs, std::span<const Text> texts,
                                    const ObserveOptions& options, const TakeText& take = {});

/// A column of a view's table.
struct Column {
  const char* key;           // its name everywhere
  const char* meaning = "";  // in a few words; empty: the view's hint says it
  int decimals = 3;
  bool printed = true;  // for people; whoever computes has them all
};

/// Something that is measured of a run and shown.
struct View {
  const char* name;
  const char* title;  // a noun phrase
  const char* hint;   // what is measured, and what small and large numbers mean
  const char* unit = "";
  Needs needs = Needs::kNothing;
  Rows rows = Rows::kLayers;
  const char* row_name = "layer";  // what rows with a label are
  Chart chart = Chart::kNone;
  int series = 1;  // so many columns, the first, are drawn: they share the unit
  int lead = 0;    // the column that stands for the view where there is room for one
  double (*weight)(const Row&) = nullptr;  // of kHeads: the head with the largest row comes first
  bool brief = true;                       // for people without being asked for
  bool slow = false;                       // nowhere without being asked for
  std::span<const Column> columns = {};
  /// The table in a sentence, or an empty one; null: none can say it.
  std::string (*sentence)(const Table&) = nullptr;
};

/// All views, in the order in which they are shown. Any thread.
std::span<const View> views();

/// One line of JSON without its end: the only run, or {"runs": [first, second, …]}.
/// docs/reading-in-python.md documents the keys; a NaN is null. `figures` adds to each run of a
/// text what it holds of "patterns" ({"cells", "values": base64 of uint8 [L, H, cells, cells]}: 255
/// times the root of a weight, of blocks where all heads would have more than 1.5 million),
/// "profiles" ({"offsets", "values": base64 of float32 [L, H, 2·offsets + 1]}), "vectors"
/// ({"columns", "values": base64 of float32 [T, columns]}), "turns" ({"tokens", "values": base64 of
/// float32 [L + 1, tokens]}) and "apart" ({"layers", "values": base64 of float32 [2, layers]}).
/// Any thread.
std::string to_json(std::span<const Observed> runs, bool figures = false);
/// views() as one line of JSON, without columns that are not for people. Any thread.
std::string views_json();

}  // namespace lens
}  // namespace phasor
