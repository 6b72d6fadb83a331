#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "infer/cli/terminal.h"
#include "infer/render/observed_text.h"

namespace infer {
namespace {

constexpr int kLabelWidth = 12;  // at least
constexpr size_t kMostRows = 8;  // of a view whose rows are heads, unless all are asked for
constexpr std::array<std::string_view, 6> kShades = {"█", "▒", "░", "▓", "╱", "·"};  // of parts

/// Parts of `width` columns in shades, by their shares; negative ones have no part.
std::string stacked(std::span<const double> shares, int width) {
  std::string out;
  double sum = 0;
  int used = 0;
  for (size_t part = 0; part < std::min(shares.size(), kShades.size()); ++part) {
    sum += std::max(shares[part], 0.0);
    for (; used < std::lround(std::min(sum, 1.0) * width); ++used) out += kShades[part];
  }
  return out;
}

/// One view's table of one or two runs, side by side where there is room.
class TableText {
 public:
  TableText(const View& view, std::span<const Observed> runs, const Shown& shown, int width)
      : view_(view), width_(width) {
    for (const Observed& run : runs) {
      labels_.push_back(run.label);
      tables_.push_back(run.table(view.name));
      if (tables_.back() == nullptr) continue;
      for (const Row& row : tables_.back()->rows) {
        if (!shown.has(row)) continue;
        if (std::ranges::none_of(rows_, [&](const Row* known) { return known->same_place(row); })) {
          rows_.push_back(&row);
        }
      }
    }
    const bool curves = view.chart == lens::Chart::kCurves;  // several rows a head
    left_out_ = rank(curves ? !shown.heads.empty() : !shown.names.empty());
    way_to_all_ = curves ? "--head all" : fmt::format("--only {}", view.name);
    for (const Row* row : rows_)
      label_width_ = std::max(label_width_, display_width(name_of(*row)));
    measure_cells();
    beside_ = tables_.size() % 2 == 0 && std::ranges::count(tables_, nullptr) == 0 &&
              cells_width() <= side_width();
    if (beside_ && !choose_errors(side_width())) beside_ = false;
    if (!beside_) choose_errors(width_ - label_width_ - 2);
  }

  std::string text() const {
    if (rows_.empty()) return "";
    std::string out;
    if (beside_) {
      for (size_t side = 0; side < tables_.size(); side += 2) out += lines({side, side + 1});
    } else {
      for (size_t side = 0; side < tables_.size(); ++side) {
        if (tables_[side] != nullptr) out += lines({side});
      }
    }
    out += key_of_shades();
    if (left_out_ > 0) {
      out += paragraph(fmt::format("{} more rows: {}", left_out_, way_to_all_), width_);
    }
    return out;
  }

 private:
  /// What the parts of stacked bars are, where there are any.
  std::string key_of_shades() const {
    const size_t end = beside_ ? columns_.size() : end_of_columns(0);
    if (view_.chart != lens::Chart::kStacked || bar_of(0, *rows_[0], end).empty()) return "";
    std::string key;
    for (size_t part = 0; part < static_cast<size_t>(view_.series); ++part) {
      key += fmt::format("  {} {}", kShades[part], label_of(*columns_[part]));
    }
    return "  " + pad_right("", label_width_) + trimmed(key);
  }
  /// Puts the heads with the largest weight first, and leaves the last rows out.
  size_t rank(bool all_rows) {
    if (view_.weight == nullptr) return 0;
    std::map<std::pair<int64_t, int64_t>, double> weights;  // by layer and head
    const auto weight = [&](const Row* row) -> double& { return weights[{row->layer, row->head}]; };
    for (const Row* row : rows_) weight(row) = std::max(weight(row), view_.weight(*row));
    std::ranges::stable_sort(rows_, std::greater(), weight);
    if (all_rows || rows_.size() <= kMostRows) return 0;
    const size_t left_out = rows_.size() - kMostRows;
    rows_.resize(kMostRows);
    return left_out;
  }

