// Dots to characters: U+2800 + the dots' bits.
#include "infer/render/braille.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace infer {

BrailleCanvas::BrailleCanvas(int width, int height)
    : width_(width), height_(height), dots_(width * height), text_(width * height) {}

void BrailleCanvas::dot(int x, int y) {
  // Unicode counts down the left column, down the right one, and then the lowest two.
  constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  if (x < 0 || y < 0 || x >= dots_across() || y >= dots_down()) return;
  dots_[y / 4 * width_ + x / 2] |= kBits[y % 4][x % 2];
}

void BrailleCanvas::line(int x1, int y1, int x2, int y2) {
  const int steps = std::max({std::abs(x2 - x1), std::abs(y2 - y1), 1});
  for (int i = 0; i <= steps; ++i) {
    const double share = static_cast<double>(i) / steps;
    dot(static_cast<int>(std::lround(x1 + share * (x2 - x1))),
        static_cast<int>(std::lround(y1 + share * (y2 - y1))));
  }
}

void BrailleCanvas::text(int x, int y, const std::string& text) {
  const int row = y / 4, column = x / 2;
  if (row < 0 || row >= height_) return;
  for (int i = 0; i < static_cast<int>(text.size()); ++i) {
    if (column + i >= 0 && column + i < width_) text_[row * width_ + column + i] = text[i];
  }
}

std::vector<std::string> BrailleCanvas::lines() const {
  std::vector<std::string> lines(height_);
  for (int i = 0; i < width_ * height_; ++i) {
    std::string& line = lines[i / width_];
    if (text_[i] != 0) {
      line += text_[i];
    } else if (dots_[i] == 0) {
      line += ' ';
    } else {  // U+28xx in UTF-8
      line += {'\xe2', static_cast<char>(0xa0 | dots_[i] >> 6),
               static_cast<char>(0x80 | (dots_[i] & 0x3f))};
    }
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

}  // namespace infer
