// Tables of two sides next to each other, in 80 columns.
#include "infer/render/side_by_side.h"

#include <fmt/format.h>

#include <algorithm>

namespace infer {
namespace {

constexpr int kLabelWidth = 13;
constexpr int kSideWidth = 32;
constexpr int kBarWidth = 20;

}  // namespace

void SideBySide::heading(const std::string& text) {
  if (!text_.empty()) text_ += '\n';
  text_ += output_.heading(text);
  text_ += '\n';
}

void SideBySide::line(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text_ += text;
  text_ += '\n';
}

void SideBySide::row(const std::string& label, const std::string& a, const std::string& b) {
  line("  " + pad_right(label, kLabelWidth) + pad_right(cut_left(a, kSideWidth), kSideWidth) +
       "  " + cut_left(b, kSideWidth));
}

void SideBySide::bars(const std::vector<std::string>& labels, int decimals,
                      const std::function<Number(size_t side, size_t row)>& number) {
  double longest = 0;
  for (size_t r = 0; r < labels.size(); ++r) {
    for (const size_t side : {0, 1}) longest = std::max(longest, number(side, r).value_or(0));
  }
  for (size_t r = 0; r < labels.size(); ++r) {
    both(labels[r], [&](size_t side) -> std::string {
      const Number cell = number(side, r);
      if (!cell) return "";
      return fmt::format("{:>7}  {}", small_number(*cell, decimals),
                         bar(longest > 0 ? *cell / longest : 0, kBarWidth));
    });
  }
}

}  // namespace infer
