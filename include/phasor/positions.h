// Positions: the sinusoidal tables, and how one run can change the positions of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "phasor/config.h"

namespace [[gnu::visibility("default")]] phasor {

/// Writes PE(position) into row [d_model], in double and then rounded. `position` may be fractional
/// (interpolation) or negative (shifts); base > 1. Throws InvalidArgument for an odd width in
/// kOpenNmt. Formula: Vaswani et al. 2017 §3.5 and the table at SinusoidalLayout. For d_model 2 and
/// 3 the tensor2tensor step n^(−1/(d/2−1)) divides by zero; the single pair has frequency 1.
void sinusoidal_row(SinusoidalLayout layout, double base, double position, int64_t d_model,
                    double* row);
void sinusoidal_row(SinusoidalLayout layout, double base, double position, int64_t d_model,
                    float* row);

/// Two columns of a sinusoidal table that turn together: sin(ωp) and cos(ωp), with ω = frequency.
struct ColumnPair {
  int64_t sine;
  int64_t cosine;    // −1: the last sine of an odd width, alone (kPaper, kMarian)
  double frequency;  // ω, in radians a position; the wavelength is 2π/ω positions
};

/// The pairs of a table, fastest first. The zero column of an odd width (kT2T, kFairseq) is in no
/// pair. Throws as sinusoidal_row().
std::vector<ColumnPair> column_pairs(SinusoidalLayout layout, int64_t d_model,
                                     double base = 10000.0);

/// The same row from the pairs of its table.
void sinusoidal_row(std::span<const ColumnPair> pairs, double position, int64_t d_model,
                    double* row);
void sinusoidal_row(std::span<const ColumnPair> pairs, double position, int64_t d_model,
                    float* row);

/// Rows first_position … first_position + rows − 1 of a table, [rows, d_model].
std::vector<double> sinusoidal_table(SinusoidalLayout layout, int64_t rows, int64_t d_model,
                                     double base = 10000.0, int64_t first_position = 0);

/// What to do with a sequence longer than the table of positions (see Press et al. 2021). A
/// computed sinusoidal table has a row for every position, so no policy applies to it in encode();
/// embed() has length limits of its own.
enum class Overflow {
  kError,        // InvalidArgument naming both lengths
  kTruncate,     // keep the leading tokens (and, for a text, its closing special tokens)
  kClamp,        // tokens past the end all take the last row
  kInterpolate,  // token t of T reads the table at u = t·(L−1)/(T−1), between two rows linearly
  kWindow  // windows of L tokens overlapping by half; hidden states averaged where they overlap
};

/// See Positions::masked().
enum class AttentionMask { kModel, kCausal, kNone };

/// A table that replaces the model's own for a run: row r is added to a token at position r.
struct PositionTable {
  int64_t rows = 0;
  int64_t d_model = 0;
  std::vector<float> values;  // [rows, d_model]
};

/// Which positions a run adds, and to which tokens. A value; the default is the checkpoint's own.
/// Edits act on each sequence by itself, in the order given, on its list of positions p_0 …
/// p_{T−1}:
///
///     encoder.encode(texts, {.positions = Positions::none()});
///     encoder.encode(texts, {.positions = Positions().shifted(3).scaled(0.5f)});
///     encoder.encode(texts, {.positions = Positions::sinusoidal(SinusoidalLayout::kPaper)});
class Positions {
 public:
  /// The model's own.
  Positions() = default;
  /// Nothing is added, nothing is rotated, and local windows are open: attention cannot tell one
  /// order of the tokens from another. Every other source leaves local windows as they are.
  static Positions none();
  /// A computed table in place of the model's.
  static Positions sinusoidal(SinusoidalLayout layout, double base = 10000.0);
  /// The model's stored table; a run throws InvalidArgument if the model has none.
  static Positions learned();
  /// Nothing is added; queries and keys are rotated in every layer (see RotaryConfig; halves, the
  /// whole head). A run throws InvalidArgument if the width of a head is odd.
  static Positions rotary(double base = 10000.0);
  /// Nothing is added but ALiBi's bias on the scores (see ScoreBias::kAlibi).
  static Positions alibi();
  /// `table` in place of the model's; its row 0 is for the first token.
  static Positions table(PositionTable table);
  /// By name: "own" (the model's, as is an empty name), "none", "sinusoidal", "sinusoidal:marian"
  /// or "marian", "learned", "rotary", "rotary:160000" or "alibi". `own` gives the layout and the
  /// base that the name leaves out. Throws InvalidArgument listing the names.
  static Positions named(std::string_view name, const PositionConfig& own);

