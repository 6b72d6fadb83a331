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

#include "infer/fill_in.h"
#include "infer/input.h"
#include "phasor/lens.h"

namespace infer {

/// What can be measured about a text.
enum class Measure { kEffect, kDirect, kOrder, kAttention };
inline constexpr std::array<std::string_view, 4> kMeasureNames = {"effect", "direct", "order",
                                                                  "attention"};

enum class Reordering { kSwap, kReverse, kShuffle };
inline constexpr std::array<std::string_view, 3> kReorderingNames = {"swap", "reverse", "shuffle"};

/// Where a block's attention goes, over all heads and rows; a row of several windows counts once
/// for each.
struct ObservedAttention {
  std::map<int64_t, double> by_offset;  // a(δ) of phasor::attention_by_offset()
  double distance = 0;                  // Σ_δ a(δ)·|δ|, in tokens
};

/// hidden_states[l], and the block that made it. Empty: not asked for, or in Observed::missing.
struct ObservedLayer {
  double norm = 0;                                   // mean over the tokens, as all that follows
  std::optional<double> position_effect;             // 1 − cos to the state without positions
  std::optional<phasor::PartShare> direct_position;  // the position vector's own part
  std::optional<std::array<double, kReorderingNames.size()>> order;  // order_sensitivity()
  std::optional<ObservedAttention> attention;                        // of block l − 1
};

/// Letters: T tokens, L layers, C d_model, E embedding width, H heads.
struct Observed {
  // The run.
  std::string model = {};                       // as the user named it
  std::string positions = {};                   // "sinusoidal (paper)"
  std::string precision = {};                   // "f32"
  std::vector<std::string> edits = {};          // of the positions, as the user wrote them
  std::vector<std::string> cut_residuals = {};  // "1.attn": the attention's of the first layer

  // The text.
  Input input = {};                       // as it was run
  std::vector<float> position_ids = {};   // [T], fractional where a table was interpolated
  std::vector<int64_t> text_tokens = {};  // which of the T are no special tokens
  int64_t num_heads = 0;
  int64_t d_model = 0;

  // What was measured.
  std::vector<ObservedLayer> layers = {};  // [L + 1]
  std::optional<double> pooled_effect =
      {};  // 1 − cos of the pooled vectors with and without positions
  std::vector<MaskReport> masks = {};
  std::map<Measure, std::string> missing = {};  // why there is no answer

  // Arrays.
  std::vector<float> position_vectors = {};       // [T, E] that were added; empty: none
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
