// Every claim in order, and what their numbers are computed with.

#include <algorithm>
#include <cmath>
#include <limits>

#include "infer/experiment/claim_list.h"
#include "phasor/errors.h"

namespace infer {
namespace claims {

Matrix Tables::make(SinusoidalLayout layout, int64_t rows, int64_t d_model, double base,
                    int64_t first_position) const {
  Matrix table{source_(layout, rows, d_model, base, first_position), rows, d_model};
  if (std::ssize(table.values) != rows * d_model) {
    throw InvalidArgument(fmt::format("a table of {} rows and width {} cannot have {} values", rows,
                                      d_model, table.values.size()));
  }
  return table;
}

double largest_difference(std::span<const double> a, std::span<const double> b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinite;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    largest = std::isnan(difference) ? kInfinite : std::max(largest, difference);
  }
  return largest;
}

double wavelength(const Matrix& table, int64_t sine, int64_t cosine) {
  const double before = std::atan2(table.at(0, sine), table.at(0, cosine));
  return kCircle / (std::atan2(table.at(1, sine), table.at(1, cosine)) - before);
}

double sum_of_entries(int64_t rows, int64_t d_model, double base) {
  const auto length = static_cast<double>(rows);
  double sum = 0;
  for (int64_t i = 0; i < d_model / 2; ++i) {
    const double half =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(d_model)) / 2;
    sum += (std::sin(half * (length - 1)) + std::cos(half * (length - 1))) *
           std::sin(half * length) / std::sin(half);
  }
  return sum;
}

}  // namespace claims

std::vector<Claim> tutorial_claims(const ClaimModels& models, const TableSource& table) {
  using namespace claims;
  constexpr std::pair<const char*, Claims (*)(const Tables&, const ClaimModels&)> kSources[] = {
      {"A Gentle Introduction to Positional Encoding (Machine Learning Mastery)",
       machine_learning_mastery},
      {"Positional Encoding in Transformers (GeeksforGeeks)", geeks_for_geeks},
      {"Transformer's Positional Encoding", transformers_positional_encoding},
      {"Understanding positional embeddings in transformer models",
       understanding_positional_embeddings},
      {"Positional Encoding (with PyTorch)", positional_encoding_pytorch}};
  std::vector<Claim> all;
  for (const auto& [source, claims_of] : kSources) {
    for (Claim& claim : claims_of(Tables(table), models)) {
      claim.source = source;
      all.push_back(std::move(claim));
    }
  }
  return all;
}

}  // namespace infer