  /// Multiplies what positions do: vectors, biases, terms of disentangled attention, and the angles
  /// of rotation (0: as if there were none; then local windows are open, too).
  Positions scaled(float factor) const;
  /// Adds the table's mean row to every token in place of the token's own. This row says nothing
  /// about a token's place, and adding it leaves the states about as they were in training, which
  /// adding none (scaled(0)) does not. It is the mean over the rows that a text of the trained
  /// length (ModelConfig::max_positions, or 512 where that is 0, and no more than the table has)
  /// gets without edits, and so the same for every text. What positions do within attention
  /// (biases, rotation, terms, local windows) has no mean row and is removed, as by scaled(0).
  Positions averaged() const;
  /// p_t + offset.
  Positions shifted(int64_t offset) const;
  /// Exchanges p_i and p_j (indices of tokens, from 0).
  Positions swapped(int64_t i, int64_t j) const;
  /// p_{T−1−t}.
  Positions reversed() const;
  /// A permutation drawn from `seed`: the same for the same seed and length, on every machine.
  Positions shuffled(uint64_t seed) const;
  /// p_0 for every token.
  Positions repeated() const;
  /// The given positions, one for each token of the (only) sequence.
  Positions at(std::vector<int32_t> position_ids) const;
  /// Which keys a query sees: those that the model lets it see, those of its own and of earlier
  /// tokens, or all. Without a table a causal mask still tells a model where its tokens stand
  /// (Haviv et al. 2022, arXiv 2203.16634). Local windows stay as they are.
  Positions masked(AttentionMask mask) const;
  /// By name: "zero" (scaled by 0), "mean" (averaged), "scale=0.5", "shift=3", "swap=2,5",
  /// "reverse", "shuffle=7", "repeat", "mask=causal", "mask=none" or "mask=own". Throws
  /// InvalidArgument listing the names.
  Positions edited(std::string_view edit) const;

  /// Where the positions come from; see the functions of the same names.
  enum class Source { kModel, kNone, kSinusoidal, kLearned, kTable, kRotary, kAlibi };
  /// Made by shifted().
  struct Shift {
    int64_t offset;
  };
  /// Made by swapped().
  struct Swap {
    int64_t i, j;
  };
  /// Made by reversed().
  struct Reverse {};
  /// Made by shuffled().
  struct Shuffle {
    uint64_t seed;
  };
  /// Made by repeated().
  struct Repeat {};
  /// Made by at().
  struct At {
    std::vector<int32_t> position_ids;
  };
  /// One change to the list of positions.
  using Edit = std::variant<Shift, Swap, Reverse, Shuffle, Repeat, At>;

  Source source() const;
  SinusoidalLayout layout() const;           // kSinusoidal
  double base() const;                       // kSinusoidal, kRotary
  const PositionTable* replacement() const;  // kTable, else null
  AttentionMask mask() const;
  float scale() const;
  bool is_averaged() const;
  const std::vector<Edit>& edits() const;

 private:
  struct [[gnu::visibility("hidden")]] State;
  explicit Positions(State state);
  Positions with(Edit edit) const;
  const State& state() const;

  std::shared_ptr<const State> state_;  // null: the model's own
};

}  // namespace phasor
