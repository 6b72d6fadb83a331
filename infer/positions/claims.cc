#include "infer/positions/claims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "infer/matrix.h"
#include "phasor/encoder.h"
#include "phasor/errors.h"
#include "phasor/lens/order.h"
#include "phasor/lens/residual.h"
#include "phasor/lens/table.h"

namespace infer {
namespace claims {
namespace {

using namespace phasor;
using TokenIds = std::vector<int32_t>;

struct Verdict {
  std::optional<bool> holds;
  bool as_expected;
};
/// Of a claim that is right by theory, of one that is wrong, and of a matter of how much;
/// `numbers`: whether what else was computed is what theory gives.
Verdict right(bool holds, bool numbers = true) { return {holds, holds && numbers}; }
Verdict wrong(bool holds, bool numbers = true) { return {holds, !holds && numbers}; }
Verdict measured(bool numbers) { return {std::nullopt, numbers}; }

class Claims {
 public:
  Claims(const ClaimModels& models, const TableSource& source) : models(models), table_(source) {}

  /// The claims added from now on are this tutorial's.
  void begin(std::string source) { source_ = std::move(source); }
  /// `computed` and the rest: as of fmt::format().
  template <typename... Values>
  void add(std::string text, Verdict verdict, std::string reason,
           fmt::format_string<Values...> computed, Values&&... values) {
    claims_.push_back({source_, std::move(text), verdict.holds, verdict.as_expected,
                       fmt::format(computed, std::forward<Values>(values)...), std::move(reason)});
  }
  std::vector<Claim> take() { return std::move(claims_); }

  /// Throws InvalidArgument where the source gives another number of values.
  Matrix table(SinusoidalLayout layout, int64_t rows, int64_t d_model, double base = 10000,
               int64_t first_position = 0) const {
    Matrix table{table_(layout, rows, d_model, base, first_position), rows, d_model};
    if (std::ssize(table.values) == rows * d_model) return table;
    throw InvalidArgument(fmt::format("a table of {} rows and width {} cannot have {} values", rows,
                                      d_model, table.values.size()));
  }
  Matrix paper(int64_t rows, int64_t d_model, double base = 10000,
               int64_t first_position = 0) const {
    return table(SinusoidalLayout::kPaper, rows, d_model, base, first_position);
  }

  const ClaimModels& models;

