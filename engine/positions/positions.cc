// The sinusoidal tables, and the Positions of a run.

#include "phasor/positions.h"

#include <cmath>
#include <utility>

#include "files/refuse.h"

namespace phasor {

using namespace internal;

namespace {

// Angular frequency of pair i: n^(−2i/d) (Vaswani et al.), or n^(−i/(d/2−1)) (tensor2tensor), which
// makes the last wavelength exactly 2πn.
double frequency(SinusoidalLayout layout, double base, int64_t pair, int64_t d_model) {
  if (layout == SinusoidalLayout::kPaper || layout == SinusoidalLayout::kMarian)
    return std::pow(base, -2.0 * static_cast<double>(pair) / static_cast<double>(d_model));
  const int64_t pairs = d_model / 2;
  return pairs < 2 ? 1.0 : std::pow(base, -static_cast<double>(pair) / (pairs - 1));
}

template <typename T>
void write_row(std::span<const ColumnPair> pairs, double position, int64_t d_model, T* row) {
  row[d_model - 1] = T{0};  // if the width is odd, it may be in no pair
  for (const ColumnPair& pair : pairs) {
    const double angle = position * pair.frequency;
    row[pair.sine] = static_cast<T>(std::sin(angle));
    if (pair.cosine >= 0) row[pair.cosine] = static_cast<T>(std::cos(angle));
  }
}

}  // namespace

int64_t usual_first_position(SinusoidalLayout layout) {
  if (layout == SinusoidalLayout::kFairseq) return 2;  // fairseq's pad_token_id is 1
  return layout == SinusoidalLayout::kOpenNmt ? 1 : 0;
}

std::vector<ColumnPair> column_pairs(SinusoidalLayout layout, int64_t d_model, double base) {
  check_value(names<SinusoidalLayout>(), static_cast<size_t>(layout));
  constexpr int64_t kMostColumns = int64_t{1} << 24;
  if (d_model < 1 || d_model > kMostColumns) {
    refuse<InvalidArgument>("the width of the sinusoids is {}; it must be 1 to {}", d_model,
                            kMostColumns);
  }
  if (layout == SinusoidalLayout::kOpenNmt && d_model % 2 != 0) {
    refuse<InvalidArgument>(
        "the opennmt layout needs an even width, not {}; paper and marian take any", d_model);
  }
  const bool alternating = layout == SinusoidalLayout::kPaper;
  const bool extra_sine = alternating || layout == SinusoidalLayout::kMarian;
  const int64_t cosines = d_model / 2;
  const int64_t sines = extra_sine ? d_model - cosines : cosines;
  std::vector<ColumnPair> pairs;
  for (int64_t i = 0; i < sines; ++i) {
    const int64_t cosine = alternating ? 2 * i + 1 : sines + i;
    pairs.push_back({.sine = alternating ? 2 * i : i,
                     .cosine = i < cosines ? cosine : -1,
                     .frequency = frequency(layout, base, i, d_model)});
  }
  return pairs;
}

void sinusoidal_row(SinusoidalLayout layout, double base, double position, int64_t d_model,
                    double* row) {
  write_row(column_pairs(layout, d_model, base), position, d_model, row);
}

void sinusoidal_row(SinusoidalLayout layout, double base, double position, int64_t d_model,
                    float* row) {
  write_row(column_pairs(layout, d_model, base), position, d_model, row);
}

void sinusoidal_row(std::span<const ColumnPair> pairs, double position, int64_t d_model,
                    double* row) {
  write_row(pairs, position, d_model, row);
}

void sinusoidal_row(std::span<const ColumnPair> pairs, double position, int64_t d_model,
                    float* row) {
  write_row(pairs, position, d_model, row);
}

std::vector<double> sinusoidal_table(SinusoidalLayout layout, int64_t rows, int64_t d_model,
                                     double base, int64_t first_position) {
  constexpr int64_t kMostValues = int64_t{1} << 40;
  if (rows < 0 || d_model < 1 || rows > kMostValues / d_model || !(base > 1)) {
    refuse<InvalidArgument>(
        "no sinusoidal table has {} rows, width {} and base {}; rows must be at least 0, the width "
        "at least 1, their product at most 2^40, the base above 1",
        rows, d_model, base);
  }
  const std::vector<ColumnPair> pairs = column_pairs(layout, d_model, base);
  std::vector<double> table(static_cast<size_t>(rows * d_model));
  for (int64_t r = 0; r < rows; ++r) {
    write_row(pairs, static_cast<double>(first_position + r), d_model, &table[r * d_model]);
  }
  return table;
}

struct Positions::State {
  Source source = Source::kModel;
  SinusoidalLayout layout = SinusoidalLayout::kPaper;
  double base = 10000.0;
  std::shared_ptr<const PositionTable> table = nullptr;
  float scale = 1.0f;
  bool averaged = false;
  AttentionMask mask = AttentionMask::kModel;
  std::vector<Edit> edits = {};
};

Positions::Positions(State state) : state_(std::make_shared<const State>(std::move(state))) {}

const Positions::State& Positions::state() const {
  static const State kModels;
  return state_ ? *state_ : kModels;
}

Positions Positions::none() { return Positions(State{.source = Source::kNone}); }

Positions Positions::sinusoidal(SinusoidalLayout layout, double base) {
  check_value(names<SinusoidalLayout>(), static_cast<size_t>(layout));
  if (!(base > 1))
    refuse<InvalidArgument>("the base of the sinusoids is {}; it must be above 1", base);
  return Positions(State{.source = Source::kSinusoidal, .layout = layout, .base = base});
}

Positions Positions::learned() { return Positions(State{.source = Source::kLearned}); }

Positions Positions::rotary(double base) {
  if (!(base > 1))
    refuse<InvalidArgument>("the base of the rotation is {}; it must be above 1", base);
  return Positions(State{.source = Source::kRotary, .base = base});
}

Positions Positions::alibi() { return Positions(State{.source = Source::kAlibi}); }

Positions Positions::table(PositionTable table) {
  if (table.rows < 1 || table.d_model < 1 ||
      static_cast<int64_t>(table.values.size()) / table.d_model != table.rows ||
      static_cast<int64_t>(table.values.size()) % table.d_model != 0) {
    refuse<InvalidArgument>("a position table of {} rows and width {} cannot have {} values",
                            table.rows, table.d_model, table.values.size());
  }
  return Positions(State{.source = Source::kTable,
                         .table = std::make_shared<const PositionTable>(std::move(table))});
}

Positions Positions::scaled(float factor) const {
  State changed = state();
  changed.scale *= factor;
  return Positions(std::move(changed));
}

Positions Positions::averaged() const {
  State changed = state();
  changed.averaged = true;
  return Positions(std::move(changed));
}

Positions Positions::masked(AttentionMask mask) const {
  State changed = state();
  changed.mask = mask;
  return Positions(std::move(changed));
}

Positions Positions::with(Edit edit) const {
  State changed = state();
  changed.edits.push_back(std::move(edit));
  return Positions(std::move(changed));
}

Positions::Source Positions::source() const { return state().source; }
SinusoidalLayout Positions::layout() const { return state().layout; }
double Positions::base() const { return state().base; }
const PositionTable* Positions::replacement() const { return state().table.get(); }
AttentionMask Positions::mask() const { return state().mask; }
float Positions::scale() const { return state().scale; }
bool Positions::is_averaged() const { return state().averaged; }
const std::vector<Positions::Edit>& Positions::edits() const { return state().edits; }

Positions Positions::shifted(int64_t offset) const { return with(Shift{offset}); }
Positions Positions::swapped(int64_t i, int64_t j) const { return with(Swap{i, j}); }
Positions Positions::reversed() const { return with(Reverse{}); }
Positions Positions::shuffled(uint64_t seed) const { return with(Shuffle{seed}); }
Positions Positions::repeated() const { return with(Repeat{}); }
Positions Positions::at(std::vector<int32_t> position_ids) const {
  return with(At{std::move(position_ids)});
}

}  // namespace phasor
