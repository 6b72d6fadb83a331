// Two sides of a comparison as tables for a terminal of 80 columns or more.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "infer/comparison_report.h"
#include "infer/report.h"

namespace infer {
namespace {

constexpr int kLabelWidth = 13;
constexpr int kCellWidth = 32;
constexpr int kBarWidth = 20;
constexpr int64_t kNearOffsets = 4;
constexpr const char* kNoAnswer = "—";

/// A number with a bar; nothing where there is no number.
using Cell = std::optional<double>;

class Tables {
 public:
  Tables(const Comparison& comparison, const Output& output)
      : comparison_(comparison), output_(output) {}

  std::string operator()() {
    models();
    section(Section::kEffect,
            "Moved by positions: mean 1 − cos to the same states without positions",
            &Tables::effect);
    section(Section::kOrder, "Moved by a new order: mean ‖h(πx)_π(t) − h(x)_t‖ / ‖h(x)_t‖",
            &Tables::order);
    section(Section::kAttention, "Attention reaches: mean |i − j|, in tokens", &Tables::attention);
    section(Section::kDirect,
            "The position vector's own part D of h: mean ‖D‖/‖h‖ and mean ⟨D, h⟩/‖h‖²",
            &Tables::direct);
    section(Section::kTable, "The position vectors P by themselves, M = P·Pᵀ", &Tables::table);
    section(Section::kMasked, "Masked tokens: 15 % hidden, text by text", &Tables::masked);
    section(Section::kLonger,
            "Longer than trained: loss on masked tokens, the file in pieces, end to end",
            &Tables::longer);
    return out_;
  }

 private:
  const SideReport& report(size_t side) const { return comparison_.reports[side]; }

  void line(std::string text) {
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += text + "\n";
  }
  void heading(const std::string& text) { out_ += "\n" + output_.heading(text) + "\n"; }
  void row(const std::string& label, const std::string& a, const std::string& b) {
    line("  " + pad_right(label, kLabelWidth) + pad_right(a, kCellWidth) + "  " + b);
  }
  void columns(const std::string& label) {
    row(label, comparison_.sides[0]->label, comparison_.sides[1]->label);
  }
  /// A row of text made from each side.
  template <typename Make>
  void both(const std::string& label, Make make) {
    row(label, make(0), make(1));
  }

  /// A table, and why a side is missing in it.
  void section(Section which, const std::string& title, void (Tables::*rows)()) {
    if (!comparison_.question.asks(which)) return;
    heading(title);
    if (!unanswered(which, 0) || !unanswered(which, 1)) (this->*rows)();
    const std::string a = why(0, which), b = why(1, which);
    if (a == b && !a.empty()) {
      line(fmt::format("  {} {}", kNoAnswer, a));
      return;
    }
    for (const size_t side : {0, 1}) {
      if (why(side, which).empty()) continue;
      line(fmt::format("  {} {}: {}", kNoAnswer, comparison_.sides[side]->label, why(side, which)));
    }
  }

  std::string why(size_t side, Section which) const {
    const auto found = report(side).missing.find(which);
    return found == report(side).missing.end() ? "" : found->second;
  }
  /// Whether a side has nothing at all to show in this table.
  bool unanswered(Section which, size_t side) const {
    return !why(side, which).empty() && (which != Section::kLonger || report(side).lengths.empty());
  }

  void models() {
    line(output_.heading(pad_right("", kLabelWidth + 2) +
                         pad_right(comparison_.sides[0]->label, kCellWidth) + "  " +
                         comparison_.sides[1]->label));
    const auto config = [&](size_t side) { return comparison_.sides[side]->model().config(); };
    both("model", [&](size_t side) { return comparison_.sides[side]->model_name; });
    both("positions", [&](size_t side) {
      return describe_positions(config(side).position, comparison_.sides[side]->options.positions);
    });
    both("size", [&](size_t side) {
      return fmt::format("{} layers, d_model {}, {} heads", config(side).num_layers,
                         config(side).d_model, config(side).num_heads);
    });
    both("trained on", [&](size_t side) -> std::string {
      const auto trained = comparison_.sides[side]->trained_length();
      return trained ? fmt::format("at most {} tokens", *trained) : "not said";
    });
    if (report(0).tokens + report(1).tokens == 0) return;
    both("texts", [&](size_t side) {
      return fmt::format("{}, {} tokens", report(side).inputs.size(), report(side).tokens);
    });
  }

