#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <utility>

#include "lens/study/measures.h"

namespace phasor::internal {

using OfTexts = void(Batch&);
OfTexts measure_split, measure_sources, measure_effect, measure_order, measure_scores,
    measure_relative;
using OfMany = void(Many&);
OfMany split_many, probe_many, score_masked, score_longer, score_causes, score_reading,
    score_offset_patterns;

namespace {

using lens::Chart;
using lens::Rows;

constexpr Column kMoved[] = {{"distance", "mean 1 − cosine of a state in both runs"},
                             {"degrees", "mean angle between a state in both runs", 1},
                             {"relative", "length of the difference, relative to the state"},
                             {"largest", "largest difference of a number"},
                             {"least_cosine", "least cosine of a state in both runs", 3, false}};
constexpr Column kNorm[] = {{"norm", "mean length of the states", 2}};
constexpr Column kSplit[] = {
    {"position", "of the place alone"},
    {"token", "of the token alone"},
    {"both", "of what the place does to one token and not to others"},
    {"context", "of the order of the other tokens"},
    {"edge", "share of position that is at the edges"},
    {"stable_rank", "how many directions the positions' means fill", 2, false},
    {"smoothness", "1: the means change slowly from place to place", 2, false}};
constexpr Column kDirect[] = {
    {"position", "length of the position vector's part, relative to the state"},
    {"token", "length of the token vector's part, relative to the state"},
    {"position_share", "share of the state that is the position vector's part"},
    {"token_share", "share of the state that is the token vector's part"}};
constexpr Column kSources[] = {
    {"direct", "share of the added vector itself"},
    {"attention", "share that attention has written"},
    {"mlp", "share that MLPs have written"},
    {"other", "share of tokens and biases"},
    {"direct_length", "length of the added vector's component, relative to the states'"},
    {"attention_length", "length of attention's component, relative to the states'", 3, false},
    {"mlp_length", "length of the MLPs' component, relative to the states'", 3, false},
    {"other_length", "length of the other sources' component, relative to the states'", 3, false},
    {"direct_interior", "what the interior has of direct"},
    {"attention_interior", "what the interior has of attention"},
    {"mlp_interior", "what the interior has of MLPs"},
    {"other_interior", "what the interior has of the rest", 3, false}};
constexpr Column kParts[] = {{"own_layer", "in the states after its own layer"},
                             {"last_layer", "in the last states"}};
constexpr Column kEffect[] = {{"effect", "1 − cosine to the same without positions"},
                              {"degrees", "mean angle to the same without positions", 1}};
constexpr Column kOrder[] = {{"swap", "two tokens swapped"},
                             {"pairs", "pairs of tokens shuffled"},
                             {"reverse", "all tokens reversed"},
                             {"shuffle", "all tokens shuffled"}};
constexpr Column kAttention[] = {
    {"distance", "mean distance in tokens between a token and what it reads", 2},
    {"entropy", "mean entropy of a row, as a share of ln T", 2, false}};
constexpr Column kOffsets[] = {{"-3", "", 2}, {"-2", "", 2}, {"-1", "", 2}, {"0", "", 2},
                               {"1", "", 2},  {"2", "", 2},  {"3", "", 2}};
constexpr Column kRelative[] = {{"-16", "", 2}, {"-4", "", 2}, {"-1", "", 2}, {"0", "", 2},
                                {"1", "", 2},   {"4", "", 2},  {"16", "", 2}};
constexpr Column kHeads[] = {
    {"previous", "mean weight of the token before, where there is one", 2},
    {"next", "mean weight of the token after, where there is one", 2},
    {"self", "mean weight of the token itself", 2},
    {"first", "mean weight of the first token", 2},
    {"special", "mean weight of all special tokens", 2},
    {"rows", "share of the rows that read the better neighbour most", 2},
    {"distance", "mean distance in tokens between a token and what it reads", 2},
    {"entropy", "mean entropy of a row, as a share of ln T", 2},
    {"text_previous", "previous, when special tokens are left out", 2, false},
    {"text_next", "next, when special tokens are left out", 2, false}};
constexpr Column kScores[] = {{"tt", "the query's token with the key's token", 2},
                              {"tp", "the query's token with the key's position", 2},
                              {"pt", "the query's position with the key's token", 2},
                              {"pp", "the query's position with the key's position", 2},
                              {"bias", "what positions do within attention", 2},
                              {"rest", "token types and the maps' biases", 2},
                              {"positions", "tp, pt, pp and bias together", 2}};
constexpr Column kCorpus[] = {
    {"position", "of the place alone"},
    {"text", "of the text alone", 2},
    {"rest", "of place and text only together", 2},
    {"stable_rank", "how many directions the positions' means fill", 2, false},
    {"smoothness", "1: the means change slowly from place to place", 2, false}};
constexpr Column kProbe[] = {
    {"r2", "R² of the position, on unseen texts"},
    {"error", "mean error in tokens", 2},
    {"interior_r2", "R² of words in the interior"},
    {"token_r2", "R² from the token's embedding alone"},
    {"control_r2", "R² of the control task"},
    {"shuffled", "R² after training on permuted positions"},
    {"mean_r2", "R² of predicting the mean position always", 3, false},
    {"mean_error", "mean error of predicting the mean position always", 2, false},
    {"train_r2", "R² on the texts that it was trained on", 3, false}};
constexpr Column kLens[] = {{"loss", "mean loss in nats"},
                            {"accuracy", "share of right predictions"}};
constexpr Column kMasked[] = {
    kLens[0], kLens[1], {"masks", "masked tokens", 0}, {"tokens", "all tokens", 0, false}};
constexpr Column kCauses[] = {{"removed", "rise of the loss without the part"},
                              {"random", "the same with random vectors of its norm subtracted"},
                              {"shuffled", "the same with its vectors of other places subtracted"},
                              {"difference", "removed less shuffled"}};
constexpr Column kReading[] = {
    {"left", "what is lost where layers 1 to l alone have positions"},
    {"random", "what is lost without random vectors of their norm"},
    {"left_less_random", "left less random"},
    {"shuffled", "what is lost without other words' vectors"},
    {"later", "what is won where the layers behind l alone have them"},
    {"sufficient", "what attention l's output wins in the run without"},
    {"needed", "what is lost with attention l's output of the run without"},
    {"present", "the vectors' squares by the stream's, where attention l has been added"}};
constexpr Column kOffsetPatterns[] = {
    {"offset_patterns", "won by the mean patterns of layers 1 to l, offset by offset"},
    {"mirrored", "the same with offsets reversed"},
    {"patterns", "the same with the patterns of the run with positions"}};
constexpr Column kPatched[] = {
    {"denoising", "fall of the second run's loss with the first run's part"},
    {"noising", "rise of the first run's loss with the second run's part"},
    {"sufficient", "denoising by all"},
    {"needed", "noising by all"}};
constexpr Column kLonger[] = {kLens[0],
                              kLens[1],
                              {"factor", "length of the texts by the trained length", 1},
                              {"masks", "masked tokens", 0, false},
                              {"tokens", "all tokens", 0, false}};

double at(const Table& table, size_t row, const char* column) {
  return table.rows.at(row).cells.at(table.column(column));
}

double neighbour_weight(const Row& row) { return std::max(row.cells[0], row.cells[1]); }

/// From the least number of a curve to the largest; of how it deviates, 0.
double range(const Row& row) {
  if (row.label.ends_with(" sd")) return 0;
  double least = 0, most = 0;
  for (const double cell : row.cells) {  // NaN is neither
    least = std::min(least, cell);
    most = std::max(most, cell);
  }
  return most - least;
}

std::string layer_name(const Row& row) {
  return row.layer == 0 ? "the embedding" : fmt::format("layer {}", row.layer);
}

/// The row with the largest number in a column.
const Row& largest(const Table& table, const char* column) {
  const int64_t c = table.column(column);
  return *std::ranges::max_element(table.rows, {}, [&](const Row& row) { return row.cells[c]; });
}

std::string say_effect(const Table& table) {
  const Row& most = largest(table, "effect");
  if (most.cells[0] < 1e-6) return "Positions change no hidden state.";
  const Row& last = table.rows.back();
  return fmt::format(
      "Positions turn the tokens' states most in {}, by {} (1 − cosine {:.2f}){}.",
      layer_name(most), degrees_text(most.cells[1]), most.cells[0],
      &most == &last ? ""
                     : fmt::format(", and by {} in the last layer", degrees_text(last.cells[1])));
}

std::string say_split(const Table& table) {
  const size_t last = table.rows.size() - 1;
  const auto percent = [&](size_t row, const char* column) {
    return fmt::format("{:.0f} %", std::max(100 * at(table, row, column), 0.0));
  };
  return fmt::format(
      "Position alone explains {} of the variance of the embeddings and {} of that of the last "
      "states{}; the token alone {} and {}, its context {} of the last.",
      percent(0, "position"), percent(last, "position"),
      at(table, last, "edge") > 0.5
          ? fmt::format(" ({} of it at the edges: longer texts have less)", percent(last, "edge"))
          : "",
      percent(0, "token"), percent(last, "token"), percent(last, "context"));
}

std::string say_sources(const Table& table) {
  const size_t last = table.rows.size() - 1;
  if (std::isnan(at(table, last, "direct"))) return "";
  return fmt::format(
      "Of the position component of the last states, {:.0f} % is the added vector itself, {:.0f} % "
      "written by attention and {:.0f} % by MLPs.",
      100 * at(table, last, "direct"), 100 * at(table, last, "attention"),
      100 * at(table, last, "mlp"));
}

std::string say_heads(const Table& table) {
  const Row& row = *std::ranges::max_element(table.rows, {}, neighbour_weight);
  const bool previous = row.cells[0] >= row.cells[1];
  return fmt::format(
      "The most positional head, {}.{}, gives {:.0f} % of its attention to the {} token.",
      row.layer, row.head, 100 * row.cells[previous ? 0 : 1], previous ? "previous" : "next");
}

std::string say_probe(const Table& table) {
  const Row& best = largest(table, "r2");
  return fmt::format(
      "A linear map reads positions best off {}: R² {:.2f} on unseen texts (1: exactly); off the "
      "tokens' own embeddings {:.2f}.",
      layer_name(best), best.cells[0], at(table, 0, "token_r2"));
}

struct ViewRow {
  View view;
  Measure measure = {};
};

constexpr ViewRow kViewed[] = {
    {{.name = "effect",
      .title = "Effect of positions",
      .hint = "Mean 1 − cosine between each state and the same state in a run without positions, "
              "in which every token's position vector is the mean of the table's rows (or zeros, "
              "if asked for), and positions do nothing within attention. 0: positions change "
              "nothing; 0.33: they turn the states by 48°; 1: to a right angle. degrees: the mean "
              "angle itself.",
      .unit = "1 − cosine",
      .chart = Chart::kLines,
      .columns = kEffect,
      .sentence = say_effect},
     measure_effect},
    {{.name = "split",
      .title = "What explains the states",
      .hint = "The text is run in random orders, in which each token is equally often at each "
              "place. Shares of the states' variance: of the place alone, the token alone, what "
              "the place does to one token and not to others (both), and the order of the other "
              "tokens (context). They sum to 1; estimates of 0 may be slightly negative. edge: how "
              "much of position is at the edges, the two places next to a token that stays where "
              "it is, such as [CLS]: in every order these keep that neighbour.",
      .unit = "share of variance",
      .chart = Chart::kStacked,
      .series = 4,
      .columns = kSplit,
      .sentence = say_split},
     measure_split},
    {{.name = "direct",
      .title = "Direct path of the position vector",
      .hint = "The part of each state that is the added position vector, carried by residual "
              "connections alone with every LayerNorm frozen, beside the token's: the length of "
              "each relative to the state, and its share ⟨D, h⟩/‖h‖². 0: nothing of it is left. It "
              "includes what all places have in common, which is no variance.",
      .unit = "length relative to the state",
      .chart = Chart::kLines,
      .series = 2,
      .columns = kDirect},
     measure_direct},
    {{.name = "sources",
      .title = "Where the position component comes from",
      .hint = "What each source contributes to the part of the states that is position (the mean "
              "at a place over random orders): the added vector itself (direct), and what "
              "attention and the MLPs of the blocks so far have written. Other: tokens and biases, "
              "scaled by LayerNorms. The shares sum to 1; a negative one works against the others; "
              "there are none where nothing in the states is position. direct length: the length "
              "of that source's component relative to the states'. The share of a source at a "
              "right angle to the others is its length squared; where the share is smaller, they "
              "oppose it. interior: what places that are no edges (see split) have of a share.",
      .unit = "share of the position component",
      .chart = Chart::kStacked,
      .series = 4,
      .brief = false,
      .slow = true,
      .columns = kSources,
      .sentence = say_sources},
     measure_sources},
    {{.name = "parts",
      .title = "Which parts write the position component",
      .hint = "What each attention, MLP and head contributes to the part of the states that is "
              "position (see sources), in the states after its own layer and in the last. 1: all "
              "of it; a negative share works against the others.",
      .unit = "share of the position component",
      .rows = Rows::kNamed,
      .row_name = "part",
      .chart = Chart::kDots,
      .series = 2,
      .brief = false,
      .slow = true,
      .columns = kParts},
     measure_sources},
    {{.name = "order",
      .title = "Order sensitivity",
      .hint = "How far the tokens' states move when the same tokens stand in another order, "
              "relative to their length: two tokens swapped, pairs of neighbours put in another "
              "order, all reversed, all shuffled; special tokens stay. 0: order does not matter; "
              "1.4: at right angles.",
      .unit = "relative change",
      .chart = Chart::kLines,
      .series = 4,
      .lead = 3,
      .columns = kOrder},
     measure_order},
    {{.name = "attention",
      .title = "Reach of attention",
      .hint = "The mean distance |i − j| between a token and what it reads, over all heads. Small: "
              "the layer looks at neighbours. entropy: of what a token reads, as a share of ln T. "
              "0: one token; 1: all tokens alike.",
      .unit = "tokens",
      .chart = Chart::kLines,
      .columns = kAttention},
     measure_attention},
    {{.name = "offsets",
      .title = "Attention by offset",
      .hint = "The mean weight of the token at each offset j − i, over all heads and the rows that "
              "have one: −1 is the previous token, +1 the next.",
      .unit = "mean weight",
      .lead = 2,
      .brief = false,
      .columns = kOffsets},
     measure_attention},
    {{.name = "heads",
      .title = "Heads, the most positional first",
      .hint = "previous, next, self, first, special: the mean weight that a head gives to the "
              "token before, the one after, the token itself, the first, and all special tokens. "
              "Each is a mean over the rows that have such a token, which may be several of these: "
              "they need not sum to 1. rows: the share of rows whose largest weight is on the "
              "better neighbour. distance: mean, in tokens. entropy: a share of ln T.",
      .unit = "mean weight",
      .rows = Rows::kHeads,
      .weight = neighbour_weight,
      .columns = kHeads,
      .sentence = say_heads},
     measure_attention},
    {{.name = "pattern",
      .title = "Attention pattern of a head",
      .hint = "How much each row's token reads of each column's token; a row sums to 1. --head "
              "chooses the head.",
      .needs = Needs::kOneText},
     measure_attention},
    {{.name = "scores",
      .title = "Parts of the first layer's scores",
      .hint =
          "A score is a query times a key; each is a token's part plus a position's part: token "
          "× position (tp) is that of a token in the query and a position in the key. bias is "
          "what positions do within attention: biases, rotation, DeBERTa's terms. rest: "
          "products with token types and with the maps' biases; positions: those with a "
          "position, and bias. Each part's share of the scores' variance within a row; in all, "
          "heads with large scores count most. 1: it decides where attention goes; 0: it has no "
          "say; below 0: it works against others, which then may exceed 1.",
      .unit = "share of variance",
      .rows = Rows::kNamed,
      .row_name = "head",
      .chart = Chart::kStacked,
      .series = 6,
      .lead = 6,
      .columns = kScores},
     measure_scores},
    {{.name = "relative",
      .title = "Effect of positions on the scores, by offset",
      .hint = "What positions add to a head's scores at each offset of positions, key less query, "
              "in the scores' unit. bias: T5's buckets, ALiBi; rotation: a rotated score less the "
              "same unrotated; c2p and p2c: DeBERTa's content to position and position to content; "
              "pp: added vectors, in the first layer. rotation, c2p and p2c are means over all "
              "pairs of the text's tokens, as if each stood at that offset, and sd is their "
              "standard deviation; pp is the mean over the pairs that do. No number: no such pair, "
              "or beyond a local window.",
      .unit = "score",
      .rows = Rows::kHeads,
      .row_name = "term",
      .chart = Chart::kCurves,
      .weight = range,
      .brief = false,
      .columns = kRelative},
     measure_relative},
    {{.name = "norm",
      .title = "Norm of the states",
      .hint = "The mean norm ‖h‖ of the states.",
      .unit = "norm",
      .chart = Chart::kLines,
      .brief = false,
      .columns = kNorm}},
    {{.name = "moved",
      .title = "Change from the first run to the second",
      .hint = "How far the second run's states are from the first's: mean 1 − cosine (distance; 0: "
              "the same direction, 1: a right angle), the mean angle in degrees, the length of the "
              "difference relative to the state, and the largest difference of a number. The axes "
              "of two models need not agree: there only a control (--baseline random) says what it "
              "tells.",
      .unit = "1 − cosine",
      .needs = Needs::kTwoRuns,
      .chart = Chart::kLines,
      .columns = kMoved}},
    {{.name = "corpus",
      .title = "What explains the states of many texts",
      .hint = "Shares of the states' variance over texts of one length that the place alone, the "
              "text alone, and only both together explain; they sum to 1.",
      .unit = "share of variance",
      .needs = Needs::kManyTexts,
      .chart = Chart::kStacked,
      .series = 3,
      .columns = kCorpus},
     split_many},
    {{.name = "probe",
      .title = "Position, read by a linear probe",
      .hint = "How well a linear map predicts the position from a state, on texts it was not "
              "trained on: R² (1: exactly, 0: no better than the mean) and mean error in tokens. "
              "token R²: the same from the token's embedding without position, which knows only "
              "which word it is. interior R²: without the edges (see split). control: a probe of a "
              "random place for each word, the same wherever it stands (Hewitt and Liang 2019). "
              "shuffled: R² after training on permuted positions.",
      .unit = "R² on unseen texts",
      .needs = Needs::kManyTexts,
      .chart = Chart::kLines,
      .columns = kProbe,
      .sentence = say_probe},
     probe_many},
    {{.name = "masked",
      .title = "Masked tokens",
      .hint = "Loss in nats and accuracy (share of right predictions) on 15 % of the file's "
              "tokens, which are masked; each text is run by itself.",
      .unit = "loss in nats",
      .needs = Needs::kFile,
      .rows = Rows::kNamed,
      .row_name = "texts",
      .columns = kMasked},
     score_masked},
    {{.name = "masks",
      .title = "Masked tokens, one by one",
      .hint = "Loss in nats of each masked token, and whether the prediction is right (1). 3.2 is "
              "the second mask of the file's third text that has tokens.",
      .unit = "loss in nats",
      .needs = Needs::kFile,
      .rows = Rows::kNamed,
      .row_name = "mask",
      .brief = false,
      .slow = true,
      .columns = kLens},
     score_masked},
    {{.name = "lens",
      .title = "Masked tokens, predicted from each layer",
      .hint = "Logit lens: what the masked-language-model head says of the same masked tokens as "
              "in masked, when it reads the state of an earlier layer (after the model's final "
              "norm, if it has one). Loss in nats (0: certain of the right token; ln of the "
              "vocabulary's size: a uniform guess) and accuracy (1: all predictions are right). "
              "The last layer's are those of masked.",
      .unit = "loss in nats",
      .needs = Needs::kFile,
      .chart = Chart::kLines,
      .brief = false,
      .columns = kLens},
     score_masked},
    {{.name = "causes",
      .title = "Loss without position components",
      .hint = "By how many nats the loss on masked tokens rises when rows are subtracted from the "
              "run, beside two controls, each the mean of three draws: random vectors of the "
              "same norm, whose mean has the norm of the rows' mean, too; and the rows themselves "
              "at other tokens' places (shuffled). difference: removed less shuffled; above 0, it "
              "matters where the vectors stand. positions: a run without any (see effect). direct "
              "path: the position vectors less their mean, "
              "after the first block's attention has read them. position N: the position component "
              "of the states after N layers. edges, interior: their rows alone (see split).",
      .unit = "nats",
      .needs = Needs::kFile,
      .rows = Rows::kNamed,
      .row_name = "part",
      .chart = Chart::kDots,
      .series = 3,
      .brief = false,
      .slow = true,
      .columns = kCauses},
     score_causes},
    {{.name = "reading",
      .title = "In which layers positions are read",
      .hint =
          "Shares of what a run without word positions loses: every word has the mean of the "
          "vectors of the text's words, special tokens keep theirs, and positions do nothing "
          "within attention (a causal mask stays). left: still lost when the attentions of layers "
          "1 to l have positions, and all that follows has none (1: they have read nothing; 0: all "
          "that the model needs). Added vectors, less their mean over the words, are followed "
          "through the LayerNorms at the run's scales, and subtracted when attention l has been "
          "added. Two controls are subtracted in their place: random vectors of the same "
          "norm, whose mean has the norm of theirs, too; and other words' (shuffled). left less "
          "random: what these vectors cost beyond others of that norm. later: won when only the "
          "attentions behind l have positions; above 1 − left, layers could read the same again. "
          "sufficient: won when attention l's output with positions stands in the run without; "
          "needed: lost in the reverse case. present: the squared length of what is left of the "
          "vectors, by the stream's. Lost is the loss on masked tokens (five draws of masks), or, "
          "without a masked-language-model head, 1 − cosine of the words' last states, both less "
          "the mean state. Mean depth: the sum of left over layers 0 to L − 1.",
      .unit = "share",
      .needs = Needs::kFile,
      .chart = Chart::kLines,
      .series = 5,
      .brief = false,
      .slow = true,
      .columns = kReading},
     score_reading},
    {{.name = "reading_angle",
      .title = "In which layers positions are read, by the angle",
      .hint = "As reading, measured in the same way for every model: by the mean angle between the "
              "words' last states and those of the run with positions, both less the mean state. "
              "1 − cosine grows with the square of the angle, so small shares of it are larger "
              "here.",
      .unit = "share",
      .needs = Needs::kFile,
      .chart = Chart::kLines,
      .series = 5,
      .brief = false,
      .slow = true,
      .columns = kReading},
     score_reading},
    {{.name = "offset_patterns",
      .title = "Attention by offset alone in the first layers",
      .hint =
          "Shares of what a run without word positions loses (see reading) that are won when the "
          "patterns of layers 1 to l are replaced: what a word gives to words by each head's mean "
          "weight at the offset, over the other texts of the run with positions. What it gives to "
          "special tokens stays, and so do their rows. 1: these layers need no more of positions "
          "than offset patterns. mirrored: the same with offsets reversed, a control. patterns: "
          "the text's own patterns of the run with positions, of special tokens, too. Of masks "
          "there is one draw.",
      .unit = "share",
      .needs = Needs::kFile,
      .chart = Chart::kLines,
      .series = 3,
      .brief = false,
      .slow = true,
      .columns = kOffsetPatterns},
     score_offset_patterns},
    {{.name = "patched",
      .title = "Loss with a part of the other run",
      .hint = "Activation patching of two runs of one model. denoising: by how many nats the "
              "second run's loss on masked tokens falls when a part of the first run takes the "
              "place of its own; noising: by how many the first run's rises with a part of the "
              "second. all: the second run's loss less the first's, by which sufficient and needed "
              "are divided. state N: the states after N layers, which have all where positions are "
              "added vectors. attention, MLP and head: what they write. position: the position "
              "component alone (see sources); rest: all but it.",
      .unit = "nats",
      .needs = Needs::kTwoRunsOfFile,
      .rows = Rows::kNamed,
      .row_name = "part",
      .chart = Chart::kDots,
      .series = 2,
      .brief = false,
      .slow = true,
      .columns = kPatched}},
    {{.name = "longer",
      .title = "Masked tokens in longer texts",
      .hint = "Loss in nats and accuracy (share of right predictions) on 15 % of the tokens of the "
              "file, which is read end to end in pieces of 1, 1.5 and 2 times the trained length; "
              "where a table of positions ends, with each --overflow policy. Intervals draw "
              "pieces, not texts.",
      .unit = "loss in nats",
      .needs = Needs::kFile,
      .rows = Rows::kNamed,
      .row_name = "length",
      .columns = kLonger},
     score_longer},
};

constexpr auto kViews = [] {
  std::array<View, std::size(kViewed)> views;
  std::ranges::transform(kViewed, views.begin(), &ViewRow::view);
  return views;
}();

}  // namespace

const View& view(std::string_view name) {
  const auto* const found = std::ranges::find(kViews, name, &View::name);
  if (found == kViews.end()) throw std::out_of_range(fmt::format("no view is called {}", name));
  return *found;
}

Measure measure_of(const View& view) { return kViewed[&view - kViews.data()].measure; }

const char* lacking(Needs needs, const Lacks& lacks) {
  const bool lines = needs == Needs::kFile || needs == Needs::kTwoRunsOfFile;
  const bool two = needs == Needs::kTwoRuns || needs == Needs::kTwoRunsOfFile;
  if (needs == Needs::kOneText) return lacks.text;
  if (two && lacks.second_run != nullptr) return lacks.second_run;
  if ((lines || needs == Needs::kManyTexts) && lacks.texts != nullptr) return lacks.texts;
  return lines ? lacks.lines : nullptr;
}

std::string label_of(const Column& column) {
  constexpr std::pair<std::string_view, std::string_view> kWritten[] = {{"mlp", "MLP"},
                                                                        {"r2", "R²"}};
  std::string label;
  for (std::string_view rest = column.key; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find('_'));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    const auto* const found =
        std::ranges::find(kWritten, word, [](auto& row) { return row.first; });
    label += label.empty() ? "" : " ";
    label += found == std::end(kWritten) ? word : found->second;
  }
  if (label[0] == '-') return "−" + label.substr(1);
  return (label[0] >= '1' && label[0] <= '9' ? "+" : "") + label;
}

std::string small_number(double value, int decimals) {
  const double size = std::abs(value);
  if (size == 0 || size >= 0.5 * std::pow(10, -decimals)) {
    return fmt::format("{:.{}f}", value, decimals);
  }
  return size < 1e-5 ? "<1e-5" : fmt::format("{:.0e}", value);
}

double angle_of(double cosine_distance) {
  return std::acos(std::clamp(1 - cosine_distance, -1.0, 1.0)) * 180 / std::numbers::pi;
}

std::string degrees_text(double degrees) {
  return fmt::format("{:.{}f}°", degrees, degrees >= 0.05 && degrees < 1 ? 1 : 0);
}

std::string number_text(double value, const Column& column) {
  if (column.decimals > 2) return small_number(value, column.decimals);
  const std::string text = fmt::format("{:.{}f}", value, column.decimals);
  return text.find_first_not_of("-0.") == std::string::npos && text[0] == '-' ? text.substr(1)
                                                                              : text;
}

}  // namespace phasor::internal

std::span<const phasor::lens::View> phasor::lens::views() { return internal::kViews; }
