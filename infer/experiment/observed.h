// What is known about one text in one run: its tokens, and what every layer does with their
// positions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/cli/input.h"
#include "infer/experiment/fill_in.h"
#include "phasor/lens.h"

namespace infer {

/// What can be measured about a text.
enum class Measure {
  kSplit,
  kDirect,
  kEffect,
  kOrder,
  kAttention,
  kScores,
  kCorpusSplit,  // these two of many texts
  kProbe
};
inline constexpr std::array<std::string_view, 8> kMeasureNames = {
    "split", "direct", "effect", "order", "attention", "scores", "corpus_split", "probe"};

/// Of the text tokens; n-grams are pairs of neighbours.
enum class Reordering { kSwap, kNgrams, kReverse, kShuffle };
inline constexpr std::array<std::string_view, 4> kReorderingNames = {"swap", "ngrams", "reverse",
                                                                     "shuffle"};

/// Shares of the states' variance, which sum to 1, and what the position means look like.
struct ObservedSplit {
  double position = 0, group = 0, rest = 0;  // a group is a token, or in a corpus a text
  double stable_rank = 0, smoothness = 0;    // of position_means
  std::vector<double> position_means = {};   // [places, C]; empty in means over texts
};

/// Where a block's attention goes, over all heads and rows; a row of several windows counts once
/// for each.
struct ObservedAttention {
  std::map<int64_t, double> by_offset;          // a(δ) of phasor::attention_by_offset()
  double distance = 0;                          // Σ_δ a(δ)·|δ|, in tokens
  double entropy = 0;                           // mean over heads and rows, in nats
  double entropy_share = 0;                     // of ln T
  std::vector<phasor::HeadProfile> heads = {};  // [H]; empty where the text was run in windows
};

/// hidden_states[l], and the block that made it. Empty: not asked for, or in Observed::missing.
struct ObservedLayer {
  double norm = 0;                                   // mean over the tokens, as all that follows
  std::optional<ObservedSplit> split;                // phasor::latin_square_split()
  std::optional<double> position_effect;             // 1 − cos to the state without positions
  std::optional<phasor::PartShare> direct_position;  // the position vector's own part
  std::optional<std::array<double, kReorderingNames.size()>> order;  // order_sensitivity()
  std::optional<ObservedAttention> attention;                        // of block l − 1
  std::optional<ObservedSplit> corpus_split;                         // these two of many texts
  std::optional<phasor::ProbeReport> probe;
};

/// Shares of the variance of the first layer's scores.
struct ObservedScores {
  phasor::ScoreShares all;                 // heads together
  std::vector<phasor::ScoreShares> heads;  // [H]
};

/// Many texts seen as one: all numbers are means.
struct CorpusSize {
  std::string file;
  int64_t texts = 0, tokens = 0;
  int64_t split_texts = 0, split_places = 0;    // of corpus_split
  int64_t train_texts = 0, held_out_texts = 0;  // of the probe
};

/// Letters: T tokens, L layers, C d_model, E embedding width, H heads.
struct Observed {
  // The run.
  std::string model = {};                       // as the user named it
  std::string positions = {};                   // "sinusoidal (paper)"
  std::string precision = {};                   // "f32"
  std::vector<std::string> edits = {};          // of the positions, as the user wrote them
  std::vector<std::string> cut_residuals = {};  // "1.attn": the attention's of the first layer

  // The text, or the texts: then `input` and the arrays are empty.
  std::optional<CorpusSize> corpus = {};
  Input input = {};                       // as it was run
  std::vector<float> position_ids = {};   // [T], fractional where a table was interpolated
  std::vector<int64_t> text_tokens = {};  // which of the T are no special tokens
  int64_t num_heads = 0;
  int64_t d_model = 0;

  // What was measured.
  std::vector<ObservedLayer> layers = {};  // [L + 1]
  std::optional<double> pooled_effect =
      {};  // 1 − cos of the pooled vectors with and without positions
  std::optional<ObservedScores> first_layer_scores = {};
  std::vector<MaskReport> masks = {};
  std::map<Measure, std::string> missing = {};  // why there is no answer

  // Arrays.
  std::vector<float> position_vectors = {};       // [T, E] that were added; empty: none, or windows
  std::vector<std::vector<float>> states = {};    // [L + 1] of [T, C], where asked for
  std::vector<std::vector<float>> patterns = {};  // [L] of [H, T, T], where asked for

  int64_t num_tokens() const { return std::ssize(input.token_ids); }
  int64_t num_layers() const { return std::ssize(layers) - 1; }
};

/// Keys are documented in docs/reading-in-python.md. What was not asked for is null.
nlohmann::ordered_json to_json(const Observed& text);
/// JSON in one line, without its end; U+FFFD for bytes that are no UTF-8.
std::string line(const nlohmann::ordered_json& json);

}  // namespace infer