  static std::string label_of(size_t l) { return l == 0 ? "embed" : fmt::format("{}", l); }

  size_t num_layers() const {
    return std::max(report(0).layers.size(), report(1).layers.size());
  }
  /// Whether this side measured layer l.
  bool has(size_t side, size_t l) const { return l < report(side).layers.size(); }

  /// Rows of numbers with bars, all relative to the longest.
  void bars(const std::vector<std::string>& labels,
            const std::function<Cell(size_t side, size_t row)>& number, int decimals) {
    double longest = 0;
    for (size_t r = 0; r < labels.size(); ++r) {
      for (size_t side = 0; side < 2; ++side) longest = std::max(longest, number(side, r).value_or(0));
    }
    for (size_t r = 0; r < labels.size(); ++r) {
      both(labels[r], [&](size_t side) -> std::string {
        const Cell cell = number(side, r);
        if (!cell) return "";
        return fmt::format("{:>7}  {}", small_number(*cell, decimals),
                           bar(longest > 0 ? *cell / longest : 0, kBarWidth));
      });
    }
  }

  /// The same with a row for each layer from `first` on.
  void layer_bars(size_t first, const std::function<double(const SideLayer&)>& number,
                  int decimals) {
    std::vector<std::string> labels;
    for (size_t l = first; l < num_layers(); ++l) labels.push_back(label_of(l));
    bars(
        labels,
        [&](size_t side, size_t r) -> Cell {
          if (!has(side, r + first)) return std::nullopt;
          return number(report(side).layers[r + first]);
        },
        decimals);
  }

  void effect() {
    columns("layer");
    layer_bars(0, [](const SideLayer& layer) { return layer.effect; }, 3);
  }

  void order() {
    columns("layer");
    std::string kinds;
    for (const std::string_view kind : kReorderingNames) kinds += fmt::format("{:>9}", kind);
    row("", kinds, kinds);
    for (size_t l = 0; l < num_layers(); ++l) {
      both(label_of(l), [&](size_t side) {
        std::string cells;
        for (size_t kind = 0; kind < kReorderingNames.size() && has(side, l); ++kind) {
          const double moved = report(side).layers[l].order[kind];
          cells += pad_left(unanswered(Section::kOrder, side) ? kNoAnswer : small_number(moved), 9);
        }
        return cells;
      });
    }
  }

  void attention() {
    columns("layer");
    layer_bars(1, [](const SideLayer& layer) { return layer.attention.distance(); }, 2);
    heading("Attention goes: its share by offset j − i, mean over the layers");
    columns("offset");
    std::vector<std::string> labels = {fmt::format("-{} and less", kNearOffsets + 1)};
    for (int64_t d = -kNearOffsets; d <= kNearOffsets; ++d) labels.push_back(fmt::format("{:+}", d));
    labels[kNearOffsets + 1] = "itself";
    labels.push_back(fmt::format("+{} and more", kNearOffsets + 1));
    std::array<std::vector<double>, 2> shares;
    for (size_t side = 0; side < 2; ++side) shares[side] = near_offsets(report(side));
    bars(labels, [&](size_t side, size_t r) -> Cell { return shares[side][r]; }, 3);
  }

  /// Shares of attention: all that goes farther left, each near offset, all that goes farther right.
  static std::vector<double> near_offsets(const SideReport& report) {
    AttentionSum sum;
    for (size_t l = 1; l < report.layers.size(); ++l) sum.add(report.layers[l].attention);
    std::vector<double> shares(2 * kNearOffsets + 3);
    for (const auto& [offset, share] : sum.by_offset()) {
      shares[std::clamp(offset, -kNearOffsets - 1, kNearOffsets + 1) + kNearOffsets + 1] += share;
    }
    return shares;
  }

