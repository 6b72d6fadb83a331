// What claims are made with: tables, their differences and wavelengths, and the sources of claims.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <memory>
#include <numbers>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/experiment/claims.h"
#include "infer/matrix.h"

namespace infer::claims {

using namespace phasor;

inline constexpr double kCircle = 2 * std::numbers::pi;

/// Makes tables; throws InvalidArgument where the source gives another number of values.
class Tables {
 public:
  explicit Tables(TableSource source) : source_(std::move(source)) {}
  Matrix make(SinusoidalLayout layout, int64_t rows, int64_t d_model, double base = 10000,
              int64_t first_position = 0) const;
  Matrix paper(int64_t rows, int64_t d_model, double base = 10000,
               int64_t first_position = 0) const {
    return make(SinusoidalLayout::kPaper, rows, d_model, base, first_position);
  }

 private:
  TableSource source_;
};

using Claims = std::vector<Claim>;

/// max |a − b|; infinite where there are NaN or the sizes differ.
double largest_difference(std::span<const double> a, std::span<const double> b);
inline bool near(double a, double b, double tolerance) {
  return largest_difference({&a, 1}, {&b, 1}) <= tolerance;
}

/// Wavelength of the pair of columns (sine, cosine), from how far it turns between rows 0 and 1.
double wavelength(const Matrix& table, int64_t sine, int64_t cosine);

/// The sum of a paper table's entries by Dirichlet's kernel,
///
///     Σ_p sin ωp + cos ωp = (sin ω(T−1)/2 + cos ω(T−1)/2) · sin(ωT/2) / sin(ω/2).
double sum_of_entries(int64_t rows, int64_t d_model, double base = 10000);

/// The claims of each source.
Claims machine_learning_mastery(const Tables& tables, const ClaimModels& models);
Claims geeks_for_geeks(const Tables& tables, const ClaimModels& models);
Claims transformers_positional_encoding(const Tables& tables, const ClaimModels& models);
Claims understanding_positional_embeddings(const Tables& tables, const ClaimModels& models);
Claims positional_encoding_pytorch(const Tables& tables, const ClaimModels& models);

/// Claims that take a run of a model to decide.
Claim same_for_any_phrase(std::shared_ptr<const Model> sinusoidal);
Claim order_is_lost_without_positions(std::shared_ptr<const Model> none,
                                      std::shared_ptr<const Model> sinusoidal);
Claim residual_connections_carry_positions(std::shared_ptr<const Model> sinusoidal);
Claim learned_is_as_good_as_sinusoidal(const ClaimModels& models);

}  // namespace infer::claims
