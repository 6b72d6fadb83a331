// Tables of two sides next to each other, in 80 columns.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "infer/render/terminal.h"

namespace infer {

/// What stands for a number that there is not.
inline constexpr std::string_view kNoAnswer = "—";

/// Text that grows line by line: a column of labels and one for each side.
class SideBySide {
 public:
  using Number = std::optional<double>;

  explicit SideBySide(const Output& output) : output_(output) {}

  void heading(const std::string& text);
  void line(std::string text);
  void row(const std::string& label, const std::string& a, const std::string& b);
  /// A row made from the number of each side.
  template <typename Make>
  void both(const std::string& label, Make make) {
    row(label, make(size_t{0}), make(size_t{1}));
  }
  /// A row for each label: numbers, with bars relative to the longest of all.
  void bars(const std::vector<std::string>& labels, int decimals,
            const std::function<Number(size_t side, size_t row)>& number);

  const std::string& text() const { return text_; }

 private:
  const Output& output_;
  std::string text_;
};

}  // namespace infer
