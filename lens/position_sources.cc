// The position component of the parts of a residual stream, from the orders of one text.

#include <cmath>
#include <random>

#include "lens/batched_states.h"
#include "lens/latin_squares.h"
#include "lens/matrix.h"
#include "phasor/lens/residual.h"

namespace phasor {
using namespace internal;

namespace {

/// Sums over Latin squares for one hidden state.
struct SourceSums {
  std::vector<SourceShare> sources;
  std::vector<Matrix> square;    // Σ over the runs of this square of each part, [n, C]
  std::vector<Matrix> all;       // Σ_s of each part's position component x^s
  std::vector<double> products;  // Σ_s ⟨x^s, pos^s⟩
  double squares = 0;            // Σ ‖h‖² over all states, for the size of rounding

  void add(std::span<const ResidualPart> parts, const LatinSquares& places);
  void end_square(const LatinSquares& places);
  std::vector<SourceShare> result() const;
};

void SourceSums::add(std::span<const ResidualPart> parts, const LatinSquares& places) {
  const int64_t d_model = std::ssize(parts[0].values) / places.num_tokens();
  if (sources.empty()) {
    for (const ResidualPart& part : parts) sources.push_back({part.source, part.layer});
    square.assign(parts.size(), Matrix::Zero(places.n(), d_model));
    all = square;
    products.resize(parts.size());
  }
  Matrix state = Matrix::Zero(places.n(), d_model);
  for (size_t k = 0; k < parts.size(); ++k) {
    for (int64_t p = 0; p < places.n(); ++p) {
      const Eigen::Map<const Eigen::RowVectorXd> row(&parts[k].values[places.place(p) * d_model],
                                                     d_model);
      square[k].row(p) += row;
      state.row(p) += row;
    }
  }
  squares += state.squaredNorm();
}

void SourceSums::end_square(const LatinSquares& places) {
  Matrix sum = Matrix::Zero(square[0].rows(), square[0].cols());
  for (Matrix& part : square) {
    part /= static_cast<double>(places.n());
    part.rowwise() -= part.colwise().mean().eval();
    sum += part;
  }
  for (size_t k = 0; k < square.size(); ++k) {
    products[k] += square[k].cwiseProduct(sum).sum();
    all[k] += square[k];
    square[k].setZero();
  }
}

std::vector<SourceShare> SourceSums::result() const {
  std::vector<SourceShare> result = sources;
  Matrix sum = Matrix::Zero(all[0].rows(), all[0].cols());
  double product = 0;  // Σ_s ‖pos^s‖²
  for (size_t k = 0; k < all.size(); ++k) {
    sum += all[k];
    product += products[k];
  }
  // Each of a square's n rows is the mean of n states.
  const auto n = static_cast<double>(sum.rows());
  const double total = sum.squaredNorm() - product;
  if (product <= kStateRounding * squares / n || total <= 0) {
    for (SourceShare& part : result) part.share = std::nan("");
    return result;
  }
  for (size_t k = 0; k < all.size(); ++k)
    result[k].share = (all[k].cwiseProduct(sum).sum() - products[k]) / total;
  return result;
}

}  // namespace

std::vector<std::vector<SourceShare>> position_sources(
    Encoder& encoder, std::span<const int32_t> token_ids, std::span<const int64_t> movable,
    const RunOptions& options, int64_t num_squares, uint64_t seed, const Progress& progress) {
  std::mt19937_64 random(seed);
  const LatinSquares squares(token_ids, movable, num_squares, random);
  const Model& model = encoder.model();
  std::vector<SourceSums> sums(model.config().num_layers + 1);
  const auto visit = [&](const Trace& trace, int64_t first, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto add = [&](int64_t l, std::span<const ResidualPart> parts) {
        sums[l].add(parts, squares);
      };
      for_each_residual_state(model, trace, i, add, options.cut_residuals);
      if ((first + i + 1) % squares.n() != 0) continue;
      for (SourceSums& each : sums) each.end_square(squares);
    }
  };
  const auto ids = [&](int64_t run) { return squares.ids(run); };
  for_each_batch(encoder, squares.num_runs(), ids, options, progress, residual_trace(), visit);
  std::vector<std::vector<SourceShare>> results;
  for (const SourceSums& each : sums) results.push_back(each.result());
  return results;
}

}  // namespace phasor
