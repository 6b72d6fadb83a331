// "Transformer's Positional Encoding: How Does It Know Word Positions Without Recurrence?"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "infer/experiment/claim_list.h"
#include "phasor/lens/table.h"

namespace infer::claims {
namespace {

double truncated(double value) { return std::trunc(value * 1e4) / 1e4; }

void add_the_first_rows(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(2, 512);
  int64_t alternating = 0;
  for (int64_t c = 0; c < 512; ++c) alternating += table.at(0, c) == static_cast<double>(c % 2);
  list.push_back({.text = "d = 512: PE(0) = 0, 1, 0, 1, …, 0, 1",
                  .computed = fmt::format("{} of 512 columns", alternating),
                  .holds = alternating == 512});

  std::vector<double> row;
  for (const int64_t c : {0, 1, 2, 3, 510, 511}) row.push_back(truncated(table.at(1, c)));
  const std::array printed = {0.8414, 0.5403, 0.8218, 0.5696, 0.0001, 0.9999};
  list.push_back(
      {.text = "d = 512: PE(1) = 0.8414, 0.5403, 0.8218, 0.5696, …, 0.0001, 0.9999",
       .computed = fmt::format("columns 0 to 3, 510 and 511: {:.4f}", fmt::join(row, ", ")),
       .holds = largest_difference(row, printed) <= 1e-9,
       .reason = "truncated after four decimals, as the text says"});
}

void add_the_exp_form(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(128, 512);
  std::vector<double> other(table.values.size());
  for (int64_t p = 0; p < 128; ++p) {
    for (int64_t c = 0; c < 512; c += 2) {
      const double divisor = std::exp(static_cast<double>(c) * (-std::log(10000.0) / 512));
      other[p * 512 + c] = std::sin(static_cast<double>(p) * divisor);
      other[p * 512 + c + 1] = std::cos(static_cast<double>(p) * divisor);
    }
  }
  const double difference = largest_difference(table.values, other);
  list.push_back({.text = "The loop and the exp/log form give the same values",
                  .computed = fmt::format("128 × 512: largest difference {:.1e}", difference),
                  .holds = difference <= 1e-12,
                  .reason = "but for rounding"});
}

void add_the_images(const Tables& tables, Claims& list) {
  for (const auto& [rows, d_model] : {std::array<int64_t, 2>{128, 512}, {16, 32}}) {
    const Matrix table = tables.paper(rows, d_model);
    const double sum = std::accumulate(table.values.begin(), table.values.end(), 0.0);
    const bool right = near(sum, sum_of_entries(rows, d_model), 1e-8);
    list.push_back(
        {.text = fmt::format("Figure: the {}×{} table", rows, d_model),
         .computed = fmt::format("{} × {}, sum of the entries {:.9f}", rows, d_model, sum),
         .holds = right});
  }
}

void add_the_clock(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(128, 512);
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
  list.push_back(
      {.text = "Figure: a clock of 256 hands on the unit circle, turning clockwise, each slower "
               "than the one before",
       .computed = fmt::format("lengths {:.1e} off 1; {} of {} steps clockwise; {} hands, from "
                               "{:.4f} to {:.6f} radians a position",
                               off, clockwise, 256 * 127, slower, fastest, slowest),
       .holds = off <= 1e-12 && clockwise == 256 * 127 && slower == 256,
       .numbers =
           near(fastest, 1, 1e-12) && near(slowest, std::pow(10000.0, -510.0 / 512), 1e-12)});

  const std::array word = {0.3, -1.7};
  double off_circle = 0, apart = 4;
  for (int64_t p = 0; p < 128; ++p) {
    const std::array point = {word[0] + table.at(p, 0), word[1] + table.at(p, 1)};
    off_circle =
        std::max(off_circle, std::abs(std::hypot(point[0] - word[0], point[1] - word[1]) - 1));
    for (int64_t q = 0; q < p; ++q) {
      apart = std::min(
          apart, std::hypot(table.at(p, 0) - table.at(q, 0), table.at(p, 1) - table.at(q, 1)));
    }
  }
  list.push_back(
      {.text = "Figure: points of one word at different positions lie on a unit circle round its "
               "embedding's first two dimensions",
       .computed = fmt::format("128 positions: {:.1e} off the circle, no two nearer than {:.4f}",
                               off_circle, apart),
       .holds = off_circle <= 1e-12 && apart > 0});
}

void add_linearity(const Tables& tables, Claims& list) {
  const Matrix table = tables.paper(128, 512);
  std::vector<double> off;
  for (const int64_t k : {1, 10, 100}) {
    const std::vector<double> r =
        rotation(SinusoidalLayout::kPaper, 512, static_cast<double>(k));  // [512, 512]
    double largest = 0;
    for (const int64_t p : {0, 1, 9, 27}) {
      std::vector<double> moved(512);
      for (int64_t c = 0; c < 512; ++c) {
        moved[c] = std::inner_product(&r[c * 512], &r[c * 512] + 512, table.row(p).begin(), 0.0);
      }
      largest = std::max(largest, largest_difference(moved, table.row(p + k)));
    }
    off.push_back(largest);
  }
  list.push_back(
      {.text = "PE(pos + k) is a linear function of PE(pos)",
       .computed = fmt::format("largest |R_k PE(p) − PE(p + k)| for k = 1, 10, 100: {:.1e}",
                               fmt::join(off, ", ")),
       .holds = std::ranges::max(off) <= 1e-12,
       .reason = "R_k turns each pair of columns by ωk, whatever the position"});
}

}  // namespace

Claims transformers_positional_encoding(const Tables& tables, const ClaimModels& models) {
  Claims list;
  if (models.none && models.sinusoidal) {
    list.push_back(order_is_lost_without_positions(models.none, models.sinusoidal));
  }
  add_the_first_rows(tables, list);
  add_the_exp_form(tables, list);
  add_the_images(tables, list);
  add_the_clock(tables, list);
  add_linearity(tables, list);
  if (models.sinusoidal && models.learned && models.none) {
    list.push_back(learned_is_as_good_as_sinusoidal(models));
  }
  if (models.sinusoidal) list.push_back(residual_connections_carry_positions(models.sinusoidal));
  return list;
}

}  // namespace infer::claims