  /// Of `values`, the cells or intervals of a row's, that of a column; null where there is none.
  template <typename T>
  const T* value(size_t side, const Row& place, const Column& column,
                 std::vector<T> Row::*values) const {
    if (tables_[side] == nullptr) return nullptr;
    const Row* const row = tables_[side]->find(place);
    const int64_t c = tables_[side]->column(column.key);
    return row == nullptr || c < 0 || (row->*values).empty() ? nullptr : &(row->*values)[c];
  }

  std::optional<double> number(size_t side, const Row& place, const Column& column) const {
    const double* const found = value(side, place, column, &Row::cells);
    return found == nullptr || std::isnan(*found) ? std::nullopt : std::optional(*found);
  }

  std::string cell(size_t side, const Row& place, const Column& column) const {
    const std::optional<double> found = number(side, place, column);
    return found ? number_text(*found, column) : std::string(kNoNumber);
  }

  /// "±0.012", half of the interval; empty where there is none.
  std::string error(size_t side, const Row& place, const Column& column) const {
    const phasor::Interval* const ends = value(side, place, column, &Row::intervals);
    if (ends == nullptr || std::isnan(ends->low) || std::isnan(ends->high)) return "";
    return "±" + number_text((ends->high - ends->low) / 2, column);
  }

  /// Of all columns, or of the leading one alone, or of none, as there is room. Where columns
  /// continue below, the first ones have theirs, as many as need no further block of columns.
  /// False where there was room for none although there are some.
  bool choose_errors(int room) {
    std::vector<int> all(columns_.size()), leading(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      for (size_t side = 0; side < tables_.size(); ++side) {
        for (const Row* row : rows_) {
          const int width = display_width(error(side, *row, *columns_[c]));
          all[c] = std::max(all[c], width > 0 ? width + 1 : 0);
        }
      }
      const bool leads = columns_[c] == &view_.columns[view_.lead];
      if (leads && view_.chart != lens::Chart::kCurves) leading[c] = all[c];
    }
    for (const std::vector<int>& errors : {all, leading}) {
      errors_ = errors;
      if (cells_width() <= room) return true;
    }
    errors_.assign(columns_.size(), 0);
    if (cells_width() > room && view_.chart != lens::Chart::kCurves) {
      errors_ = leading;
      const size_t lines = lines_of_columns();
      for (size_t c = 0; c < columns_.size(); ++c) {
        const int left_out = std::exchange(errors_[c], all[c]);
        if (lines_of_columns() <= lines) continue;
        errors_[c] = left_out;
        break;
      }
    }
    return std::ranges::all_of(leading, [](int width) { return width == 0; });
  }

  void measure_cells() {
    for (const Column& column : view_.columns) {
      if (!column.printed) continue;
      int width = display_width(label_of(column));
      for (size_t side = 0; side < tables_.size(); ++side) {
        for (const Row* row : rows_) {
          width = std::max(width, display_width(cell(side, *row, column)));
          longest_ = std::max(longest_, number(side, *row, view_.columns[0]).value_or(0));
        }
      }
      columns_.push_back(&column);
      widths_.push_back(width + 2);
    }
  }

  /// Of each of two runs side by side.
  int side_width() const { return (width_ - label_width_ - 4) / 2; }

  int cells_width() const {
    int width = 0;
    for (const int each : widths_) width += each;
    for (const int each : errors_) width += each;
    return width;
  }

  /// Columns that have room beside each other, up to the one returned.
  size_t end_of_columns(size_t begin) const {
    int used = widths_[begin] + errors_[begin];
    size_t end = begin + 1;
    for (; end < columns_.size(); ++end) {
      used += widths_[end] + errors_[end];
      if (used > width_ - label_width_ - 2) break;
    }
    return end;
  }

  size_t lines_of_columns() const {
    size_t lines = 0;
    for (size_t begin = 0; begin < columns_.size(); begin = end_of_columns(begin)) ++lines;
    return lines;
  }