 private:
  const TableSource& table_;
  std::string source_;
  std::vector<Claim> claims_;
};

constexpr double kCircle = 2 * std::numbers::pi;

bool near(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance; }

auto list(std::span<const double> numbers) { return fmt::join(numbers, ", "); }

/// The frequency of the pair of columns c, c + 1 of a paper table.
double frequency(double c, double d_model) { return std::pow(10000.0, -c / d_model); }

/// Of the pair of columns (sine, cosine), from how far it turns between rows 0 and 1.
double wavelength(const Matrix& table, int64_t sine, int64_t cosine) {
  const double before = std::atan2(table.at(0, sine), table.at(0, cosine));
  return kCircle / (std::atan2(table.at(1, sine), table.at(1, cosine)) - before);
}

/// max |a − b| over all of a, and infinite where there are NaN; b may be longer.
double largest_difference(std::span<const double> a, std::span<const double> b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    const bool is_number = !std::isnan(difference);
    largest = std::max(largest, is_number ? difference : std::numeric_limits<double>::infinity());
  }
  return largest;
}

TokenIds ids_of(const Model& model, const std::string& text) {
  return model.tokenizer().encode(text, {.ids_only = true}).ids;
}

/// How far "a dog bit Tom" is from "Tom bit a dog", both of the same ids.
struct Reordered {
  double pooled = 0;  // 1 − cos of the pooled vectors
  double states = 0;  // order_sensitivity() of the last states
};

Reordered reorder(std::shared_ptr<const Model> model) {
  const std::vector<int64_t> order = {0, 3, 4, 2, 1, 5, 6};  // [CLS] a dog bit Tom . [SEP]
  const TokenIds ids = ids_of(*model, "Tom bit a dog.");
  if (ids.size() != order.size()) {
    throw InvalidArgument(fmt::format(
        "\"Tom bit a dog.\" has {} tokens, not {}; the claims are about the bundled models",
        ids.size(), order.size()));
  }
  Encoder encoder(std::move(model), {.threads = 1});
  const Encoding out = encoder.encode_ids(std::vector<TokenIds>{ids, reordered(ids, order)},
                                          {.pooling = encoder.model().sentence().pooling});
  const int64_t d_model = encoder.model().config().d_model;
  return {.pooled = mean_cosine_distance(out.embedding(0), out.embedding(1), d_model),
          .states = order_sensitivity(out.hidden(0), out.hidden(1), order, d_model)};
}

/// The model in d = 4 and n = 100: one layer, and weights of zero, because what a run adds to its
/// tokens depends on none of them.
std::shared_ptr<const Model> of_width_four(const Model& model) {
  ModelConfig config;
  config.d_model = config.d_ff = 4;
  config.num_layers = config.num_heads = 1;
  config.vocab_size = model.config().vocab_size;
  config.max_positions = 4;
  config.position = model.config().position;
  config.position.base = 100;
  const auto zeros = std::make_shared<const std::vector<float>>(4 * config.vocab_size);
  const auto tensor = [&](std::vector<int64_t> shape) {
    return Tensor{.shape = std::move(shape),
                  .data = reinterpret_cast<const std::byte*>(zeros->data())};
  };
  const LinearWeights linear{.weight = tensor({4, 4}), .bias = tensor({4})};
  const NormWeights norm{.weight = tensor({4}), .bias = tensor({4})};
  BlockWeights block;
  for (LinearWeights* const map :
       {&block.q, &block.k, &block.v, &block.out, &block.up, &block.down})
    *map = linear;
  block.attn_norm = block.mlp_norm = norm;
  Weights weights;
  weights.token_embedding = tensor({config.vocab_size, 4});
  if (config.position.kind == PositionKind::kLearned) weights.position_table = tensor({4, 4});
  weights.blocks = {block};
  return Model::create(config, std::move(weights), zeros);
}

void same_for_any_phrase(Claims& claims) {
  const auto& model = claims.models.sinusoidal;
  if (!model) return;
  std::vector<std::vector<double>> added;  // [4, 4] each
  Encoder encoder(of_width_four(*model), {.threads = 1});
  for (const char* phrase : {"I am a robot", "Tom bit a dog"}) {
    TokenIds ids = ids_of(*model, phrase);
    ids.resize(4);
    Trace trace{Hook::kPosEmbed};
    encoder.encode_ids(ids, {.observer = &trace});
    const std::vector<float>& values = trace.at(Hook::kPosEmbed).values;
    added.emplace_back(values.begin(), values.end());
  }
  const double off = largest_difference(added[0], added[1]);
  claims.add(
      "The table is the same for any phrase of four words with d = 4 and n = 100",
      right(off == 0, largest_difference(added[0], claims.paper(4, 4, 100).values) <= 1e-7), "",
      "what a run adds to \"I am a robot\" and to \"Tom bit a dog\": {} apart; PE(1) = {:.4f}", off,
      list(std::span(added[0]).subspan(4, 4)));
}

void order_is_lost_without_positions(Claims& claims) {
  if (!claims.models.none || !claims.models.sinusoidal) return;
  const Reordered without = reorder(claims.models.none), with = reorder(claims.models.sinusoidal);
  claims.add("Without positions \"Tom bit a dog\" and \"A dog bit Tom\" look the same",
             right(without.states <= 1e-5 && without.pooled <= 1e-6,
                   with.states > 0.05 && with.pooled > 1e-3),
             "for the same ids: a tokenizer may tell \"A\" from \"a\"",
             "none: states move by {:.1e} of their length, 1 − cos of the pooled vectors {:.1e}; "
             "sinusoidal: {:.3f}, {:.3f}",
             without.states, without.pooled, with.states, with.pooled);
}

void residual_connections_carry_positions(Claims& claims) {
  const auto& model = claims.models.sinusoidal;
  if (!model) return;
  Encoder encoder(model, {.threads = 1});
  const auto path = [&](std::vector<ResidualCut> cuts) {
    Trace trace = residual_trace();
    encoder.encode("Tom bit a dog.", {.observer = &trace, .cut_residuals = cuts});
    return direct_path(*model, trace, 0, cuts);
  };
  const std::vector<phasor::DirectPath> whole = path({}), cut = path({{.layer = 0}});
  claims.add("Positions survive through the layers because of the residual connections",
             measured(whole.back().position.norm > 0.01 && cut.back().position.norm == 0),
             "the direct path alone, which the loss hardly needs above layer 1 (docs/finding.md)",
             "length of the position vector's direct path beside the state: {:.2f} at the "
             "embedding, {:.2f} after layer {}; {} with layer 1's cut",
             whole.front().position.norm, whole.back().position.norm, whole.size() - 1,
             cut.back().position.norm);
}

void the_four_by_four_table(Claims& claims) {
  constexpr std::array kPrinted = {0.0,        1.0,         0.0,        1.0,         //
                                   0.84147098, 0.54030231,  0.09983342, 0.99500417,  //
                                   0.90929743, -0.41614684, 0.19866933, 0.98006658,  //
                                   0.14112001, -0.98999250, 0.29552021, 0.95533649};
  constexpr double kHalfADigit = 5.1e-9;  // of 8 decimals
  const Matrix table = claims.paper(4, 4, 100);
  const double off = largest_difference(table.values, kPrinted);
  claims.add("The 4×4 table with n = 100 that is printed", right(off <= kHalfADigit), "",
             "PE(1) = {:.8f}; largest difference {:.1e}", list(table.row(1)), off);

  claims.add("Positions k run over 0 ≤ k < L/2", wrong(off > kHalfADigit),
             "0 ≤ k < L: its own table has four rows for four words",
             "for L = 4, PE(2) = {:.4f} and PE(3) = {:.4f}", list(table.row(2)),
             list(table.row(3)));

  int64_t by_column = 0, by_position = 0;
  for (int64_t i = 0; i < 16; ++i) {
    const int64_t k = i / 4, j = i % 4;
    const double angle = static_cast<double>(k) / (j < 2 ? 1.0 : 10.0);  // n^(2i/d) = 1, 10
    by_column += near(table.values[i], j % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
    by_position += near(table.values[i], k % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-12);
  }
  claims.add("Even positions of the vector correspond to a sine, odd ones to a cosine",
             right(by_column == 16, by_position == 8),
             "columns, from 0; the tutorial also calls the words' places positions",
             "true of {} of 16 entries; if a word's place were meant, of {}", by_column,
             by_position);
}

/// What every sinusoid y obeys is y(x + 1) + y(x − 1) = c·y(x), with c = 2 cos ω: the largest
/// |residue| for the c of least squares.
double off_a_sinusoid(std::span<const double> y) {
  double products = 0, squares = 0, off = 0;
  for (size_t x = 1; x + 1 < y.size(); ++x) {
    products += (y[x + 1] + y[x - 1]) * y[x];
    squares += y[x] * y[x];
  }
  for (size_t x = 1; x + 1 < y.size(); ++x) {
    off = std::max(off, std::abs(y[x + 1] + y[x - 1] - products / squares * y[x]));
  }
  return off;
}

void wavelengths(Claims& claims, std::string text) {
  const Matrix table = claims.paper(2, 512), t2t = claims.table(SinusoidalLayout::kT2T, 2, 512);
  const double shortest = wavelength(table, 0, 1), longest = wavelength(table, 510, 511);
  const double step = 1 / frequency(2, 512), end = kCircle * 10000;
  double uneven = 0;
  for (int64_t c = 2; c < 512; c += 2) {
    const double ratio = wavelength(table, c, c + 1) / wavelength(table, c - 2, c - 1);
    uneven = std::max(uneven, std::abs(ratio - step));
  }
  claims.add(std::move(text),
             measured(uneven <= 1e-9 && near(shortest / kCircle, 1, 1e-9) &&
                      near(longest / kCircle * frequency(510, 512), 1, 1e-9) &&
                      near(wavelength(t2t, 255, 511) / end, 1, 1e-9)),
             "the paper's own sentence; the last is 2πn^((d−2)/d), and tensor2tensor's is 2πn",
             "d = 512: from {:.4f} to {:.1f}, each {:.4f} times the last; 2πn = {:.1f}", shortest,
             longest, step, end);
}

void curves(Claims& claims) {
  const Matrix table = claims.paper(100, 512);
  double off = 0;
  std::vector<double> last, bent;
  for (const int k : {0, 4, 8, 12}) {
    std::vector<double> curve;
    for (int64_t x = 0; x < 100; ++x) {
      const double angle = k / std::pow(10000.0, 2.0 * static_cast<double>(x) / 512);
      curve.push_back(table.at(k, 2 * x));
      off = std::max(off, std::abs(curve.back() - std::sin(angle)));
    }
    last.push_back(curve.back());
    if (k > 0) bent.push_back(off_a_sinusoid(curve));
  }
  claims.add("Figure: the curves sin(k / n^(2x/d)), x = 0 … 99, k = 0, 4, 8, 12, d = 512",
             right(off <= 1e-12), "",
             "columns 0, 2, … 198 of rows k, {:.1e} off; at x = 99: {:.4f}", off, list(last));

  double straight = 0;  // of columns, over positions
  for (int64_t c = 0; c < 512; ++c) {
    std::vector<double> column;
    for (int64_t k = 0; k < 100; ++k) column.push_back(table.at(k, c));
    straight = std::max(straight, off_a_sinusoid(column));
  }
  claims.add(
      "Each position k corresponds to a different sinusoid",
      wrong(std::ranges::max(bent) <= 1e-12, straight <= 1e-12 && std::ranges::min(bent) > 0.005),
      "each column is a sinusoid of k; along a row the frequency falls from column to column",
      "every sinusoid has y(x + 1) + y(x − 1) = c·y(x): the rows k = 4, 8, 12 of that figure "
      "are {:.3f} off, the 512 columns {:.1e}",
      list(bent), straight);
}

void advantages(Claims& claims) {
  const Matrix table = claims.paper(1000, 512), narrow = claims.paper(1000, 4);
  const auto [low, high] = std::ranges::minmax(table.values);
  claims.add("The values are in [−1, 1]",
             right(low >= -1 && high <= 1, near(low, -1, 1e-6) && near(high, 1, 1e-6)), "",
             "1000 × 512: from {:.6f} to {:.6f}", low, high);

  const RowPair wide = nearest_rows(table.values, 512), close = nearest_rows(narrow.values, 4);
  const auto zeros = std::ranges::count(table.row(0), 0.0);
  claims.add("Each position has a unique encoding",
             right(wide.distance > 0 && close.distance > 0,
                   near(wide.distance, 3.714, 5e-4) && wide.offset == 1 && zeros == 256 &&
                       near(close.distance, 0.0724, 5e-5) && close.offset == 622),
             fmt::format("rows are unique, single entries are not: PE(0) has {} zeros", zeros),
             "the nearest two of 1000 rows: {:.3f} apart, at offset {} (d = 512); {:.4f}, at "
             "offset {} (d = 4)",
             wide.distance, wide.offset, close.distance, close.offset);

  const auto first = std::span(table.values).first(100 * 512);
  const double toeplitz = toeplitz_r2(first, 512);
  const int64_t rise = first_rise(first, 512).value_or(0);
  claims.add("The similarity of positions can be measured, and so relative positions encoded",
             right(near(toeplitz, 1, 1e-12), rise == 44),
             "from there on it rises and falls: alike does not mean near",
             "⟨PE(p), PE(q)⟩ depends on p − q alone (R² = {:.12f}) and falls up to offset {}",
             toeplitz, rise - 1);
}

void machine_learning_mastery(Claims& claims) {
  the_four_by_four_table(claims);
  same_for_any_phrase(claims);
  curves(claims);
  wavelengths(claims, "The wavelengths form a geometric progression from 2π to 2πn");
  advantages(claims);
}

constexpr std::string_view kLonger =
    "a model reads rows beyond its training worse: infer compare sinusoidal learned --only longer "
    "-i FILE measures its loss there";

void geeks_for_geeks(Claims& claims) {
  const std::array first = {0.841471, 0.540302, 0.01, 0.99995};  // as printed
  const std::array sixth = {-0.279415, 0.96017, 0.059964, 0.998201};
  const Matrix words = claims.paper(6, 4, 10000, 1), code = claims.paper(1, 4);
  claims.add(
      "\"The cat sat on the mat\", d = 4: PE(1) = 0.841471, 0.540302, 0.01, 0.99995, … PE(6) = "
      "−0.279415, 0.96017, 0.059964, 0.998201",
      right(largest_difference(words.row(0), first) <= 5.1e-7 &&
                largest_difference(words.row(5), sixth) <= 5.1e-7,
            code.values == std::vector<double>{0, 1, 0, 1}),
      fmt::format("counting from 1; its code counts from 0 and gives the first word {:.0f}",
                  list(code.values)),
      "PE(1) = {:.6f}; PE(6) = {:.6f}", list(words.row(0)), list(words.row(5)));

  const Matrix table = claims.paper(50, 512);
  const double moved = largest_difference(claims.paper(10, 512).values, table.values);
  claims.add("Better generalization: it allows sequences of different lengths",
             measured(moved == 0), std::string(kLonger),
             "the table allows them: that of 10 rows and the first 10 of 50 differ by {}", moved);
}

void first_rows(Claims& claims) {
  const Matrix table = claims.paper(128, 512);
  int64_t alternating = 0;
  for (int64_t c = 0; c < 512; ++c) alternating += table.at(0, c) == static_cast<double>(c % 2);
  claims.add("d = 512: PE(0) = 0, 1, 0, 1, …, 0, 1", right(alternating == 512), "",
             "{} of 512 columns", alternating);

  std::vector<double> row;
  for (const int64_t c : {0, 1, 2, 3, 510, 511}) {
    row.push_back(std::trunc(table.at(1, c) * 1e4) / 1e4);
  }
  const std::array printed = {0.8414, 0.5403, 0.8218, 0.5696, 0.0001, 0.9999};
  claims.add("d = 512: PE(1) = 0.8414, 0.5403, 0.8218, 0.5696, …, 0.0001, 0.9999",
             right(largest_difference(row, printed) <= 1e-9),
             "truncated after four decimals, as the text says",
             "columns 0 to 3, 510 and 511: {:.4f}", list(row));
}

void the_clock(Claims& claims) {
  const Matrix table = claims.paper(128, 512);
  double off = 0, fastest = 0, slowest = kCircle;
  int64_t clockwise = 0, slower = 0;
  for (int64_t hand = 0; hand < 256; ++hand) {
    const auto x = [&](int64_t p) { return table.at(p, 2 * hand); };      // sine to the right,
    const auto y = [&](int64_t p) { return table.at(p, 2 * hand + 1); };  // cosine up
    for (int64_t p = 0; p < 128; ++p) off = std::max(off, std::abs(std::hypot(x(p), y(p)) - 1));
    for (int64_t p = 1; p < 128; ++p) clockwise += x(p - 1) * y(p) - y(p - 1) * x(p) < 0;
    const double speed = kCircle / wavelength(table, 2 * hand, 2 * hand + 1);
    slower += speed < slowest;
    fastest = std::max(fastest, speed);
    slowest = std::min(slowest, speed);
  }
  claims.add(
      "Figure: a clock of 256 hands on the unit circle, turning clockwise, each slower than the "
      "one before",
      right(off <= 1e-12 && clockwise == 256 * 127 && slower == 256,
            near(fastest, 1, 1e-12) && near(slowest, frequency(510, 512), 1e-12)),
      "",
      "lengths {:.1e} off 1; {} of {} steps clockwise; {} hands, from {:.4f} to {:.6f} radians a "
      "position",
      off, clockwise, 256 * 127, slower, fastest, slowest);
}

void linearity(Claims& claims) {
  const Matrix table = claims.paper(128, 512);
  std::vector<double> off;
  for (const int64_t k : {1, 10, 100}) {
    const Matrix r{rotation(SinusoidalLayout::kPaper, 512, static_cast<double>(k)), 512, 512};
    double largest = 0;
    for (const int64_t p : {0, 1, 9, 27}) {
      std::vector<double> moved;
      for (int64_t c = 0; c < 512; ++c) {
        const auto row = r.row(c);
        moved.push_back(std::inner_product(row.begin(), row.end(), table.row(p).begin(), 0.0));
      }
      largest = std::max(largest, largest_difference(moved, table.row(p + k)));
    }
    off.push_back(largest);
  }
  claims.add("PE(pos + k) is a linear function of PE(pos)", right(std::ranges::max(off) <= 1e-12),
             "R_k turns each pair of columns by ωk, whatever the position",
             "largest |R_k PE(p) − PE(p + k)| for k = 1, 10, 100: {:.1e}", list(off));
}

void transformers_positional_encoding(Claims& claims) {
  order_is_lost_without_positions(claims);
  first_rows(claims);
  wavelengths(claims, "The wavelengths form a geometric progression from 2π to 10000 · 2π");
  the_clock(claims);
  linearity(claims);
  residual_connections_carry_positions(claims);
}

constexpr int64_t kRows = 250, kWidth = 1024;  // of the figures of the next: positions 1 to 250

/// The steps by which a position gets nearer to position 1 than the one before: how many, and the
/// first position that does; `apart`: [kRows] cosine distances from position 1.
std::pair<int64_t, int64_t> falling_steps(std::span<const double> apart) {
  int64_t falling = 0, first = 1;
  for (int64_t q = kRows - 1; q >= 1; --q) {  // row q is position q + 1
    if (apart[q] >= apart[q - 1]) continue;
    ++falling;
    first = q + 1;
  }
  return {falling, first};
}

void criteria(Claims& claims, const Matrix& table, const Matrix& apart) {
  const double by_length =
      largest_difference(claims.paper(30, kWidth, 10000, 1).values, table.values);
  const double by_run =
      largest_difference(claims.paper(kRows, kWidth, 10000, 1).values, table.values);
  const auto [low, high] = std::ranges::minmax(table.values);
  const int64_t falling = falling_steps(apart.row(0)).first;
  const bool ordered = falling == 0, bounded = low >= 0 && high <= 1;
  const bool constant = by_length == 0, deterministic = by_run == 0;
  claims.add(
      "The sinusoid fulfils all four criteria: its distances grow with those of the positions, it "
      "is bounded between 0 and 1, independent of the length, and deterministic",
      wrong(ordered && bounded && constant && deterministic,
            !ordered && !bounded && constant && deterministic),
      "only the last two; it is bounded, but between −1 and 1, and orders near positions only",
      "d = 1024, positions 1 to 250: {} of {} distances fall; values from {:.6f} to {:.6f}; 30 or "
      "250 rows: {} apart; computed twice: {}",
      falling, kRows - 1, low, high, by_length, by_run);
}

void waves(Claims& claims, const Matrix& table) {
  const double early = wavelength(table, 0, 1), late = wavelength(table, 1022, 1023);
  claims.add("Early dimensions have low frequencies, late ones high",
             wrong(early > late, near(early / kCircle, 1, 1e-9) &&
                                     near(late / kCircle * frequency(1022, 1024), 1, 1e-9)),
             "the other way round", "wavelength of the first pair {:.4f}, of the last {:.1f}",
             early, late);

  std::vector<double> sines, cosines;
  for (size_t i = 0; i < table.values.size(); ++i) {
    (i % 2 == 0 ? sines : cosines).push_back(table.values[i]);
  }
  const double of_sines = toeplitz_r2(sines, kWidth / 2);
  const double of_cosines = toeplitz_r2(cosines, kWidth / 2);
  const double of_both = toeplitz_r2(table.values, kWidth);
  claims.add("Sines alone or cosines alone are worse (d = 1024, positions 1 to 250)",
             right(of_sines < 0.999 && of_cosines < 0.999 && near(of_both, 1, 1e-12)),
             "only together do the products of rows depend on the distance alone",
             "Toeplitz R² of the sines {:.4f}, of the cosines {:.4f}, of both {:.12f}", of_sines,
             of_cosines, of_both);
}

/// `apart`: cosine distances of every two positions.
void distances(Claims& claims, const Matrix& apart) {
  struct Printed {
    int64_t p, q;
    double value;
  };
  for (const auto& [p, q, printed] : {Printed{1, 2, 0.026488616022189992},
                                      {1, 3, 0.09339161307513},
                                      {1, 30, 0.4323030365719962},
                                      {30, 31, 0.02648861602218988}}) {
    const double distance = apart.at(p - 1, q - 1);
    claims.add(
        fmt::format("d = 1024: the cosine distance of positions {} and {} is {}", p, q, printed),
        right(near(distance, printed, 1e-12)), "", "{:.15f}", distance);
  }

  const auto first = apart.row(0);
  const auto [falling, from] = falling_steps(first);
  claims.add("The distances from position 1 increase monotonically up to position 250",
             wrong(falling == 0, falling == 43 && from == 70),
             "only up to where the dot product rises again, offset 69",
             "{} of {} steps fall; the first: {:.6f} at {}, {:.6f} at {}", falling, kRows - 1,
             first[std::max<int64_t>(from, 2) - 2], from - 1, first[from - 1], from);

  double off = 0, own = 0;
  for (int64_t p = 0; p < kRows; ++p) {
    own = std::max(own, std::abs(apart.at(p, p)));
    for (int64_t q = 0; q < kRows; ++q) {
      off = std::max(off, std::abs(apart.at(p, q) - first[std::abs(p - q)]));
    }
  }
  const double farthest = std::max(0.0, std::ranges::max(apart.values));
  claims.add(
      "Figure: the 250×250 matrix of cosine distances",
      right(own <= 1e-12 && off <= 1e-12 && farthest > 0.4323), "",
      "0 to {:.6f}; {:.1e} off zero on the diagonal and {:.1e} off one value for each offset",
      farthest, own, off);
}

void the_map(Claims& claims, const Matrix& table) {
  const auto in_plane =
      row_matrix(principal_plane(table.values, kWidth).points, 2, RowMeasure::kEuclidean);
  const double across = std::ranges::max(in_plane);
  double step = 0;
  int64_t beside = 0;  // positions whose nearest in the plane is a neighbour
  for (int64_t p = 0; p < kRows; ++p) {
    const auto to = std::span(in_plane).subspan(p * kRows, kRows);
    int64_t nearest = p > 0 ? 0 : 1;
    for (int64_t q = 0; q < kRows; ++q) {
      if (q != p && to[q] < to[nearest]) nearest = q;
    }
    beside += std::abs(nearest - p) == 1;
    if (p + 1 < kRows) step = std::max(step, to[p + 1]);
  }
  claims.add(
      "Figure: in a 2-D map the positions fall in a continuous line",
      right(beside == kRows && step < 0.05 * across),
      "a map by PCA, which is the same on every run; the text's is by UMAP",
      "d = 1024, positions 1 to 250, in the plane of the two principal axes: the longest step "
      "is {:.1f} % of the map; the nearest is a neighbour for {} of {}",
      100 * step / across, beside, kRows);
}

void understanding_positional_embeddings(Claims& claims) {
  const Matrix table = claims.paper(kRows, kWidth, 10000, 1);
  const Matrix apart{row_matrix(table.values, kWidth, RowMeasure::kCosineDistance), kRows, kRows};
  criteria(claims, table, apart);
  waves(claims, table);
  distances(claims, apart);
  the_map(claims, table);
}

void refused_width_and_printed_table(Claims& claims) {
  const double shortest = wavelength(claims.paper(2, 512), 0, 1);
  claims.add("The wavelengths form a geometric progression from π to 2πT",
             wrong(near(shortest, kCircle / 2, 1e-6), near(shortest, kCircle, 1e-9)),
             "from 2π to 2πT^((d−2)/d)", "the shortest is {:.4f}", shortest);

  std::string refusal;
  try {
    claims.table(SinusoidalLayout::kOpenNmt, 1, 5);
  } catch (const InvalidArgument& error) {
    refusal = error.what();
  }
  const Matrix odd = claims.paper(2, 5);
  std::vector<double> formula;
  for (int64_t c = 0; c < 5; ++c) {
    const double angle = frequency(static_cast<double>(c / 2 * 2), 5);
    formula.push_back(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
  const double off = largest_difference(odd.row(1), formula);
  claims.add("Only even widths can be encoded: an odd one is an error",
             wrong(off > 1e-12, !refusal.empty()),
             "the formula has a value for every column; the last sine lacks its cosine, so layouts "
             "such as opennmt refuse odd widths",
             "d = 5: PE(1) = {:.4f}; opennmt: \"{}\"", list(odd.row(1)),
             refusal.empty() ? "nothing is refused" : refusal);

  constexpr const char* kPrinted =  // by torch
      "0.0000, 1.0000, 0.0000, 1.0000, 0.8415, 0.5403, 0.0100, 0.9999, 0.9093, -0.4161, 0.0200, "
      "0.9998, 0.1411, -0.9900, 0.0300, 0.9996, -0.7568, -0.6536, 0.0400, 0.9992, -0.9589, 0.2837, "
      "0.0500, 0.9988, -0.2794, 0.9602, 0.0600, 0.9982, 0.6570, 0.7539, 0.0699, 0.9976, 0.9894, "
      "-0.1455, 0.0799, 0.9968, 0.4121, -0.9111, 0.0899, 0.9960";
  const Matrix table = claims.paper(10, 4);
  const std::vector<float> rounded(table.values.begin(), table.values.end());
  claims.add("The 10×4 table that is printed",
             right(fmt::format("{:.4f}", fmt::join(rounded, ", ")) == kPrinted), "",
             "in float32, row 1 = {:.4f}, row 9 = {:.4f}",
             fmt::join(std::span(rounded).subspan(4, 4), ", "),
             fmt::join(std::span(rounded).subspan(36), ", "));
  const double last = table.at(1, 3), in_float32 = rounded[7];
  claims.add(
      "The last entry of its row 1 is 0.9999",
      right(fmt::format("{:.4f}", in_float32) == "0.9999", fmt::format("{:.4f}", last) == "1.0000"),
      "in float32 only", "{:.4f} in float32 ({:.8f}), {:.4f} in double ({:.12f})", in_float32,
      in_float32, last, last);
}

void extrapolation(Claims& claims) {
  constexpr int64_t kTrained = 128;
  const Matrix table = claims.paper(2 * kTrained, 128);
  int64_t beyond = 0;  // columns that leave the range they have in the first half
  for (int64_t c = 0; c < 128; ++c) {
    double low = 1, high = -1, farthest = 0;
    for (int64_t p = 0; p < 2 * kTrained; ++p) {
      const double value = table.at(p, c);
      if (p >= kTrained) farthest = std::max({farthest, low - value, value - high});
      if (p >= kTrained) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
    beyond += farthest > 0.01;
  }
  claims.add(
      "It has an ability to extrapolate to very long sequences not encountered in training",
      measured(beyond == 64), std::string(kLonger),
      "d = 128: the table has rows 128 to 255, and in {} of 128 columns they have values that "
      "rows 0 to 127 have not",
      beyond);
}

void positional_encoding_pytorch(Claims& claims) {
  refused_width_and_printed_table(claims);
  extrapolation(claims);
  // x + pe[:, :, : x.size(2)] for x of 5 tokens and width 20, and a buffer of 10 rows; and for x of
  // width 4.
  const Matrix buffer = claims.paper(10, 20), narrow = claims.paper(10, 4);
  const int64_t sliced = std::ssize(buffer.values) / 20;
  double off = 0, expected = 0;  // over all rows; the latter by the formula
  for (int64_t p = 0; p < 10; ++p) {
    off = std::max(off, largest_difference(buffer.row(p).first(4), narrow.row(p)));
    const auto position = static_cast<double>(p);
    const double wide = position * frequency(2, 20), slow = position * frequency(2, 4);
    expected = std::max({expected, std::abs(std::sin(wide) - std::sin(slow)),
                         std::abs(std::cos(wide) - std::cos(slow))});
  }
  claims.add(
      "The layer's pe[:, :, : x.size(2)] makes it suitable for varying sequence lengths",
      wrong(sliced == 5 || off == 0, sliced == 10 && near(off, expected, 1e-12)),
      "it slices features; the length is the second axis, pe[:, : x.size(1)]",
      "for 5 tokens it keeps all {} rows; for width 4 it is up to {:.4f} off the table of width 4",
      sliced, off);
}

}  // namespace
}  // namespace claims

std::vector<Claim> tutorial_claims(const ClaimModels& models, const TableSource& table) {
  using namespace claims;
  Claims all(models, table);
  all.begin("A Gentle Introduction to Positional Encoding (Machine Learning Mastery)");
  machine_learning_mastery(all);
  all.begin("Positional Encoding in Transformers (GeeksforGeeks)");
  geeks_for_geeks(all);
  all.begin("Transformer's Positional Encoding");
  transformers_positional_encoding(all);
  all.begin("Understanding positional embeddings in transformer models");
  understanding_positional_embeddings(all);
  all.begin("Positional Encoding (with PyTorch)");
  positional_encoding_pytorch(all);
  return all.take();
}

}  // namespace infer