  void direct() {
    columns("layer");
    double longest = 0;
    for (const SideReport& side : comparison_.reports) {
      for (const SideLayer& layer : side.layers) longest = std::max(longest, layer.direct.norm);
    }
    for (size_t l = 0; l < num_layers(); ++l) {
      both(label_of(l), [&](size_t side) -> std::string {
        if (!has(side, l)) return "";
        const phasor::PartShare& share = report(side).layers[l].direct;
        return fmt::format("{:>7} {:>7}  {}", small_number(share.norm),
                           small_number(share.alignment),
                           bar(longest > 0 ? share.norm / longest : 0, kBarWidth - 6));
      });
    }
  }

  void table() {
    columns("");
    using Number = double TableReport::*;
    both("rows", [&](size_t side) -> std::string {
      return report(side).table ? fmt::format("{:>7}", report(side).table->rows)
                                : pad_left(kNoAnswer, 7);
    });
    const auto number = [&](const std::string& label, Number member, int decimals) {
      both(label, [&](size_t side) -> std::string {
        const auto& table = report(side).table;
        return table ? fmt::format("{:>7.{}f}", (*table).*member, decimals) : pad_left(kNoAnswer, 7);
      });
    };
    number("mean length", &TableReport::norm, 2);
    number("Toeplitz R²", &TableReport::toeplitz_r2, 4);
    number("locality", &TableReport::locality, 4);
    number("symmetry", &TableReport::symmetry, 4);
  }

  void masked() {
    columns("");
    const auto text = [&](const std::string& label,
                          const std::function<std::string(const MaskedScore&)>& make) {
      both(label, [&](size_t side) {
        return report(side).masked ? make(*report(side).masked) : pad_left(kNoAnswer, 7);
      });
    };
    text("tokens", [](const MaskedScore& s) { return fmt::format("{:>7}", s.tokens); });
    text("masks", [](const MaskedScore& s) { return fmt::format("{:>7}", s.masks); });
    text("right", [](const MaskedScore& s) {
      return fmt::format("{:>7.1f} %  {}", 100 * s.accuracy, bar(s.accuracy, kBarWidth));
    });
    text("loss", [](const MaskedScore& s) { return fmt::format("{:>7.3f}", s.loss); });
    different_tokens();
  }

  void different_tokens() {
    if (same_tokens(report(0), report(1))) return;
    line("  The two tokenizers make different tokens: their numbers cannot be compared.");
  }

  void longer() {
    columns("tokens");
    std::vector<std::pair<double, int64_t>> lengths;  // factor, tokens
    double highest = 0;
    for (const SideReport& side : comparison_.reports) {
      for (const LengthScore& length : side.lengths) {
        lengths.emplace_back(length.factor, length.length);
        highest = std::max(highest, length.score.loss);
      }
    }
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    for (const auto& [factor, tokens] : lengths) length_rows(factor, tokens, highest);
    both("masks", [&](size_t side) -> std::string {
      if (report(side).lengths.empty()) return pad_left(kNoAnswer, 7);
      const MaskedScore& score = report(side).lengths.front().score;
      return fmt::format("{:>7} of {} tokens", score.masks, score.tokens);
    });
    different_tokens();
  }

  /// One length: a row for what each side's positions do with it, side by side.
  void length_rows(double factor, int64_t tokens, double highest) {
    std::array<std::vector<std::string>, 2> cells;
    for (size_t side = 0; side < 2; ++side) {
      for (const LengthScore& length : report(side).lengths) {
        if (length.factor != factor || length.length != tokens) continue;
        const std::string how = length.overflow ? std::string(to_string(*length.overflow))
                                : factor > 1    ? "goes on"
                                                : "";
        cells[side].push_back(fmt::format("{:>7.3f}  {} {}", length.score.loss,
                                          pad_right(bar(length.score.loss / highest, 8), 8), how));
      }
    }
    const size_t rows = std::max(cells[0].size(), cells[1].size());
    for (std::vector<std::string>& column : cells) column.resize(rows);
    for (size_t r = 0; r < rows; ++r) {
      row(r == 0 ? fmt::format("{}, {}×", tokens, factor) : "", cells[0][r], cells[1][r]);
    }
  }

  const Comparison& comparison_;
  const Output& output_;
  std::string out_;
};

}  // namespace

std::string to_text(const Comparison& comparison, const Output& output) {
  return Tables(comparison, output)();
}

}  // namespace infer