  /// The bar behind the columns before `end` if it has room there and they are all that it draws.
  std::string bar_of(size_t side, const Row& row, size_t end) const {
    const auto series = static_cast<size_t>(view_.series);
    if (end < std::min(series, columns_.size())) return "";
    int used = 0;
    for (size_t c = 0; c < end; ++c) used += widths_[c] + errors_[c];
    const int width = tables_.size() > 1 ? side_width() : width_ - label_width_ - 2;
    const int room = std::min(width - used - 2, kBarWidth);
    if (room < 6) return "";
    std::vector<double> shares;
    for (size_t c = 0; c < std::min(series, columns_.size()); ++c) {
      shares.push_back(number(side, row, *columns_[c]).value_or(0));
    }
    if (view_.chart == lens::Chart::kStacked) return "  " + stacked(shares, room);
    const bool one = view_.chart == lens::Chart::kLines && view_.series == 1 && longest_ > 0;
    return one ? "  " + bar(shares[0] / longest_, room) : "";
  }

  std::string cells_of(size_t side, const Row& row, size_t begin, size_t end) const {
    std::string out;
    for (size_t c = begin; c < end; ++c) {
      out += pad_left(cell(side, row, *columns_[c]), widths_[c]);
      if (errors_[c] > 0) out += " " + pad_right(error(side, row, *columns_[c]), errors_[c] - 1);
    }
    return out + (begin == 0 ? bar_of(side, row, end) : "");
  }

  std::string lines(const std::vector<size_t>& sides) const {
    std::string out;
    for (size_t begin = 0, end = 0; begin < columns_.size(); begin = end) {
      end = sides.size() > 1 ? columns_.size() : end_of_columns(begin);
      out += lines(sides, begin, end);
    }
    return out;
  }

  std::string lines(const std::vector<size_t>& sides, size_t begin, size_t end) const {
    const auto line = [&](std::string_view label, const auto& cells) {
      std::string out = "  " + pad_right(label, label_width_);
      for (const size_t side : sides) {
        out += (side != sides.front() ? "  " : "") + pad_right(cells(side), side_width());
      }
      return trimmed(out);
    };
    std::string heads;
    for (size_t c = begin; c < end; ++c) {
      heads += pad_left(label_of(*columns_[c]), widths_[c]) + std::string(errors_[c], ' ');
    }
    std::string out;
    if (tables_.size() > 1) {
      out +=
          line("", [&](size_t side) { return cut_left(printable(labels_[side]), side_width()); });
    }
    out +=
        line(view_.rows == Rows::kHeads ? "head" : view_.row_name, [&](size_t) { return heads; });
    for (const Row* row : rows_) {
      if (sides.size() == 1 && tables_[sides[0]]->find(*row) == nullptr) continue;
      out += line(name_of(*row), [&](size_t side) { return cells_of(side, *row, begin, end); });
    }
    return out;
  }

  const View& view_;
  int width_;
  std::vector<std::string> labels_;
  std::string way_to_all_;  // rows
  std::vector<const Table*> tables_;
  std::vector<const Row*> rows_;
  std::vector<const Column*> columns_;
  std::vector<int> widths_;
  std::vector<int> errors_;  // widths of " ±0.012"; 0: not shown
  int label_width_ = kLabelWidth;
  double longest_ = 0;  // number of the first column
  size_t left_out_ = 0;
  bool beside_ = false;
};

}  // namespace

std::string name_of(const Row& row) {
  if (row.head > 0) {
    return name_of(HeadNumber{row.layer, row.head}) + (row.label.empty() ? "" : " " + row.label);
  }
  if (!row.label.empty()) return row.label;
  return row.layer == 0 ? "embed" : fmt::format("{}", row.layer);
}

std::string paragraph(std::string_view text, int width) {
  return fmt::format("  {}\n", wrapped(text, 2, std::min(width, Output().width())));
}

std::string table_text(const View& view, std::span<const Observed> runs, const Shown& shown,
                       int width) {
  return TableText(view, runs, shown, width).text();
}

}  // namespace infer
