// What claims are made with.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/experiment/claims.h"
#include "infer/matrix.h"

namespace infer::claims {

using namespace phasor;

struct Verdict {
  std::optional<bool> holds;
  bool as_expected;
};
/// Of a claim that is right by theory, of one that is wrong, and of a matter of how much;
/// `numbers`: whether what else was computed is what theory gives.
inline Verdict right(bool holds, bool numbers = true) { return {holds, holds && numbers}; }
inline Verdict wrong(bool holds, bool numbers = true) { return {holds, !holds && numbers}; }
inline Verdict measured(bool numbers) { return {std::nullopt, numbers}; }

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
               int64_t first_position = 0) const;
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

/// max |a − b|; infinite where there are NaN or the sizes differ.
double largest_difference(std::span<const double> a, std::span<const double> b);

/// Claims that take a run of a model to decide; nothing is added where there is no model.
void same_for_any_phrase(Claims& claims);
void order_is_lost_without_positions(Claims& claims);
void residual_connections_carry_positions(Claims& claims);
void learned_is_as_good_as_sinusoidal(Claims& claims);

}  // namespace infer::claims
