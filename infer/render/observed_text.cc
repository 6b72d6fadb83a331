#include "infer/render/observed_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "infer/render/heat_map.h"

namespace infer {
namespace {

constexpr std::string_view kNoNumber = "—";
constexpr int kWidth = 80, kBarWidth = 20;
constexpr int kLabelWidth = 12;  // at least
constexpr size_t kMostRows = 8;  // of a view whose rows are heads, unless all are asked for
constexpr int64_t kMostPatternTokens = 32;

std::string name_of(const Row& row) {
  if (row.head > 0) {
    return infer::name_of(HeadNumber{row.layer, row.head}) +
           (row.label.empty() ? "" : " " + row.label);
  }
  if (!row.label.empty()) return row.label;
  return row.layer == 0 ? "embed" : fmt::format("{}", row.layer);
}

/// Of many decimals, numbers that would be all zeros say how small they are.
std::string number_text(double value, const Column& column) {
  if (column.decimals > 2) return small_number(value, column.decimals);
  const std::string text = fmt::format("{:.{}f}", value, column.decimals);
  return text.find_first_not_of("-0.") == std::string::npos && text[0] == '-' ? text.substr(1)
                                                                              : text;
}

std::string paragraph(std::string_view text) {
  return fmt::format("  {}\n", wrapped(text, 2, kWidth));
}

/// Parts of `width` columns in shades, by their shares; negative ones have no part.
std::string stacked(std::span<const double> shares, int width) {
  constexpr std::array<std::string_view, 6> kShades = {"█", "▒", "░", "▓", "╱", "·"};
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
  TableText(const View& view, std::span<const Observed> runs, const Shown& shown) : view_(view) {
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
    const bool curves = view.chart == Chart::kCurves;  // several rows a head
    left_out_ = rank(curves ? !shown.heads.empty() : shown.all_rows);
    way_to_all_ = curves ? "--head all" : fmt::format("--only {}", view.name);
    for (const Row* row : rows_)
      label_width_ = std::max(label_width_, display_width(name_of(*row)));
    measure_cells();
    beside_ = tables_.size() % 2 == 0 && std::ranges::count(tables_, nullptr) == 0 &&
              cells_width() <= side_width();
    if (beside_ && !choose_errors(side_width())) beside_ = false;
    if (!beside_) choose_errors(kWidth - label_width_ - 2);
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
    if (left_out_ > 0) {
      out += paragraph(fmt::format("{} more rows: {}", left_out_, way_to_all_));
    }
    return out;
  }

 private:
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

  /// The number of a column in a row's cells or the ends of their intervals.
  std::optional<double> number(size_t side, const Row& place, const Column& column,
                               std::vector<double> Row::*cells = &Row::cells) const {
    if (tables_[side] == nullptr) return std::nullopt;
    const Row* const row = tables_[side]->find(place);
    const int64_t c = tables_[side]->column(column.key);
    if (row == nullptr || c < 0 || (row->*cells).empty()) return std::nullopt;
    const double value = (row->*cells)[c];
    return std::isnan(value) ? std::nullopt : std::optional(value);
  }

  std::string cell(size_t side, const Row& place, const Column& column) const {
    const std::optional<double> value = number(side, place, column);
    return value ? number_text(*value, column) : std::string(kNoNumber);
  }

  /// "±0.012", half of the interval; empty where there is none.
  std::string error(size_t side, const Row& place, const Column& column) const {
    const auto low = number(side, place, column, &Row::low);
    const auto high = number(side, place, column, &Row::high);
    return low && high ? "±" + number_text((*high - *low) / 2, column) : "";
  }

  /// Of all columns, or of the leading one alone, or of none, as there is room.
  /// False where there was room for none although there are some.
  bool choose_errors(int room) {
    std::vector<int> all(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      for (size_t side = 0; side < tables_.size(); ++side) {
        for (const Row* row : rows_) {
          const int width = display_width(error(side, *row, *columns_[c]));
          all[c] = std::max(all[c], width > 0 ? width + 1 : 0);
        }
      }
    }
    std::vector<int> leading(columns_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      const bool leads = columns_[c] == &view_.columns[view_.lead];
      if (leads && view_.chart != Chart::kCurves) leading[c] = all[c];
    }
    for (const std::vector<int>& errors : {all, leading}) {
      errors_ = errors;
      if (cells_width() <= room) return true;
    }
    errors_.assign(columns_.size(), 0);
    return std::ranges::all_of(leading, [](int width) { return width == 0; });
  }

  void measure_cells() {
    for (const Column& column : view_.columns) {
      if (!column.printed) continue;
      int width = display_width(column.label);
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
  int side_width() const { return (kWidth - label_width_ - 4) / 2; }

  int cells_width() const {
    int width = 0;
    for (const int each : widths_) width += each;
    for (const int each : errors_) width += each;
    return width;
  }

  std::string cells_of(size_t side, const Row& row) const {
    std::string out;
    std::vector<double> shares;
    for (size_t c = 0; c < columns_.size(); ++c) {
      out += pad_left(cell(side, row, *columns_[c]), widths_[c]);
      if (errors_[c] > 0) out += " " + pad_right(error(side, row, *columns_[c]), errors_[c] - 1);
      if (static_cast<int>(c) < view_.series) {
        shares.push_back(number(side, row, *columns_[c]).value_or(0));
      }
    }
    const int width = tables_.size() == 1 ? kWidth - label_width_ - 2 : side_width();
    const int room = std::min(width - cells_width() - 2, kBarWidth);
    if (room < 6) return out;
    if (view_.chart == Chart::kStacked) return out + "  " + stacked(shares, room);
    const bool one = view_.chart == Chart::kLines && view_.series == 1 && longest_ > 0;
    return one ? out + "  " + bar(shares[0] / longest_, room) : out;
  }

  std::string lines(const std::vector<size_t>& sides) const {
    const auto line = [&](std::string_view label, const auto& cells) {
      std::string out = "  " + pad_right(label, label_width_);
      for (const size_t side : sides) {
        out += (side != sides.front() ? "  " : "") + pad_right(cells(side), side_width());
      }
      return trimmed(out);
    };
    std::string heads;
    for (size_t c = 0; c < columns_.size(); ++c) {
      heads += pad_left(columns_[c]->label, widths_[c]) + std::string(errors_[c], ' ');
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
      out += line(name_of(*row), [&](size_t side) { return cells_of(side, *row); });
    }
    return out;
  }

  const View& view_;
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

/// What `get` says of each run, behind `mark` and with the run's name; once where they are alike.
template <typename Get>
std::string lines_of(std::span<const Observed> runs, std::string_view mark, Get get) {
  std::vector<std::string> texts;
  for (const Observed& run : runs) texts.push_back(get(run));
  const bool alike = std::ranges::count(texts, texts[0]) == std::ssize(texts);
  std::string out;
  for (size_t side = 0; side < (alike ? 1 : texts.size()); ++side) {
    if (texts[side].empty()) continue;
    out += paragraph(fmt::format("{}{}{}{}", mark, alike ? "" : runs[side].label, alike ? "" : ": ",
                                 texts[side]));
  }
  return out;
}

/// Why runs do not have the view.
std::string missing_lines(const View& view, std::span<const Observed> runs) {
  return lines_of(runs, fmt::format("{} ", kNoNumber), [&](const Observed& run) {
    const auto why = run.missing.find(view.name);
    return why == run.missing.end() ? std::string() : why->second;
  });
}

std::string note_lines(const View& view, std::span<const Observed> runs) {
  return lines_of(runs, "", [&](const Observed& run) {
    const Table* const table = run.table(view.name);
    return table == nullptr ? std::string() : table->note;
  });
}

Matrix pattern_corner(const Observed& text, HeadNumber head) {
  const int64_t tokens = text.num_tokens(), shown = std::min(tokens, kMostPatternTokens);
  const float* const pattern =  // [T, T]
      text.patterns.at(head.layer - 1).data() + (head.head - 1) * tokens * tokens;
  Matrix corner{.values = {}, .rows = shown, .columns = shown};
  for (int64_t i = 0; i < shown; ++i) {
    corner.values.insert(corner.values.end(), pattern + i * tokens, pattern + i * tokens + shown);
  }
  return corner;
}

/// The corner of a pattern: means of blocks would blur its diagonals.
std::string pattern_text(const Observed& text, HeadNumber head, const Output& output) {
  const Matrix matrix = pattern_corner(text, head);
  std::vector<std::string> labels;
  for (int64_t i = 0; i < matrix.rows; ++i) {
    labels.push_back(text.input.pieces.empty() ? fmt::format("{}", text.input.token_ids[i])
                                               : cut_right(printable(text.input.pieces[i]), 12));
  }
  std::string out = fmt::format("  head {}{}{}\n", infer::name_of(head),
                                text.label.empty() ? "" : ", ", printable(text.label));
  out += heat_map(matrix, labels, std::min(output.width(), kWidth), [](auto) {
    return Range{0, 1};
  });
  if (matrix.rows < text.num_tokens()) {
    out += fmt::format("  the first {} tokens of {}\n", matrix.rows, text.num_tokens());
  }
  return out;
}

std::string patterns_text(std::span<const Observed> runs, const Shown& shown,
                          const Output& output) {
  std::vector<HeadNumber> heads = shown.heads;
  if (heads.empty()) heads.push_back(most_positional_head(runs[0]).value_or(HeadNumber{1, 1}));
  std::string out;
  for (const HeadNumber head : heads) {
    for (const Observed& run : runs) {
      if (!run.patterns.empty()) out += pattern_text(run, head, output);
    }
  }
  return out;
}

std::string view_text(const View& view, std::span<const Observed> runs, const Shown& shown,
                      const Output& output) {
  const bool is_pattern = view.columns.empty();
  const std::string body =
      is_pattern ? patterns_text(runs, shown, output) : TableText(view, runs, shown).text();
  const std::string missing = missing_lines(view, runs);
  if (body.empty() && missing.empty()) return "";
  return "\n" + output.heading(view.title) + "\n" + paragraph(view.hint) + body +
         note_lines(view, runs) + missing;
}

std::string title(const Observed& observed, const Output& output) {
  if (observed.many) {
    const std::string what =
        observed.many->file.empty() ? "Means" : printable(observed.many->file) + ": means";
    return output.heading(fmt::format("{} over {} text{}, {} tokens", what, observed.many->texts,
                                      observed.many->texts == 1 ? "" : "s",
                                      observed.many->tokens)) +
           "\n";
  }
  if (!observed.input.text) return "";
  const std::string text = printable(*observed.input.text);
  return output.heading(text.empty() ? "(empty text)" : text) + "\n";
}

const Column& lead(const View& view) { return view.columns[view.lead]; }

/// What the leading column holds: "Order sensitivity (shuffle)".
std::string lead_name(const View& view) {
  const bool one_of_several = view.series > 1 || view.lead > 0;
  return one_of_several ? fmt::format("{} ({})", view.title, lead(view).label) : view.title;
}

/// The numbers of a view's leading column in two runs, row by row.
struct Difference {
  const View* view = nullptr;
  Row place = {};  // where it is largest
  std::array<double, 2> there = {};
  std::array<double, 2> mean = {};
  double relative = 0;  // |a − b| / max(|a|, |b|)
};

std::optional<Difference> difference(const View& view, std::span<const Observed> runs) {
  const Table* const a = runs[0].table(view.name);
  const Table* const b = runs[1].table(view.name);
  if (a == nullptr || b == nullptr || view.rows == Rows::kHeads || view.columns.empty()) return {};
  Difference found{.view = &view};
  const int64_t column = a->column(lead(view).key), other_column = b->column(lead(view).key);
  if (column < 0 || other_column < 0) return {};
  int64_t rows = 0;
  for (const Row& row : a->rows) {
    const Row* const other = b->find(row);
    if (other == nullptr) continue;
    const double x = row.cells[column], y = other->cells[other_column];
    found.mean[0] += x;
    found.mean[1] += y;
    ++rows;
    if (rows > 1 && std::abs(x - y) <= std::abs(found.there[0] - found.there[1])) continue;
    found.place = {row.layer, row.head, row.label, {}};
    found.there = {x, y};
    if (view.rows == Rows::kNamed) break;  // the first row stands for all
  }
  if (rows == 0) return {};
  for (double& mean : found.mean) mean /= static_cast<double>(rows);
  const double most = std::max(std::abs(found.there[0]), std::abs(found.there[1]));
  if (most > 1e-6) found.relative = std::abs(found.there[0] - found.there[1]) / most;
  return found;
}

std::vector<Difference> differences(std::span<const Observed> runs, const Shown& shown) {
  std::vector<Difference> all;
  for (const View* view : shown.views) {
    if (const auto found = difference(*view, runs)) all.push_back(*found);
  }
  return all;
}

std::string where(const Difference& difference) {
  const Row& place = difference.place;
  if (place.layer < 0) return fmt::format(" ({} {})", difference.view->row_name, place.label);
  return place.layer == 0 ? " in the embedding" : fmt::format(" in layer {}", place.layer);
}

std::vector<std::string> differences_in_words(std::span<const Observed> runs, const Shown& shown) {
  std::vector<Difference> all = differences(runs, shown);
  const bool comparable = !all.empty();
  std::erase_if(all, [](const Difference& d) { return d.relative < 0.05; });
  std::ranges::stable_sort(all, {}, [](const Difference& d) { return -d.relative; });
  std::vector<std::string> out;
  const bool asked = std::ranges::find(shown.views, &view("moved")) != shown.views.end();
  const Table* const moved = runs[1].table("moved");
  if (asked && moved != nullptr && !moved->rows.empty()) {
    const double last = moved->rows.back().cells[0];
    out.push_back(last < 1e-6
                      ? fmt::format("The last states of {} and {} are the same.", runs[0].label,
                                    runs[1].label)
                      : fmt::format("The last states of {} and {} differ by 1 − cos {} on average.",
                                    runs[0].label, runs[1].label, small_number(last)));
  }
  if (comparable && all.empty() && out.empty())
    return {"In no view does the leading number differ by more than 5 %."};
  for (const Difference& each : all) {
    if (out.size() == 3) break;
    const Column& column = lead(*each.view);
    const std::string unit = *each.view->unit != '\0' ? fmt::format(", {}", each.view->unit) : "";
    out.push_back(fmt::format("{}{}: {} {}, {} {}{}.", lead_name(*each.view), unit, runs[0].label,
                              number_text(each.there[0], column), runs[1].label,
                              number_text(each.there[1], column), where(each)));
  }
  return out;
}

/// What ± and "untrained" mean.
std::string errors_in_words(std::span<const Observed> runs) {
  std::string said;
  if (runs[0].many && runs[0].many->texts > 1)
    said = "± is half of the 95 % interval over texts (bootstrap). ";
  if (runs.back().untrained == 1)
    said += "Untrained: the same architecture with random weights.";
  else if (runs.back().untrained > 1)
    said += fmt::format(
        "Untrained: means over {} models of the same architecture with random weights; ± is half "
        "of their range.",
        runs.back().untrained);
  return said.empty() ? "" : "\n" + paragraph(said);
}

}  // namespace

bool Shown::has(const Row& row) const {
  return row.head == 0 || heads.empty() || std::ranges::any_of(heads, [&](HeadNumber head) {
           return head.layer == row.layer && head.head == row.head;
         });
}

std::string token_rows(const Observed& text, int width) {
  TokenRow position{"position", {}}, token{"token", {}}, id{"id", {}};
  for (const float p : text.position_ids) position.cells.push_back(fmt::format("{:.4g}", p));
  for (const std::string& piece : text.input.pieces) token.cells.push_back(printable(piece));
  for (const int32_t i : text.input.token_ids) id.cells.push_back(fmt::format("{}", i));
  if (token.cells.empty()) return token_table({position, id}, width);
  return token_table({position, token, id}, width);
}

std::vector<std::string> sentences(std::span<const Observed> runs, const Shown& shown) {
  if (runs.size() > 1) return differences_in_words(runs, shown);
  std::vector<std::string> out;
  for (const View* view : shown.views) {
    const Table* const table = runs[0].table(view->name);
    if (out.size() == 3 || view->sentence == nullptr || table == nullptr || table->rows.empty())
      continue;
    out.push_back(view->sentence(*table));
  }
  return out;
}

std::string to_text(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  const Observed& first = runs[0];
  std::string out = title(first, output);
  if (!first.many) out += token_rows(first, std::min(output.width(), kWidth));
  const std::vector<std::string> said = sentences(runs, shown);
  if (!said.empty()) out += "\n";
  for (const std::string& sentence : said) out += paragraph(printable(sentence));
  out += errors_in_words(runs);
  for (const View* view : shown.views) out += view_text(*view, runs, shown, output);
  return out;
}

std::string to_overview(std::span<const Observed> runs, const Shown& shown, const Output& output) {
  constexpr int kTitle = 40, kNumber = 14;
  const auto cell = [](const std::string& text) {
    return pad_left(cut_left(text, kNumber - 2), kNumber);
  };
  std::string out = title(runs[0], output) + "\n" + "  Largest differences:\n";
  for (const std::string& sentence : sentences(runs, shown)) out += paragraph(printable(sentence));
  out += "\n" +
         output.heading("Means over the layers of both, and the layer where they differ most") +
         "\n";
  out += trimmed(pad_right("", kTitle + 2) + cell(printable(runs[0].label)) +
                 cell(printable(runs[1].label)) + "  layer");
  for (const Difference& each : differences(runs, shown)) {
    const Column& column = lead(*each.view);
    const std::string layer =
        each.place.layer < 0 ? "" : name_of(Row{.layer = each.place.layer, .cells = {}});
    out += trimmed("  " + pad_right(cut_right(lead_name(*each.view), kTitle - 1), kTitle) +
                   cell(number_text(each.mean[0], column)) +
                   cell(number_text(each.mean[1], column)) + pad_left(layer, 7));
  }
  for (const View* view : shown.views) {
    const std::string missing = missing_lines(*view, runs);
    if (!missing.empty()) out += fmt::format("  {}\n  {}", view->title, missing);
  }
  return out + "\n  --only NAME or --only all prints the tables.\n";
}

std::string to_short_text(const Observed& text, const Output& output) {
  std::string out = title(text, output) + token_rows(text, output.width()) + "\n";
  out += fmt::format("  {:>5}  {:>8}  {:<28}  {}\n", "layer", "length", "effect of positions",
                     "reach of attention");
  const Table& norm = text.tables.at("norm");
  for (const Row& row : norm.rows) {
    const auto number = [&](const char* view) -> std::optional<double> {
      const Table* const table = text.table(view);
      const Row* const found = table == nullptr ? nullptr : table->find(row);
      return found == nullptr ? std::nullopt : std::optional(found->cells[0]);
    };
    const double effect = number("effect").value_or(0);
    const std::optional<double> reach = number("attention");
    out += trimmed(fmt::format(
        "  {:>5}  {:>8.2f}  {}  {}", name_of(row), row.cells[0],
        pad_right(fmt::format("{:>5}  {}", small_number(effect), bar(effect, kBarWidth)), 28),
        reach ? fmt::format("{:.2f} tokens", *reach) : ""));
  }
  for (const MaskReport& mask : text.masks) {
    out += fmt::format("\n  most probable tokens for the mask at position {:.4g}\n",
                       text.position_ids[mask.token]);
    for (const Filler& filler : mask.fillers) {
      out += trimmed(fmt::format("    {} {:.3f} {}", pad_right(filler.piece, 16),
                                 filler.probability, bar(filler.probability, kBarWidth)));
    }
  }
  return out;
}

}  // namespace infer
