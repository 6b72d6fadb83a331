// The tables of a comparison that have one number a model: position vectors and masked tokens.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "infer/render/comparison_tables.h"

namespace infer {
namespace {

constexpr int kNumberWidth = 7;
constexpr int kAccuracyBarWidth = 10;
constexpr int kLossBarWidth = 8;

/// A row about an answer that a side may not have.
template <typename T>
void row_of(SideBySide& page, const std::string& label,
            const std::array<const std::optional<T>*, 2>& answers,
            const std::function<std::string(const T&)>& make) {
  page.both(label, [&](size_t side) {
    return *answers[side] ? make(**answers[side]) : pad_left(kNoAnswer, kNumberWidth);
  });
}

void different_tokens(const Comparison& comparison, SideBySide& page) {
  if (same_tokens(comparison.reports[0], comparison.reports[1])) return;
  page.line("  The two tokenizers make different tokens: these numbers cannot be compared.");
}

/// One length: what each side's positions do with it, policy under policy.
void length_rows(const Comparison& comparison, SideBySide& page, double factor, int64_t tokens,
                 double highest) {
  std::array<std::vector<std::string>, 2> cells;
  for (const size_t side : {0, 1}) {
    for (const LengthScore& length : comparison.reports[side].lengths) {
      if (length.factor != factor || length.length != tokens) continue;
      const std::string goes_on = factor > 1 ? "goes on" : "";
      const std::string how = length.overflow ? std::string(to_string(*length.overflow)) : goes_on;
      const double loss = length.score.loss().mean;
      cells[side].push_back(fmt::format(
          "{:>7.3f}  {} {}", loss,
          pad_right(bar(highest > 0 ? loss / highest : 0, kLossBarWidth), kLossBarWidth), how));
    }
  }
  const size_t rows = std::max(cells[0].size(), cells[1].size());
  for (std::vector<std::string>& column : cells) column.resize(rows);
  for (size_t r = 0; r < rows; ++r) {
    page.row(r == 0 ? fmt::format("{}, {}×", tokens, factor) : "", cells[0][r], cells[1][r]);
  }
}

}  // namespace

std::optional<Estimate> loss_difference(const Comparison& comparison) {
  const std::optional<MaskedScore>& a = comparison.reports[0].masked;
  const std::optional<MaskedScore>& b = comparison.reports[1].masked;
  if (!a || !b || !same_tokens(comparison.reports[0], comparison.reports[1])) return std::nullopt;
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(a->losses.size(), b->losses.size()); ++i) {
    differences.push_back(b->losses[i] - a->losses[i]);
  }
  return mean_of(differences);
}

void position_table(const Comparison& comparison, SideBySide& page) {
  const auto row = [&](const std::string& label,
                       const std::function<std::string(const TableReport&)>& make) {
    row_of<TableReport>(page, label, {&comparison.reports[0].table, &comparison.reports[1].table},
                        make);
  };
  row("rows", [](const TableReport& table) { return fmt::format("{:>7}", table.rows); });
  row("mean length", [](const TableReport& table) { return fmt::format("{:>7.2f}", table.norm); });
  const auto measure = [&](const std::string& label, double TableMeasures::*number) {
    row(label, [&](const TableReport& table) {
      return fmt::format("{:>7.4f}  random: {:.4f}", table.measures.*number, table.random.*number);
    });
  };
  measure("Toeplitz R²", &TableMeasures::toeplitz_r2);
  measure("locality", &TableMeasures::locality);
  measure("symmetry", &TableMeasures::symmetry);
}

void masked_table(const Comparison& comparison, SideBySide& page) {
  const auto& a = comparison.reports[0].masked;
  const auto& b = comparison.reports[1].masked;
  const auto row = [&](const std::string& label,
                       const std::function<std::string(const MaskedScore&)>& make) {
    row_of<MaskedScore>(page, label, {&a, &b}, make);
  };
  row("tokens", [](const MaskedScore& score) { return fmt::format("{:>7}", score.tokens); });
  row("masks", [](const MaskedScore& score) { return fmt::format("{:>7}", score.masks()); });
  row("right", [](const MaskedScore& score) {
    const Estimate right = score.accuracy();
    return fmt::format("{:>7.1f} ± {:.1f} %  {}", 100 * right.mean, 100 * right.error,
                       bar(right.mean, kAccuracyBarWidth));
  });
  row("loss", [](const MaskedScore& score) {
    const Estimate loss = score.loss();
    return fmt::format("{:>7.3f} ± {:.3f}", loss.mean, loss.error);
  });
  if (const auto difference = loss_difference(comparison)) {
    page.row("loss differs", "",
             fmt::format("{:>+7.3f} ± {:.3f} mask by mask", difference->mean, difference->error));
  }
  if (a && b) different_tokens(comparison, page);
}

void longer_table(const Comparison& comparison, SideBySide& page) {
  std::vector<std::pair<double, int64_t>> lengths;  // factor, tokens
  double highest = 0;
  for (const SideReport& report : comparison.reports) {
    for (const LengthScore& length : report.lengths) {
      lengths.emplace_back(length.factor, length.length);
      highest = std::max(highest, length.score.loss().mean);
    }
  }
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  for (const auto& [factor, tokens] : lengths) {
    length_rows(comparison, page, factor, tokens, highest);
  }
  page.both("masks", [&](size_t side) -> std::string {
    const std::vector<LengthScore>& scores = comparison.reports[side].lengths;
    if (scores.empty()) return pad_left(kNoAnswer, kNumberWidth);
    const MaskedScore& score = scores.front().score;
    return fmt::format("{:>7} of {} tokens", score.masks(), score.tokens);
  });
  if (!comparison.reports[0].lengths.empty() && !comparison.reports[1].lengths.empty()) {
    different_tokens(comparison, page);
  }
}

}  // namespace infer
